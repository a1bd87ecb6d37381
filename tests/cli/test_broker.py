"""The broker's commands against a broker in a process of its own: two terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from likewise.events import decode_lines

pytest.importorskip("fastapi")

COMMAND = [sys.executable, "-m", "likewise"]


class Terminal:
    """A shell in which the broker of a folder is the default one."""

    def __init__(self, folder: Path, url: str) -> None:
        self.environment = os.environ | {"LIKEWISE_BROKER": str(folder), "LIKEWISE_URL": url}

    def run(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words],
            capture_output=True,
            text=True,
            input=text,
            env=self.environment,
            check=False,
            timeout=60,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment
        )


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("broker")
    process = subprocess.Popen(
        [*COMMAND, "serve", "--folder", str(folder), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LIKEWISE_SPACES": str(folder / "none")},
    )
    assert process.stderr is not None
    url = next(line.split()[-1] for line in process.stderr if line.startswith("likewise broker on "))
    next(line for line in process.stderr if '"started"' in line)
    yield Terminal(folder, url)
    process.send_signal(signal.SIGTERM)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 0, rest
    assert '"stopped"' in rest


def test_two_terminals(terminal):
    listener = terminal.start("subscribe", "{type = parking, slots > 0}", "--count", "1", "--timeout", "100")
    assert listener.stderr is not None
    assert listener.stderr.readline().startswith("following cli-")
    deadline = time.monotonic() + 90
    while listener.poll() is None and time.monotonic() < deadline:
        done = terminal.run("publish", "type=parking", "slots=3")
        assert (done.returncode, done.stdout) == (0, "1 event published\n"), done.stderr
    out, _ = listener.communicate(timeout=30)
    assert "1.00  type: parking, slots: 3" in out
    assert listener.returncode == 0
    assert "no subscriptions yet" in terminal.run("subscriptions", "list").stdout


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


def test_serve_gives_its_address_as_json(tmp_path):
    folder = tmp_path / "fresh"
    process = subprocess.Popen(
        [*COMMAND, "serve", "--folder", str(folder), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LIKEWISE_SPACES": str(folder / "none")},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    told = json.loads(process.stdout.readline())
    next(line for line in process.stderr if '"started"' in line)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest == ""
    assert told["url"].startswith("http://127.0.0.1:")
    assert Path(told["token_file"]).parent == folder


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
