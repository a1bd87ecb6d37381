"""One keyed pattern, compared with peers, and a restart in the middle of the stream."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from _composite_world import MINUTE, Row, best, rate, ready, rooms, row, same_room, timed
from _flink import keyed_row
from likewise.composite import Detector
from likewise.events import Event

FLINK = 400_000
"""The number of events for Flink, which reads them five times; its rate does not depend on it."""


def keyed(size: int, _quick: bool) -> Iterator[Row]:
    """A then B in the same room within 30 minutes."""
    stream = rooms(size)
    for first, target in ((True, ">= 500,000"), (False, ">= 300,000")):
        pattern = [same_room(first=first)]
        taken, found = best(lambda p=pattern: ready(p, stream), lambda d: d.publish_batch(stream[100:]))  # type: ignore[misc]
        what = "first pairs" if first else "all pairs"
        yield rate(f"keyed, {what}: {size:,} events, {len(found):,} detections", size, taken, target)
    general = Detector(compiled=False)
    general.add("p", same_room(first=True))
    part = stream[: size // 10]
    taken, _ = timed(lambda: general.publish_batch(part))
    yield rate("keyed, first pairs, general path", len(part), taken)


def peers(size: int, _quick: bool) -> Iterator[Row]:
    """The same first pairs, found by other systems in the same events."""
    stream = rooms(size)
    taken, found = timed(lambda: sum(1 for _ in plain_python(stream)))
    yield rate(f"peer: plain Python dict, first pairs ({found:,})", size, taken)
    if importlib.util.find_spec("bytewax") is None:
        yield {"what": "peer: bytewax", "value": "skipped", "unit": "not installed"}
    else:
        with_bytewax(stream[:1000])
        taken, found = timed(lambda: with_bytewax(stream))
        yield rate(f"peer: bytewax, first pairs ({found:,})", size, taken)
    yield keyed_row(stream[:FLINK])


def plain_python(stream: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """Hand-written code for this pattern only."""
    waiting: dict[Any, Event] = {}
    for event in stream:
        (_, kind), (_, room) = event.tuples
        if kind == "A":
            held = waiting.get(room)
            if held is None or event.end - held.end > 30 * MINUTE:  # type: ignore[operator]
                waiting[room] = event
        elif kind == "B":
            held = waiting.get(room)
            if held is not None and 0 < event.end - held.end <= 30 * MINUTE:  # type: ignore[operator]
                del waiting[room]
                yield held, event


def with_bytewax(stream: Sequence[Event]) -> int:
    """The same as a keyed stateful dataflow."""

    def step(held: Event | None, event: Event) -> tuple[Event | None, list[tuple[Event, Event]]]:
        kind = event.tuples[0][1]
        over = held is not None and event.end - held.end > 30 * MINUTE  # type: ignore[operator]
        if kind == "A":
            return (event if held is None or over else held), []
        if held is None or over:
            return None, []
        return None, [(held, event)]

    return dataflow(stream, "AB", step)


def dataflow(stream: Sequence[Event], kinds: str, step: Callable[[Any, Event], tuple[Any, list[Any]]]) -> int:
    """The number of results of a stateful step over events of some types, keyed by room."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    found: list[Any] = []
    flow = Dataflow("rooms")
    source = op.input("in", flow, TestingSource(stream, batch_size=1000))
    wanted = op.filter("kinds", source, lambda event: event.tuples[0][1] in kinds)
    keyed_on = op.key_on("room", wanted, lambda event: event.tuples[1][1])
    pairs = op.stateful_flat_map("pair", keyed_on, step)
    op.output("out", pairs, TestingSink(found))
    run_main(flow)
    return len(found)


def restart(size: int, _quick: bool) -> Iterator[Row]:
    """Snapshot, restore and continue: the same detections as without a restart."""
    stream = rooms(size, seed=5)
    whole = Detector()
    whole.add("p", same_room(first=True))
    expected = [detection.signature for detection in whole.publish_batch(stream)]
    half = Detector()
    half.add("p", same_room(first=True))
    before = half.publish_batch(stream[: size // 2])
    spent, data = timed(half.snapshot)
    again, detector = timed(lambda: Detector.restore(data))
    after = detector.publish_batch(stream[size // 2 :])
    same = [detection.signature for detection in (*before, *after)] == expected
    what = f"restart in the middle of {size:,} events gives the same {len(expected):,} detections"
    yield {"what": what, "value": same, "unit": "", "target": "True"}
    yield row(f"writing a snapshot of {len(data):,} bytes", spent.wall, "s")
    yield row("restoring it", again.wall, "s")
