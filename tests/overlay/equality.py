"""What one engine tells, and whether a federation tells the same."""

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
    reported = [notification for event in events for notification in engine.publish(event)]
    return Counter(signature(each) for each in reported + engine.advance(until))


def build(composite: Composite, *others: Composite) -> list[Subscription]:
    made = [Subscription(f"p{n}", scaled(each, SECOND)) for n, each in enumerate((composite, *others))]
    try:
        Engine().subscribe(made)
        # Subscriptions travel as text.
        assert [each.body for each in parse(format_file(made))] == [each.body for each in made]
    except BuildError:
        assume(False)
    return made


def timed(trace: list[Event], start: int) -> list[Event]:
    return sorted((moved(event, factor=SECOND, by=start) for event in trace), key=lambda e: (e.end, e.start, e.id))


def tells_what_the_engine_tells(patterns: list[Composite], trace: list[Event], nodes: int, seed: int) -> None:
    subscriptions = build(*patterns)
    world = Federation(nodes, seed=seed)
    world.subscribe(subscriptions)
    since = world.sim.now
    world.run(5 * SECOND)
    events = timed(trace, world.sim.now)
    world.play(events, wait=20 * SECOND)
    want: Counter[Any] = Counter()
    for each in subscriptions:
        # The last moment of which the overlay can be sure.
        until = world.sim.now - world.settings.slack * levels_of(decompose(each))
        want += expected([each], events, since=since, until=until)
    assert world.reported() == want
