"""Checks that a federation gives the same reports as one engine."""

from __future__ import annotations

from collections import Counter
from typing import Any

from federation import Federation, moved, scaled, signature
from hypothesis import assume

from likewise.engine import Engine
from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Composite, Subscription, format_file, parse
from likewise.overlay import decompose
from likewise.overlay.cube.decompose import levels_of
from likewise.overlay.ring.contacts import SECOND


def expected(subscriptions: list[Subscription], events: list[Event], *, since: int, until: int) -> Counter[Any]:
    engine = Engine()
    engine.subscribe(subscriptions)
    engine.advance(since)
    notifications = [notification for event in events for notification in engine.publish(event)]
    return Counter(signature(notification) for notification in notifications + engine.advance(until))


def build(composite: Composite, *others: Composite) -> list[Subscription]:
    subscriptions = [Subscription(f"p{n}", scaled(pattern, SECOND)) for n, pattern in enumerate((composite, *others))]
    try:
        Engine().subscribe(subscriptions)
        # Subscriptions travel as text.
        parsed = parse(format_file(subscriptions))
        assert [subscription.body for subscription in parsed] == [subscription.body for subscription in subscriptions]
    except BuildError:
        assume(False)
    return subscriptions


def timed(trace: list[Event], start: int) -> list[Event]:
    return sorted((moved(event, factor=SECOND, by=start) for event in trace), key=lambda e: (e.end, e.start, e.id))


def reports_equal_the_engines(patterns: list[Composite], trace: list[Event], nodes: int, seed: int) -> None:
    subscriptions = build(*patterns)
    world = Federation(nodes, seed=seed)
    world.subscribe(subscriptions)
    since = world.sim.now
    world.run(5 * SECOND)
    events = timed(trace, world.sim.now)
    world.play(events, wait=20 * SECOND)
    wanted: Counter[Any] = Counter()
    for subscription in subscriptions:
        # The overlay decides an event time only after the slack.
        until = world.sim.now - world.settings.slack * levels_of(decompose(subscription))
        wanted += expected([subscription], events, since=since, until=until)
    assert world.reported() == wanted
