"""EventSource in a browser follows the stream and resumes after a restart of the broker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from .conftest import running

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")


@pytest.fixture
def page() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def received(page: Any, count: int) -> list[int]:
    """Wait for `count` events; returns their numbers."""
    deadline = time.monotonic() + 120
    while len(found := page.evaluate("window.received")) < count:
        assert time.monotonic() < deadline, found
        page.wait_for_timeout(50)
    return found


LISTEN = """token => new Promise(opened => {
    window.received = []
    const stream = new EventSource('/v1/stream?access_token=' + token)
    stream.onopen = opened
    stream.addEventListener('match', message =>
        window.received.push(JSON.parse(message.data).events[0].attributes.number))
})"""


def test_an_event_source_goes_on_after_a_restart(settings, page):
    with running(settings) as served:
        client = served.client()
        client.subscribe("all: {number >= 0}")
        page.goto(f"{served.url}/asyncapi.json")
        page.evaluate(LISTEN, served.token)
        client.publish([{"attributes": {"number": 1}}])
        assert received(page, 1) == [1]
        port = int(served.url.rsplit(":", 1)[1])
    with running(replace(settings, port=port)) as served:
        served.client().publish([{"attributes": {"number": 2}}])
        assert received(page, 2) == [1, 2]
