"""A real MQTT broker and a real webhook for the tests of sources and sinks."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Mosquitto that runs for the tests alone."""
    port = free_port()
    with running_mosquitto(tmp_path_factory.mktemp("mosquitto"), port):
        yield f"mqtt://127.0.0.1:{port}"


@contextmanager
def running_mosquitto(folder: Path, port: int, *, anonymous: bool = True) -> Iterator[None]:
    """A Mosquitto on a port, for as long as this lasts; without `anonymous` it lets nobody in."""
    binary = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if binary is None:
        pytest.skip("no mosquitto on PATH (Debian: apt-get install mosquitto)")
    config = folder / "mosquitto.conf"
    who = str(anonymous).lower()
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous {who}\nmax_queued_messages 0\n")
    with subprocess.Popen([binary, "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        try:
            _wait_for(port)
            yield
        finally:
            broker.terminate()


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("mosquitto did not start")


@dataclass
class Webhook:
    """What was posted, by key; the first `refusals` posts are answered with 503, and all after those it `takes`."""

    url: str = ""
    refusals: int = 0
    takes: int | None = None
    posts: list[tuple[str, Any]] = field(default_factory=list)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            full = hook.takes is not None and len(hook.posts) >= hook.takes
            status = 503 if hook.refusals or full else 200
            if hook.refusals:
                hook.refusals -= 1
            elif not full:
                hook.posts.append((self.headers["Idempotency-Key"], json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield hook
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
