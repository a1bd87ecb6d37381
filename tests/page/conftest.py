"""A broker with its page and a browser, shared by all tests of a run."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the page needs the extra `page`")
playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright")

from tests.serving import serve  # noqa: E402

from likewise.broker import BrokerClient  # noqa: E402

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
PATIENCE = 60_000
"""Milliseconds that the browser waits for an element; slow machines need many."""


@dataclass
class PageServer:
    """`likewise serve` in its own process."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path
    failures: list[str] = field(default_factory=list)
    """Log lines about failures of the page."""

    def listen(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):  # closed
            for line in self.process.stderr:
                if b"failed" in line or b"Traceback" in line:
                    self.failures.append(line.decode())

    def client(self, token: str = "") -> BrokerClient:
        return BrokerClient(self.url, token=token)

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
        if self.process.stderr is not None:
            self.process.stderr.close()


def start_page(folder: Path, *options: str, port: int = 0) -> PageServer:
    """Start a broker with its page, on a free port."""
    process, url = serve(folder, *options, port=port)
    served = PageServer(process, url, folder)
    threading.Thread(target=served.listen, daemon=True).start()
    return served


@pytest.fixture(scope="session")
def page_servers() -> Iterator[Callable[..., PageServer]]:
    """Starts brokers, and stops those that still run at the end."""
    started: list[PageServer] = []

    def start(folder: Path, *options: str, port: int = 0) -> PageServer:
        started.append(start_page(folder, *options, port=port))
        return started[-1]

    yield start
    for server in started:
        server.stop()
    assert [server.failures for server in started if server.failures] == []


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium of the system, headless."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def open_server(page_servers: Callable[..., PageServer], tmp_path_factory: pytest.TempPathFactory) -> PageServer:
    """A broker without tokens, for all quick tests."""
    return page_servers(tmp_path_factory.mktemp("page"), "--open")


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages in a fresh browser profile; errors of their scripts fail the test."""
    contexts: list[Any] = []
    errors: list[str] = []

    def open_page(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
