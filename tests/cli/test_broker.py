"""The broker's commands with a broker in another process: two terminals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from likewise.cli.app import run
from likewise.events import decode_lines

pytest.importorskip("fastapi")

COMMAND = [sys.executable, "-m", "likewise"]
LONG = 600
"""Seconds that a busy machine may need."""


ROOT = Path(__file__).parents[2]


class Terminal:
    """A shell of a user who has just installed Likewise, with a broker on a free port."""

    def __init__(self, environment: dict[str, str], url: str, token_file: Path) -> None:
        self.url, self.token_file = url, token_file
        self.environment = environment | {"LIKEWISE_URL": url}

    def shell(self, text: str) -> subprocess.Popen[str]:
        """The commands that a page shows, with another port."""
        text = text.replace("http://127.0.0.1:8420", self.url).replace("likewise ", f"{shlex.join(COMMAND)} ", 1)
        return subprocess.Popen(
            ["bash", "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            start_new_session=True,
        )

    def run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command, in this process if possible, since a new one takes a second to start."""
        if words[0] == "serve":
            command = [*COMMAND, *words]
            return subprocess.run(
                command, capture_output=True, text=True, env=self.environment, check=False, timeout=LONG
            )
        out, errors = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()))),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            code = run(words)
        return subprocess.CompletedProcess(words, code, out.getvalue(), errors.getvalue())


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp("home")
    none = ("LIKEWISE_DATA", "LIKEWISE_SPACES", "LIKEWISE_BROKER", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in none} | {"HOME": str(home)}
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with ended(process):
        started = json.loads(process.stdout.readline())
        next(line for line in process.stderr if '"started"' in line)
        yield Terminal(environment, started["url"], Path(started["token_file"]))
        process.send_signal(signal.SIGTERM)
        printed, rest = process.communicate(timeout=LONG)
        assert (process.returncode, printed) == (0, ""), rest
        assert '"stopped"' in rest


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """The process always ends with the test."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def shown(page: str, language: str, word: str) -> str:
    """The first block of a page that has a word."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), flags=re.S | re.M)
    return next(block for block in found if word in block)


def end(process: subprocess.Popen[str]) -> None:
    """Ctrl-C in its terminal, which ends all processes started there."""
    try:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LONG)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_two_terminals_as_the_readme_shows_them(terminal):
    """In an empty home: nothing was built or downloaded, and synonyms match."""
    serve, subscribe = shown("README.md", "", "likewise subscribe '").splitlines()
    assert serve == "likewise serve"
    listener = terminal.shell(subscribe)
    assert listener.stdout is not None
    assert listener.stderr is not None
    try:
        assert listener.stderr.readline() == "following spot\n"
        publisher = terminal.shell(shown("README.md", "", "likewise publish"))
        with ended(publisher):
            out, errors = publisher.communicate(timeout=LONG)
        assert (out, publisher.returncode) == ("1 event published\n", 0), errors
        assert listener.stdout.readline() == shown("README.md", "text", "spot")
    finally:
        end(listener)
    assert "no subscriptions yet" in terminal.run("subscriptions", "list").stdout


def test_the_demo_needs_no_data_sets(terminal):
    process = subprocess.Popen(
        [*COMMAND, "serve", "--demo", "--port", "0"], stderr=subprocess.PIPE, text=True, env=terminal.environment
    )
    assert process.stderr is not None
    with ended(process):
        assert any('"started"' in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=LONG)
        assert process.returncode == 0, rest


def test_the_curl_lines_of_the_page(terminal):
    lines = terminal.shell(shown("docs/broker.md", "bash", "curl"))
    assert lines.stdout is not None
    try:
        stream_text = ""
        while "data: " not in stream_text:
            line = lines.stdout.readline()
            assert line, stream_text
            stream_text += line
    finally:
        end(lines)
    assert '"accepted":1' in stream_text
    assert "event: match" in stream_text
    found = json.loads(stream_text.partition("data: ")[2])
    assert (found["subscription"], found["events"][0]["attributes"]["slots"]) == ("parking", 3)
    terminal.run("subscriptions", "remove", "parking")


def test_the_python_lines_of_the_page(terminal, monkeypatch, capsys):
    monkeypatch.setenv("LIKEWISE_URL", terminal.url)
    monkeypatch.setenv("HOME", terminal.environment["HOME"])
    monkeypatch.delenv("LIKEWISE_BROKER", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    exec(compile(shown("docs/broker.md", "py", "BrokerClient"), "docs/broker.md", "exec"), {})
    assert capsys.readouterr().out == shown("docs/broker.md", "text", "garage")
    terminal.run("subscriptions", "remove", "garage")


def test_lines_from_stdin_and_a_bad_one(terminal):
    lines = '{"attributes": {"type": "parking"}}\nnonsense\n{"attributes": {"type": "garage"}}\n'
    done = terminal.run("publish", text=lines)
    assert (done.returncode, done.stdout) == (2, "2 events published\n")
    assert done.stderr.startswith("error: event 2: not valid JSON")
    seen = terminal.run("tail", "--after", "0", "--count", "2", "--timeout", "20", "--json").stdout.splitlines()
    assert all("attributes" in json.loads(line) for line in seen)


def test_subscriptions_come_and_go(terminal):
    assert terminal.run("subscriptions", "add", "garage: {type = garage}").stdout == "1 subscription added\n"
    assert "garage  garage: {type = garage}" in terminal.run("subscriptions", "list").stdout
    assert "paused: True" in terminal.run("subscriptions", "pause", "garage").stdout
    assert "paused: False" in terminal.run("subscriptions", "resume", "garage").stdout
    assert terminal.run("subscriptions", "remove", "garage").returncode == 0
    gone = terminal.run("subscriptions", "show", "garage")
    assert (gone.returncode, gone.stderr.splitlines()[0]) == (2, "error: there is no subscription 'garage'")


def test_mistakes_are_one_message(terminal):
    wrong = terminal.run("subscriptions", "add", "garage: {type = ")
    assert wrong.returncode == 2
    assert "^" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    nobody = terminal.run("publish", "a=1", "--url", "http://127.0.0.1:9")
    assert nobody.returncode == 2
    assert nobody.stderr.startswith("error: no broker answers at http://127.0.0.1:9")
    second = terminal.run("serve", "--port", "0")
    assert second.returncode == 2
    assert "another broker is using" in second.stderr
    assert "Traceback" not in second.stderr
    bare = terminal.run("serve", "--open", "--host", "0.0.0.0")
    assert "cannot listen on 0.0.0.0" in bare.stderr


def test_check_says_what_would_be_used(terminal, tmp_path):
    done = terminal.run("serve", "--check", "--folder", str(tmp_path / "fresh"))
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "folder",
        "database",
        "spaces",
        "engine",
        "tokens",
        "TLS",
    ]


def test_serve_gave_its_address_as_json(terminal):
    assert terminal.url.startswith("http://127.0.0.1:")
    assert terminal.token_file == Path(terminal.environment["HOME"]) / ".local/share/likewise/broker/admin.token"
    assert terminal.token_file.stat().st_mode & 0o077 == 0


def test_removing_says_so_to_machines(terminal):
    terminal.run("subscriptions", "add", "gone: {type = gone}")
    assert json.loads(terminal.run("subscriptions", "remove", "gone", "--json").stdout) == {"removed": "gone"}


def test_history_and_its_reasons(terminal):
    terminal.run("subscriptions", "add", "lamps: {type = lamp}")
    terminal.run("publish", '{"id": "l1", "attributes": {"type": "lamp"}}')
    deadline = time.monotonic() + 60
    while not (found := terminal.run("history", "--subscription", "lamps").stdout) and time.monotonic() < deadline:
        time.sleep(0.1)
    number = found.split()[0]
    assert found == f"{number}  lamps  1.00  type: lamp\n"
    assert "lamps matches l1" in terminal.run("history", number).stdout
    assert "l1  type: lamp" in terminal.run("history", "events", "--limit", "1").stdout
    lines = terminal.run("history", "events", "--oldest", "--limit", "0", "--json").stdout.encode()
    assert [event.id for event in decode_lines(lines.splitlines())][-1] == "l1"
    terminal.run("publish", '{"id": "l2", "attributes": {"type": "door"}}')
    missed = terminal.run("history", "--why", "l2", "--subscription", "lamps").stdout
    assert "lamps does not match l2" in missed
    terminal.run("subscriptions", "remove", "lamps")
