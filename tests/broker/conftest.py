"""Brokers for tests: in this process on a real port, or in their own process, which can be killed."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import uvicorn
from tests.serving import serve

from likewise.broker import DEFAULT_PORT, Broker, BrokerClient, BrokerSettings, create_app, listen
from likewise.testing import tiny_space


@dataclass
class Running:
    """A broker in a thread of this process."""

    broker: Broker
    url: str
    token: str | None
    clients: list[BrokerClient] = field(default_factory=list)

    def client(self, token: str | None = None, **options: Any) -> BrokerClient:
        client = BrokerClient(self.url, token=token or self.token or "", **options)
        self.clients.append(client)
        return client

    def settle(self) -> None:
        """Wait until all that was published is matched and stored."""
        deadline = time.monotonic() + 120
        while self.broker.host.block < self.broker.log.block or self._pending():
            assert time.monotonic() < deadline, "the broker did not finish in time"
            time.sleep(0.005)

    def _pending(self) -> bool:
        applied = int(self.broker.database.value("applied") or 0)
        return applied < self.broker.log.block


@contextlib.contextmanager
def running(settings: BrokerSettings, **options: Any) -> Iterator[Running]:
    """Start a broker and stop it again, on the port of the settings if one was chosen."""
    sock = listen("127.0.0.1", 0 if settings.port == DEFAULT_PORT else settings.port)
    port = sock.getsockname()[1]
    broker = Broker(replace(settings, port=port), **options)
    config = uvicorn.Config(create_app(broker), log_config=None, lifespan="on", ws="websockets-sansio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        assert thread.is_alive(), broker.start_error
        assert time.monotonic() < deadline
        time.sleep(0.01)
    token = None if settings.open else settings.token_file.read_text().strip()
    found = Running(broker, f"http://127.0.0.1:{port}", token)
    try:
        yield found
    finally:
        for client in found.clients:
            client.close()
        server.should_exit = True
        broker.close_streams()
        thread.join(timeout=120)  # a first compilation of kernels holds up the rest
        sock.close()
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def space(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("space")
    return str(tiny_space(folder).path)


@pytest.fixture
def settings(tmp_path: Path, space: str) -> BrokerSettings:
    return BrokerSettings(folder=tmp_path / "broker", spaces=(space,), live_clock=False, page=False)


@pytest.fixture
def served(settings: BrokerSettings) -> Iterator[Running]:
    with running(settings) as found:
        yield found


@pytest.fixture
def client(served: Running) -> BrokerClient:
    return served.client()


LONG = 600
"""Seconds that a busy machine may need."""


@dataclass
class Process:
    """A broker in its own process."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop the process with SIGTERM; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=LONG)


def start_process(folder: Path, *options: str) -> Process:
    """`likewise serve` as a user would start it, on a free port."""
    process, url = serve(folder, "--no-page", *options)
    assert process.stderr is not None
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return Process(process, url, folder)


@pytest.fixture
def processes() -> Iterator[Callable[..., Process]]:
    """Starts broker processes, and kills those that still run at the end."""
    started: list[Process] = []

    def start(folder: Path, *options: str) -> Process:
        started.append(start_process(folder, *options))
        return started[-1]

    yield start
    for process in started:
        if process.process.poll() is None:
            process.kill()
        if process.process.stderr is not None:
            process.process.stderr.close()
