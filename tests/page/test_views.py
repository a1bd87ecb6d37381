"""The main paths of the views in a real browser; one server and one browser for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
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


def test_why_shows_the_two_vocabularies_and_a_miss_says_what_it_lacks(
    served: PageServer, visit: Callable[..., Any]
) -> None:
    page = visit(f"{served.url}/why?event=p1&subscription=free")
    page.get_by_role("heading", name="free matches").wait_for()
    page.get_by_text("Typ: Parkhaus", exact=True).wait_for()
    assert page.get_by_role("list", name="Evidence for the value").get_by_role("listitem").count() > 1
    page.goto(f"{served.url}/why?event=t1&subscription=free")
    page.get_by_role("heading", name="free does not match").wait_for()
    page.get_by_role("link", name="Compare with all subscriptions").click()
    page.get_by_role("heading", name="type traffic").wait_for()


def test_labels_lead_to_a_proposal_that_is_taken(served: PageServer, visit: Callable[..., Any]) -> None:
    page = visit(f"{served.url}/why?event=p1&subscription=free")
    for event, answer in (("p1", "No"), ("p2", "Yes"), ("t1", "No")):
        page.goto(f"{served.url}/why?event={event}&subscription=free")
        page.get_by_role("button", name=answer, exact=True).click()
        page.get_by_text("Saved as a label").wait_for()
    page.goto(f"{served.url}/subscriptions")
    card = page.get_by_role("region", name="free")
    card.get_by_text("1 of 3 rated events were right").wait_for()
    card.get_by_role("button", name="Tune free").click()
    card.get_by_text("finds 1 of 1 right event and no wrong event").wait_for()
    card.get_by_role("button", name="Apply").click()
    card.get_by_text("threshold 0.").first.wait_for()
    with served.client() as client:
        [found] = [
            subscription
            for subscription in client.list_subscriptions()["subscriptions"]
            if subscription["name"] == "free"
        ]
    assert "threshold 0.9" in found["text"]


def test_words_that_mean_the_same_are_shown_together_and_the_glossary_is_kept(
    served: PageServer, visit: Callable[..., Any]
) -> None:
    page = visit(f"{served.url}/words?a=free+spaces&b=freie+Pl%C3%A4tze")
    groups = page.get_by_role("region", name="Groups")
    groups.get_by_text("freie Plätze").wait_for()
    page.get_by_role("list", name="Evidence for free spaces and freie Plätze").wait_for()
    glossary = page.get_by_role("region", name="Glossary")
    glossary.get_by_label("Word").fill("prk")
    glossary.get_by_label("means").fill("parking")
    glossary.get_by_role("button", name="Add").click()
    glossary.get_by_text("prk = parking").wait_for()
    assert (served.folder / "glossary.txt").read_text() == "prk = parking\n"


def test_system_sends_a_dead_letter_again(served: PageServer, visit: Callable[..., Any]) -> None:
    with served.client() as client:
        client.subscribe("two: {type = a} then {type = b} within 1 minute")
        client.publish([{"id": "new", "time": "2040-01-01T00:00:00Z", "attributes": {"type": "a"}}])
        client.publish([{"id": "old", "time": "2039-01-01T00:00:00Z", "attributes": {"type": "b"}}])
    page = visit(f"{served.url}/system")
    letters = page.get_by_role("region", name="Dead letters")
    letters.get_by_text("patterns refused the event").wait_for()
    page.get_by_role("region", name="State of patterns").get_by_text("two").wait_for()
    page.get_by_text("everything works", exact=True).wait_for()
    letters.get_by_role("button", name="Retry dead letter 1").click()
    page.get_by_text("The dead letter was sent again.").wait_for()
    letters.get_by_role("button", name="Retry dead letter 1").wait_for(state="detached")
    letters.get_by_role("button", name="Retry dead letter 2").wait_for()  # it is as late as before


def test_hostile_texts_stay_texts(served: PageServer, visit: Callable[..., Any]) -> None:
    bad = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{7*7}}"
    with served.client() as client:
        client.publish([{"id": f"<b>{bad}</b>", "attributes": {"type": bad, bad[:60]: "javascript:alert(1)"}}])
        client.subscribe(f'"{"<u onclick=alert(1)>"}": {{type = "{bad.replace(chr(34), "")}"}}')
    page = visit(served.url)
    page.get_by_role("region", name="Events").get_by_text("onerror").first.wait_for()
    for path in ("/", "/subscriptions", "/words", "/why", "/playground", "/system"):
        page.goto(served.url + path)
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_timeout(300)
        assert "owned" not in page.title()
        assert page.locator("img[src=x]").count() == 0
        assert page.get_by_text("49", exact=True).count() == 0
    page.goto(f"{served.url}/why?event=%3Cb%3E{'x' * 10}&subscription=%3Cimg%20src=x%3E")
    page.get_by_text("there is no event").wait_for()
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"color_scheme": "light"},
        pytest.param(
            {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}, "has_touch": True},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["desk", "phone in the dark"],
)
def test_no_view_has_serious_flaws_for_screen_readers(
    served: PageServer, visit: Callable[..., Any], options: dict[str, Any]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(served.url, **options)
    for path in ("/?tour=1", "/playground", "/why?event=p1&subscription=free", "/words", "/subscriptions", "/system"):
        page.goto(served.url + path)
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_timeout(1200)
        found = axe.run(page).response["violations"]
        serious = [
            (violation["id"], violation["nodes"][0]["html"][:200])
            for violation in found
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], path


def test_an_address_without_a_page_says_so_to_browsers_and_to_programs(served: PageServer) -> None:
    program = httpx.get(f"{served.url}/healthz")
    assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")
    assert program.json()["detail"] == "there is nothing at /healthz"
    browser = httpx.get(f"{served.url}/nowhere", headers={"Accept": "text/html,*/*"})
    assert browser.status_code == 404
    assert "Page not found" in browser.text
