"""The overlay gives the same reports as one engine, on random patterns and traces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from equality import build, expected, reports_equal_the_engines, timed
from federation import Federation, TableClassifier, signature
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from worlds import SimpleMatcher, composites, match, traces

from likewise.composite import Detector
from likewise.engine import Engine
from likewise.events import Event
from likewise.language import Composite, parse
from likewise.matching import Matcher
from likewise.overlay import MatchingClassifier, NetworkConditions, decompose
from likewise.overlay.cube.decompose import is_open, levels_of
from likewise.overlay.ring.contacts import SECOND
from likewise.testing import TableMeasure

QUIET: dict[str, Any] = {
    "deadline": None,
    "phases": [p for p in Phase if p is not Phase.shrink],
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=25, **QUIET)
@given(st.lists(composites(), min_size=1, max_size=3), traces(), st.sampled_from((1, 2, 7, 30)), st.integers(0, 99))
def test_the_overlay_reports_what_the_engine_reports(
    patterns: list[Composite], trace: list[Event], nodes: int, seed: int
) -> None:
    reports_equal_the_engines(patterns, trace, nodes, seed)


@pytest.mark.slow
@settings(max_examples=40, **QUIET)
@given(st.lists(composites(), min_size=1, max_size=5), traces(), st.sampled_from((100, 200)), st.integers(0, 99))
def test_large_federations_report_what_the_engine_reports(
    patterns: list[Composite], trace: list[Event], nodes: int, seed: int
) -> None:
    reports_equal_the_engines(patterns, trace, nodes, seed)


@settings(max_examples=15, **QUIET)
@given(composites(), traces(doubtful=True), st.integers(0, 99))
def test_probabilities_are_those_of_the_detector(composite: Composite, trace: list[Event], seed: int) -> None:
    [subscription] = build(composite)
    world = Federation(5, seed=seed, classify=TableClassifier(match))
    world.subscribe([subscription])
    since = world.sim.now
    world.run(5 * SECOND)
    events = timed(trace, world.sim.now)
    # The wait is long enough to detect absences after the last event.
    world.play(events, wait=20 * SECOND)
    detector = Detector(matcher=SimpleMatcher())
    detector.add("p0", subscription.body, subscription.options)
    detector.advance(since)
    detections = [detection for event in events for detection in detector.publish(event)]
    detections += detector.advance(world.sim.now - world.settings.slack * levels_of(decompose(subscription)))
    assert world.reported() == Counter(detection.signature for detection in detections)


def test_approximate_members_and_conditions_are_those_of_the_engine() -> None:
    words = {("laptop", "computer"): 0.8, ("notebook", "computer"): 0.6, ("machine", "device"): 0.9}
    options: dict[str, Any] = {
        "measure": TableMeasure(words),
        "approach": "approximate",
        "threshold": 0.3,
    }
    text = "p: {device~ = computer~} as a then {kind = heat} as b within 9 s where a.room = b.room"
    matcher = Matcher(**options)
    world = Federation(9, seed=2, classify=MatchingClassifier(lambda: matcher), measure=options["measure"])
    world.subscribe(text)
    since = world.sim.now
    world.run(5 * SECOND)
    first = [(("machine", "laptop"),), (("device", "notebook"),), (("machine", "car"),), (("machine", "computer"),)]
    kinds = [pairs for pair in first for pairs in (pair, (("kind", "heat"),))]
    events = [
        Event(f"e{n}", (*pairs, ("room", "xy"[n // 4])), (), t, t)
        for n, pairs in enumerate(kinds)
        for t in [world.sim.now + n * SECOND]
    ]
    world.play(events)
    engine = Engine(**options)
    engine.subscribe(parse(text))
    engine.advance(since)
    wanted = Counter(signature(notification) for event in events for notification in engine.publish(event))
    assert len(wanted) >= 3
    assert world.reported() == wanted


@settings(max_examples=12, **QUIET)
@given(st.lists(composites(), min_size=1, max_size=3), traces(), st.integers(0, 99))
def test_network_faults_neither_lose_nor_duplicate_reports(
    patterns: list[Composite], trace: list[Event], seed: int
) -> None:
    """Patterns that depend only on their own events are reported exactly despite loss, duplication and reordering."""
    subscriptions = [subscription for subscription in build(*patterns) if is_open(subscription, {})]
    assume(subscriptions)
    conditions = NetworkConditions(loss=0.05, duplication=0.1, reordering=0.2)
    world = Federation(7, seed=seed, conditions=conditions, static=False)
    world.subscribe(subscriptions)
    since = world.sim.now
    world.run(20 * SECOND)
    events = timed(trace, world.sim.now)
    world.play(events, wait=60 * SECOND)
    assert world.reported() == expected(subscriptions, events, since=since, until=world.sim.now)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed else []) for seed in range(6)])
def test_churn_loses_nothing_acknowledged_and_duplicates_nothing(seed: int) -> None:
    """Crashes, joins, leaves and freezes under load; rendezvous nodes among them."""
    world = Federation(25, seed=seed, static=False)
    subscribers = world.nodes[:3]
    text = """
    one: {kind = a} as a and {kind = b} as b within 6 seconds
    two: {kind = a} as a then {kind = b} as b then {kind = c} as c within 8 s where a.room = b.room and b.room = c.room
    three: ({kind = a} then {kind = c}) or {kind = b}
    four: {kind = c}
    """
    subscriptions = list(parse(text))
    for number, subscription in enumerate(subscriptions):
        world.subscribe([subscription], at=subscribers[number % 3])
    since = world.sim.now
    world.run(6 * SECOND)
    start = world.sim.now
    events = [
        Event(f"e{n:03}", (("kind", world.random.choice("abc")), ("room", world.random.choice("xy"))), (), t, t)
        for n in range(60)
        for t in [start + n * SECOND // 2]
    ]
    others = [node for node in world.nodes if node not in subscribers]
    world.random.shuffle(others)
    for n in range(5):
        at = start + (3 + 5 * n) * SECOND
        world.sim.at(at, lambda victim=others[n]: world.sim.crash(victim.me.id))
        world.sim.at(at + SECOND, lambda: world.join() and None)
        world.sim.at(at + 2 * SECOND, lambda frozen=others[10 + n]: world.sim.freeze(frozen.me.id))
        world.sim.at(at + 5 * SECOND, lambda frozen=others[10 + n]: world.sim.wake(frozen.me.id))

        def leave(node: Any = others[5 + n]) -> None:
            node.leave(world.sim.now)
            world.sim.touch(node.me.id)

        world.sim.at(at + 3 * SECOND, leave)
    world.play(events, wait=40 * SECOND)
    reported = world.reported()
    acknowledged = [event for event in events if world.publications[event.id] in world.acknowledged]
    least = expected(subscriptions, acknowledged, since=since, until=world.sim.now)
    most = expected(subscriptions, events, since=since, until=world.sim.now)
    assert len(acknowledged) >= 50
    assert [report for report, count in reported.items() if count > 1] == []
    assert least - reported == Counter()
    assert reported - most == Counter()
