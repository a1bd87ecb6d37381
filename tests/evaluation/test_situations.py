"""The example patterns on the real streams, against answers computed by plain loops written here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from likewise.composite import Detection, Detector
from likewise.evaluation.datasets.streams import aarhus_events, home_events
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Allen, parse

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LIKEWISE_DATA", "no-data"))
MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

pytestmark = pytest.mark.skipif(
    not (DATA / "streams" / "homes").exists(), reason=f"no streams at {DATA}: set LIKEWISE_DATA"
)

Found = list[tuple[str, ...]]


@cache
def home() -> list[Event]:
    return list(home_events(DATA, ("A",)))


def sensor(name: str) -> list[Event]:
    return [event for event in home() if event.attributes["sensor"] == [name]]


@cache
def detections(patterns: str, kind: type[Detector] = Detector) -> list[Detection]:
    made = kind(parse((ROOT / "examples" / "patterns" / f"{patterns}.lw").read_text()))
    events = home() if patterns != "aarhus" else city()
    return made.publish_batch(events) + made.flush()


def ids(patterns: str, name: str) -> Found:
    return [
        tuple(e.id for e in detection.members if e.id)
        for detection in detections(patterns)
        if detection.pattern == name
    ]


def pairs_once(first: list[Event], second: list[Event], within: int) -> Iterator[tuple[Event, Event]]:
    """The first of one, then the first of the other, each used once: a hand-written loop."""
    merged = sorted([(e.end, 0, e) for e in first] + [(e.end, 1, e) for e in second], key=lambda row: row[:2])
    held: Event | None = None
    for time, which, event in merged:
        if held is not None and time > held.end + within:
            held = None
        if which == 0 and held is None:
            held = event
        elif which == 1 and held is not None and time > held.end:
            yield held, event
            held = None


class TestHome:
    """P1 to P4 of 003 section 2.1."""

    def test_p1_the_first_look_into_the_fridge_of_each_night(self) -> None:
        nights: dict[int, str] = {}
        for event in sensor("fridge"):
            night, time = divmod(event.end, DAY)
            if HOUR < time <= 5 * HOUR:
                nights.setdefault(night, event.id)
        assert ids("homes", "night-snack") == [(name,) for name in nights.values()]
        assert nights

    def test_p2_no_flush_for_fourteen_hours_after_one(self) -> None:
        times = np.array([event.end for event in sensor("toilet flush")])
        last = home()[-1].end
        expected = []
        for event in sensor("toilet flush"):
            silent = not ((times > event.end) & (times <= event.end + 14 * HOUR)).any()
            if silent and event.end + 14 * HOUR <= last:
                expected.append((event.id,))
        assert ids("homes", "unused") == expected
        assert len(expected) == 8

    def test_p3_microwave_and_plates_each_taken_once(self) -> None:
        waiting: dict[str, list[Event]] = {"microwave": [], "plates cupboard": []}
        expected = []
        for event in home():
            [kind] = event.attributes["sensor"]
            if kind not in waiting:
                continue
            other = waiting["plates cupboard" if kind == "microwave" else "microwave"]
            fitting = [earlier for earlier in other if event.end - earlier.end <= 5 * MINUTE]
            if fitting:
                other.remove(fitting[0])
                pair = (event, fitting[0]) if kind == "microwave" else (fitting[0], event)
                expected.append(tuple(member.id for member in pair))
            else:
                waiting[kind].append(event)
        assert ids("homes", "meal") == expected
        assert len(expected) == 13

    def test_p4_the_door_and_then_the_bedroom(self) -> None:
        found = pairs_once(sensor("front door"), sensor("hall-bedroom door"), 10 * MINUTE)
        assert ids("homes", "home-to-bed") == [(a.id, b.id) for a, b in found] != []

    def test_a_pattern_of_patterns_follows_the_meals(self) -> None:
        times = {event.id: event.end for event in home()}
        fridge = [(event.end, event.id) for event in sensor("fridge")]
        expected = []
        for meal in ids("homes", "meal"):
            time = max(times[name] for name in meal)
            after = [row for row in fridge if time < row[0] <= time + 30 * MINUTE]
            if after:
                expected.append((min(after), (*meal, min(after)[1])))
        assert ids("homes", "second-helping") == [names for _, names in sorted(expected)] != []

    def test_two_steps_find_the_same(self) -> None:
        for patterns in ("homes", "allen"):
            one, two = detections(patterns), detections(patterns, TwoStepDetector)
            assert [detection.signature for detection in one] == [detection.signature for detection in two]


class TestAllen:
    """Relations between activations, by comparing arrays of starts and ends."""

    # ruff: noqa: ARG005
    HOLDS: ClassVar[dict[Allen, Callable[..., Any]]] = {
        Allen.BEFORE: lambda xs, xe, ys, ye: xe < ys,
        Allen.AFTER: lambda xs, xe, ys, ye: ye < xs,
        Allen.MEETS: lambda xs, xe, ys, ye: (xe == ys) & (xs < ys) & (xe < ye),
        Allen.MET_BY: lambda xs, xe, ys, ye: (ye == xs) & (ys < xs) & (ye < xe),
        Allen.OVERLAPS: lambda xs, xe, ys, ye: (xs < ys) & (ys < xe) & (xe < ye),
        Allen.OVERLAPPED_BY: lambda xs, xe, ys, ye: (ys < xs) & (xs < ye) & (ye < xe),
        Allen.STARTS: lambda xs, xe, ys, ye: (xs == ys) & (xe < ye),
        Allen.STARTED_BY: lambda xs, xe, ys, ye: (xs == ys) & (ye < xe),
        Allen.DURING: lambda xs, xe, ys, ye: (ys < xs) & (xe < ye),
        Allen.CONTAINS: lambda xs, xe, ys, ye: (xs < ys) & (ye < xe),
        Allen.FINISHES: lambda xs, xe, ys, ye: (ys < xs) & (xe == ye),
        Allen.FINISHED_BY: lambda xs, xe, ys, ye: (xs < ys) & (xe == ye),
        Allen.EQUALS: lambda xs, xe, ys, ye: (xs == ys) & (xe == ye),
    }

    def expected(self, left: str, relation: Allen, right: str, within: int) -> set[tuple[str, str]]:
        x, y = sensor(left), sensor(right)
        xs, xe = (np.array([getattr(e, side) for e in x])[:, None] for side in ("start", "end"))
        ys, ye = (np.array([getattr(e, side) for e in y])[None, :] for side in ("start", "end"))
        holds = self.HOLDS[relation](xs, xe, ys, ye) & (np.abs(xe - ye) <= within)
        return {(x[i].id, y[j].id) for i, j in zip(*np.nonzero(holds), strict=True)}

    @pytest.mark.parametrize(
        ("name", "left", "relation", "right", "within"),
        [
            ("bath-with-open-bedroom", "hall-bathroom door", Allen.DURING, "hall-bedroom door", 12 * HOUR),
            ("fridge-with-open-bedroom", "fridge", Allen.DURING, "hall-bedroom door", 12 * HOUR),
            ("cooking", "groceries cupboard", Allen.OVERLAPS, "fridge", 10 * MINUTE),
            ("fetching", "groceries cupboard", Allen.CONTAINS, "fridge", 10 * MINUTE),
            ("going-out", "hall-toilet door", Allen.BEFORE, "front door", 2 * MINUTE),
            ("leaving", "hall-bathroom door", Allen.MEETS, "toilet flush", 10 * MINUTE),
            ("entering", "toilet flush", Allen.STARTS, "hall-bathroom door", 10 * MINUTE),
        ],
    )
    def test_the_examples(self, name: str, left: str, relation: Allen, right: str, within: int) -> None:
        found = ids("allen", name)
        assert found
        assert set(found) == self.expected(left, relation, right, within)
        assert len(found) == len(set(found))

    def test_all_thirteen_relations_between_two_doors(self) -> None:
        """Each pair of activations has exactly one of them."""
        base = 'x: {sensor = "hall-toilet door"}\ny: {sensor = "hall-bathroom door"}\n'
        text = "".join(f'"{relation.value}": x {relation.value} y within 1 hour\n' for relation in Allen)
        found: dict[str, set[tuple[str, ...]]] = {relation.value: set() for relation in Allen}
        for detection in Detector(parse(base + text)).publish_batch(home()):
            found[detection.pattern].add(tuple(event.id for event in detection.members))
        expected = {
            relation: self.expected("hall-toilet door", relation, "hall-bathroom door", HOUR) for relation in Allen
        }
        assert found == {relation.value: pairs for relation, pairs in expected.items()}
        assert sum(map(bool, found.values())) >= 6


@cache
def city() -> list[Event]:
    """Two weeks of Aarhus; all of it takes a minute to read."""
    if not (DATA / "streams" / "aarhus" / "streams.tar.xz").exists():
        pytest.skip(f"no streams of Aarhus at {DATA}: set LIKEWISE_DATA")
    until = 1_406_851_200_000_000 + 14 * DAY
    return [event for event in aarhus_events(DATA) if event.end < until]


def of(kind: str) -> list[tuple[Event, dict[str, Any]]]:
    rows = ((event, dict(event.tuples)) for event in city())
    return [row for row in rows if row[1]["type"] == kind]


@cache
def jams() -> list[Event]:
    return [event for event, row in of("traffic") if row["speed"] < 20 and row["vehicles"] > 5]


@cache
def full() -> list[Event]:
    return [event for event, row in of("parking") if row["occupied"] >= 95]


def on(road: str, events: list[Event]) -> list[Event]:
    return [event for event in events if dict(event.tuples)["road"] == road]


class TestCity:
    """Traffic, then parking."""

    def test_a_jam_and_then_a_full_garage(self) -> None:
        found = pairs_once(jams(), full(), 30 * MINUTE)
        assert ids("aarhus", "jam-then-full") == [(a.id, b.id) for a, b in found] != []

    def test_the_same_road_flows_again(self) -> None:
        roads = {dict(event.tuples)["road"] for event in jams()}
        free = [event for event, row in of("traffic") if row["speed"] >= 40 and row["road"] in roads]
        expected = set()
        for road in roads:
            expected |= {(a.id, b.id) for a, b in pairs_once(on(road, jams()), on(road, free), 20 * MINUTE)}
        found = ids("aarhus", "relief")
        assert set(found) == expected
        assert len(found) == len(expected) > 0

    def test_a_full_garage_and_no_jam(self) -> None:
        """One garage is held at a time, until its hour is over or a jam breaks the absence."""
        times = np.array([event.end for event in jams()])
        held_until, expected = None, []
        for event in full():
            if held_until is None or event.end > held_until:
                over = event.end + HOUR
                broken = times[(times > event.end) & (times <= over)]
                held_until = broken.min() if broken.size else over
                if not broken.size and over <= city()[-1].end:
                    expected.append((event.id,))
        assert ids("aarhus", "full-without-jam") == expected != []
