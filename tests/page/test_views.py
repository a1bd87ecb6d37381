"""The main paths of the views in a real browser; one server and one browser for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.page.conftest import PageServer

EVENTS = [
    {"id": "p1", "attributes": {"Typ": "Parkhaus", "Ort": "Altstadt", "freie Plätze": 12}},
    {"id": "p2", "attributes": {"type": "parking", "place": "harbour", "free spaces": 3}},
    {"id": "t1", "attributes": {"type": "traffic", "place": "harbour", "speed": 55}},
]


@pytest.fixture(scope="module")
def served(open_server: PageServer) -> PageServer:
    with open_server.client() as client:
        client.subscribe("free: {type~ = parking~, free spaces~ > 0}")
        client.publish(EVENTS)
    return open_server


def test_now_shows_events_and_what_they_mean(served: PageServer, visit: Callable[..., Any]) -> None:
    page = visit(served.url)
    events, matches = page.get_by_role("region", name="Events"), page.get_by_role("region", name="Matches and")
    events.get_by_text("Parkhaus").wait_for()
    matches.get_by_text('"Parkhaus" answers').wait_for()
    page.get_by_label("Only with these words").fill("speed 55")
    events.get_by_text("Parkhaus").wait_for(state="detached")
    assert events.get_by_role("listitem").count() == 1


def test_the_playground_finds_by_meaning_and_keeps_its_state_in_the_address(
    served: PageServer, visit: Callable[..., Any]
) -> None:
    page = visit(f"{served.url}/playground")
    editor = page.get_by_role("combobox", name="Subscription")
    editor.fill("mine: {type~ = parking~, free spaces~ > 5")
    page.locator(".editor-error .caret-line").wait_for()
    editor.fill("mine: {type~ = parking~, free spaces~ > 5}")
    page.get_by_role("heading", name="1 of 3 events match").wait_for()
    page.get_by_role("button", name="~ on").click()
    page.get_by_role("heading", name="0 of 3 events match").wait_for()
    page.wait_for_url("**q=mine%3A+%7Btype+%3D*")
    again = visit(page.url)
    assert again.get_by_role("combobox", name="Subscription").input_value() == "mine: {type = parking, free spaces > 5}"
    again.get_by_role("heading", name="0 of 3 events match").wait_for()
