"""The page without a browser: parsing, previews, tuning, charts and anomalies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from fastapi import Request

from likewise.broker.page.anomalies import AnomalyDetector
from likewise.broker.page.city import INTERESTS, city_day
from likewise.broker.page.editing import EXAMPLES, is_approximate, problem, with_approximation
from likewise.broker.page.preview import pasted_events
from likewise.broker.page.session import same_site
from likewise.broker.page.tuning import best_fit, fit
from likewise.broker.page.views.evidence import timeline_rows, waterfall_bars
from likewise.broker.page.views.why import reason_line
from likewise.broker.page.vocabulary import cluster_terms, layout
from likewise.broker.page.watch import RateCounter, StreamWords
from likewise.engine import Engine
from likewise.errors import InputError
from likewise.events import Event
from likewise.language import Profile, parse, parse_subscription


def test_the_city_speaks_three_vocabularies_and_its_citizen_a_fourth() -> None:
    events = [event for event, _ in zip(city_day(3), range(400), strict=False)]
    first = {event.tuples[0][0] for event in events}
    assert first == {"type", "eventType", "Typ"}
    assert len(parse(INTERESTS)) == 7
    assert {event.tuples[0][1] for event in events} >= {"Fensterbruch", "Parkhaus", "parking", "carParking"}


@pytest.mark.parametrize("text", [text for _, text in EXAMPLES])
def test_examples_can_be_read_and_lose_and_regain_their_signs(text: str) -> None:
    assert problem(text) is None
    bare = with_approximation(text, on=False)
    assert "~" not in bare
    assert not is_approximate(parse_subscription(bare))
    assert is_approximate(parse_subscription(with_approximation(bare, on=True)))


def test_an_error_has_its_line_and_column() -> None:
    found = problem("a: {type~ = parking~, slots > }")
    assert found is not None
    assert found["line"][found["column"] - 1] == "}"
    assert problem("  ")["message"].startswith("Write")  # type: ignore[index]


def test_pasted_events_may_be_json_or_plain() -> None:
    found = pasted_events('{type: car park, slots: 3}\n\n{"attributes": {"type": "parking"}}\n')
    assert [record.to_event().tuples[0][1] for record in found] == ["car park", "parking"]
    with pytest.raises(InputError, match="line 1"):
        pasted_events("{type: ")


def test_the_waterfall_begins_each_bar_where_the_last_one_ended() -> None:
    bars = waterfall_bars([{"concept": "prior: single words", "weight": -4.0}, {"concept": "x", "weight": 6.0}], 0.8)
    assert [(bar.begin, bar.end) for bar in bars] == [(0, -4), (-4, 2), (0, 2)]
    assert bars[-1].total


def test_the_timeline_shows_what_was_awaited_and_until_when() -> None:
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    lines = [
        {"role": "window", "what": "event", "time": start, "event": "a"},
        {
            "role": "person",
            "what": "event",
            "time": start + timedelta(seconds=30),
            "event": "b",
            "activated": start,
            "terminated": start + timedelta(seconds=60),
        },
        {"role": "guard", "what": "missing", "time": start + timedelta(seconds=60), "start": start},
    ]
    rows, (first, last) = timeline_rows(lines, {"a": "glass broke"})
    assert (first, last) == (start, start + timedelta(seconds=60))
    assert [row.at for row in rows] == [0.0, 0.5, None]
    assert rows[1].words == "b at 12:00:30; allowed until 12:01:00"
    assert rows[2].missing
    assert "glass broke" in rows[0].words


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{type = parking, slots > 0}",
            "type = parking ↔ type: parking 100 %, exact; slots > 0 ↔ slots: 3 100 %, exact",
        ),
        ("{type = parking, floor = 2}", "floor = 2 is not answered"),
    ],
)
def test_the_reason_of_a_match_names_all_predicates_and_of_a_miss_the_failing_one(text: str, reason: str) -> None:
    engine, event = Engine(), Event.of({"type": "parking", "slots": 3})
    body = parse_subscription(text).body
    assert isinstance(body, Profile)
    explanation = engine.matcher.explain(body, event)
    assert reason_line({"why_not": explanation.why_not or None, "text": explanation.text()}) == reason


def test_tuning_finds_the_threshold_between_right_and_wrong() -> None:
    scores = [(0.9, True), (0.8, True), (0.7, False), (0.3, True), (0.0, False)]
    assert fit(scores, 0.5).f1 == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    best = best_fit(scores, 0.5)
    assert best.f1 == max(fit(scores, place / 100).f1 for place in range(1, 100))
    assert best_fit([(0.9, True), (0.1, False)], 0.5).threshold == 0.5  # nothing better: no change


def test_clusters_and_places_follow_what_is_the_same() -> None:
    same = np.array([[1, 0.9, 0, 0], [0.9, 1, 0.1, 0], [0, 0.1, 1, 0.8], [0, 0, 0.8, 1]], np.float64)
    groups = cluster_terms(same)
    assert groups[0] == groups[1] != groups[2] == groups[3]
    places = layout(1 - same)
    near = np.linalg.norm(places[0] - places[1])
    assert near < np.linalg.norm(places[0] - places[2])
    assert near < np.linalg.norm(places[1] - places[3])


def test_a_stream_that_stops_or_bursts_is_unusual() -> None:
    detector = AnomalyDetector()
    moment = 0.0
    for number in range(2000):
        moment = number * 0.1
        detector.add(Event.of({"type": "traffic", "speed": 50 + number % 5}), moment)
    assert not detector.recent
    detector.add(Event.of({"type": "traffic", "speed": 900}), moment + 1)
    assert "900" in detector.recent[0].text
    detector.tick(moment + 40)
    assert "has stopped" in detector.recent[0].text


def test_counts_move_with_time_and_words_stay_bounded() -> None:
    tally = RateCounter()
    tally.add(5, 1000.0)
    assert tally.last_minute(1030.0) == 5
    assert tally.last_minute(1100.0) == 0
    words = StreamWords()
    for number in range(5000):
        words.add(Event.of({"type": "parking", f"sensor {number}": "x", "place": f"place {number}"}))
    assert len(words.attributes) <= 800
    assert len(words.values["place"]) <= 120
    assert words.common_attributes()[:2] == ["type", "place"]


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"sec-fetch-site": "same-origin", "origin": "null"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://evil"}, False),
        ({"origin": "http://here:1", "host": "here:1"}, True),
        ({"origin": "http://evil", "host": "here:1"}, False),
        ({"host": "here:1"}, False),
    ],
)
def test_forms_of_other_sites_are_refused(headers: dict[str, str], own: bool) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert same_site(Request({"type": "http", "headers": raw})) is own
