"""The way of a batch: hits at once, plain patterns compiled, the others event by event where something matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.composite.compiled.patterns import FlatPatterns
from likewise.composite.compiled.resume import run_general
from likewise.composite.compiled.rows import EventsByPlace, uncollected
from likewise.composite.detection import Detection
from likewise.composite.general.pool import Answer
from likewise.composite.general.run import deliver
from likewise.events import Event, EventColumns, Instant

if TYPE_CHECKING:
    from likewise.composite.composer import Composer
    from likewise.composite.sources import HitSource


def take_batch(
    composer: Composer, events: Sequence[Event], times: NDArray[np.int64] | None, source: HitSource
) -> list[Detection]:
    """Ordered and accepted events through all patterns; the source says what they hit."""
    if times is None:
        times = np.fromiter((event.span[1] for event in events), np.int64, count=len(events))
    first = int(times[0])
    rung = composer._ring(first - 1) if first - 1 > composer._timers.clock else []
    composer._start(first)
    base = composer._ranks
    composer._ranks += len(events)
    flat = composer._flat
    if not flat:
        found = _general(composer, events, times, base, source.answers(events, source.encode(events), None))
        return rung + _finish(composer, times, [row[2] for row in found])
    flat.tidy()
    encoded = source.encode(events)
    unfit = flat.unfit(encoded)
    if unfit:
        # What is due before these events is due on the path on which it waits.
        rung += flat.sweep(first, composer._catalogue)
        for name in unfit:
            demote(composer, flat, name)
        encoded = source.encode(events)
    scored = source.scored(events, encoded)
    hits = flat.hits(*scored[:3]) if flat.asks_matcher and scored is not None else None
    plain, places, numbers = flat.process(encoded, events, times, hits, base=base, catalogue=composer._catalogue)
    if not composer._runs:
        return _finish(composer, times, plain)
    found = [(-0.5, composer._number_of(one), one) for one in rung]
    found += _general(composer, events, times, base, source.answers(events, encoded, scored))
    found += zip(places.tolist(), numbers.tolist(), plain, strict=True)
    found.sort(key=_place)
    return _finish(composer, times, [row[2] for row in found])


def _place(row: tuple[float, int, Detection]) -> tuple[float, Instant, int]:
    """Timers ring in order of time before the event that comes next; then patterns stand in their order."""
    place, number, found = row
    return place, found.time, number


def _finish(composer: Composer, times: NDArray[np.int64], found: list[Detection]) -> list[Detection]:
    last = int(times[-1])
    composer._now = last if composer._now is None else max(composer._now, last)
    composer._timers.clock = max(composer._timers.clock, last - 1)
    return found


def _general(
    composer: Composer,
    events: EventsByPlace,
    times: NDArray[np.int64],
    base: int,
    answers: Iterable[tuple[int, list[Answer]]],
) -> list[tuple[float, int, Detection]]:
    """Detections of the other patterns, with their place among the events and their pattern's number."""
    out: list[tuple[float, int, Detection]] = []
    timers, number, ends = composer._timers, composer._number_of, times.tolist()

    def ring(limit: Instant) -> None:
        if limit > timers.clock and (rung := composer._ring(limit)):
            places = np.searchsorted(times, [found.time for found in rung], side="right")
            out.extend((place - 0.5, number(one), one) for place, one in zip(places.tolist(), rung, strict=True))

    with uncollected():
        matched = list(answers)
        if isinstance(events, EventColumns):
            events = events.some(np.fromiter((at for at, _ in matched), np.int64, count=len(matched)))
        for at, hits in matched:
            if not timers.idle(ends[at] - 1):
                ring(ends[at] - 1)
            found = deliver(hits, events[at], base + at)
            if found:
                out.extend((at, number(one), one) for one in found)
        ring(ends[-1] - 1)
    return out


def demote(composer: Composer, flat: FlatPatterns, name: str) -> None:
    """Take a pattern from the compiled path to the general one, with all that it holds."""
    facts, kept, number = flat.facts(name), flat.kept(name), flat.number(name)
    # First there, then away from here: a profile that both want keeps its number.
    run_general(composer, name, number=number, facts=facts, kept=kept, shape=flat.shape(name))
    flat.remove(name)
