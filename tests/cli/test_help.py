"""`likewise --help`: grouped, short, and each command with a valid example."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer

from likewise.cli.app import PANELS, build, run

COMMANDS = typer.main.get_command(build())


def _all(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from _all(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = dict(_all(COMMANDS))


def test_every_command_has_its_heading() -> None:
    named = {name for names in PANELS.values() for name in names}
    assert {path[0] for path in EVERY} <= named


def test_headings_and_commands_come_in_the_order_of_the_panels(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = re.findall(r"^│ ([a-z]+) ", capsys.readouterr().out, flags=re.M)
    assert shown == [name for names in PANELS.values() for name in names]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_teaches_with_an_example_that_can_be_called(path: tuple[str, ...]) -> None:
    """The command's parser parses the example, so unknown options are refused."""
    command = EVERY[path]
    examples = re.search(r"Examples?: (`.*)", command.help, flags=re.S)  # type: ignore[attr-defined]
    assert examples is not None, "no example"
    for example in re.findall(r"`(.*?)`(?:\s|$)", examples[1], flags=re.S):
        words = shlex.split(example.rpartition("| ")[2])
        assert words[: len(path) + 1] == ["likewise", *path]
        command.make_context("likewise", words[len(path) + 1 :])  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_speaks_to_machines(path: tuple[str, ...]) -> None:
    options = {name for parameter in EVERY[path].params for name in parameter.opts}  # type: ignore[attr-defined]
    assert "--json" in options


def test_help_names_arguments_and_shows_no_type_for_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["match", "--help"]) == 0
    text = capsys.readouterr().out
    assert "likewise match [OPTIONS] EVENTS SUBSCRIPTIONS" in text
    assert "<bool>" not in text
    assert "<str>" not in text


def test_no_color_leaves_only_text_in_a_terminal() -> None:
    """In a pseudo-terminal, since a pipe never has colours."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "likewise", "relate", "--help"]
    child = subprocess.Popen(command, stdout=writer, stderr=writer, env={**os.environ, "NO_COLOR": "1"})
    os.close(writer)
    text = b""
    with contextlib.suppress(OSError):  # the end of a terminal on Linux
        while piece := os.read(reader, 65536):
            text += piece
    os.close(reader)
    assert child.wait() == 0
    assert b"Usage:" in text
    assert b"\x1b[" not in text
