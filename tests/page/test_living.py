"""The page over time: signing in, two browsers, a broker that is restarted under an open page, the tour, the demo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.page.conftest import PageServer

pytestmark = pytest.mark.slow
Servers = Callable[..., PageServer]
Visit = Callable[..., Any]


def test_roles_decide_what_is_shown(page_servers: Servers, visit: Visit, tmp_path: Path) -> None:
    served = page_servers(tmp_path / "broker")
    admin = (tmp_path / "broker" / "admin.token").read_text().strip()
    with served.client(admin) as client:
        reader = client.create_token("reader", ["subscribe"])["token"]
        sender = client.create_token("sender", ["publish"])["token"]

    def sign_in(token: str) -> Any:
        page = visit(served.url)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        return page

    wrong = sign_in("lw_nobody_nothing")
    wrong.get_by_role("alert").wait_for()
    page = sign_in(reader)
    page.get_by_role("heading", name="Now", level=1).wait_for()
    assert page.get_by_role("link", name="System").count() == 0
    assert page.get_by_role("button", name="Start the demo feed").count() == 0
    page.goto(f"{served.url}/system")
    page.get_by_text("this needs the role 'admin'").wait_for()
    page = sign_in(sender)
    page.get_by_text("this needs the role 'subscribe'").wait_for()
    page = sign_in(admin)
    page.get_by_role("link", name="System").click()
    page.get_by_role("region", name="Tokens").get_by_text("reader").wait_for()
    page.get_by_role("button", name="Revoke reader").click()
    page.get_by_text("revoked").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    assert page.context.cookies() == []
    served.stop()


def test_two_browsers_see_the_same_and_a_restart_misses_nothing(
    page_servers: Servers, visit: Visit, tmp_path: Path
) -> None:
    served = page_servers(tmp_path / "broker", "--open")
    first, second = visit(served.url), visit(served.url)
    with served.client() as client:
        client.subscribe("all: {number >= 0}")
        client.publish([{"id": "n1", "attributes": {"number": 1, "word": "before"}}])
    for page in (first, second):
        page.get_by_role("region", name="Events").get_by_text("before").wait_for()
        page.get_by_role("region", name="Matches and situations").get_by_role("link", name="all").first.wait_for()
    port = int(served.url.rsplit(":", 1)[1])
    served.stop()
    again = page_servers(tmp_path / "broker", "--open", port=port)
    with again.client() as client:  # while the pages are still finding their way back
        client.publish([{"id": f"n{number}", "attributes": {"number": number, "word": "after"}} for number in (2, 3)])
    for page in (first, second):
        rows = page.get_by_role("region", name="Events").get_by_role("listitem")
        rows.nth(2).wait_for()
        assert rows.count() == 3
        matches = page.get_by_role("region", name="Matches and situations").get_by_role("listitem")
        matches.nth(2).wait_for()
        assert matches.count() == 3
    again.stop()


def test_a_first_visit_starts_the_demo_and_takes_the_tour(page_servers: Servers, visit: Visit, tmp_path: Path) -> None:
    served = page_servers(tmp_path / "broker", "--open")
    page = visit(served.url)
    page.get_by_role("button", name="Start the demo feed").click()
    page.get_by_role("region", name="Events").get_by_role("listitem").nth(5).wait_for()
    page.get_by_role("region", name="Matches and situations").get_by_role("listitem").first.wait_for()
    page.get_by_role("button", name="Stop the demo feed").click()
    page.get_by_role("link", name="Tour").click()
    for step in range(1, 5):
        page.get_by_role("dialog", name=f"step {step} of 5").wait_for()
        page.get_by_role("link", name="Next").click()
    page.get_by_role("dialog", name="step 5 of 5").wait_for()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("heading", name="Now", level=1).wait_for()
    served.stop()


def test_the_playground_works_by_keyboard_alone(page_servers: Servers, visit: Visit, tmp_path: Path) -> None:
    served = page_servers(tmp_path / "broker", "--open")
    with served.client() as client:
        client.publish([{"attributes": {"type": "parking", "free spaces": 3}}])
    page = visit(f"{served.url}/playground")
    editor = page.get_by_role("combobox", name="Subscription")
    editor.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("mine: {fre")
    page.get_by_role("option", name="free spaces").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type(" > 2}")
    page.get_by_role("heading", name="1 of 1 event match").wait_for()
    assert editor.input_value() == "mine: {free spaces > 2}"
    page.get_by_role("button", name="Save as subscription").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Saved as mine.").wait_for()
    slider = page.get_by_role("slider", name="Threshold")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**threshold=0.*")
    served.stop()
