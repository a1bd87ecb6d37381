"""The way of a batch: matched at once, plain patterns compiled, the others event by event where something matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite._columns import Encoded
from likewise.composite._detection import Detection
from likewise.composite._flat import FlatPatterns
from likewise.composite._flat_rows import uncollected
from likewise.composite._pool import Answer
from likewise.composite._resume import run_general
from likewise.composite._run import deliver
from likewise.events import Event, Instant

if TYPE_CHECKING:
    from likewise.composite.detector import Detector
    from likewise.matching import Matcher


class Scores(NamedTuple):
    """Which event matches which profile of the matcher, and how well."""

    event: NDArray[Any]
    handle: NDArray[Any]
    score: NDArray[Any]


def take_batch(detector: Detector, events: Sequence[Event], times: NDArray[np.int64] | None) -> list[Detection]:
    """Ordered and accepted events through all patterns."""
    matcher = detector._batch_matcher
    assert matcher is not None
    if times is None:
        times = np.fromiter((event.span[1] for event in events), np.int64, count=len(events))
    first = int(times[0])
    rung = detector._ring(first - 1) if first - 1 > detector._timers.clock else []
    detector._start(first)
    base = detector._ranks
    detector._ranks += len(events)
    columns = detector._pool.columns
    assert columns is not None  # whoever has a matcher has them
    flat = detector._flat
    if not flat:
        columns.trim()
        found = _general(detector, events, times, base, _answers(detector, events, columns.encode(events), None))
        return rung + _finish(detector, times, [row[2] for row in found])
    flat.tidy()
    encoded = columns.encode(events)
    unfit = flat.unfit(encoded)
    if unfit:
        # What is due before these events is due on the path on which it waits.
        rung += flat.sweep(first, detector._catalogue)
        for name in unfit:
            demote(detector, flat, name)
        encoded = columns.encode(events)
    scores = None
    if detector._pool.by_handle:
        scores = _scores(matcher, events)
    elif flat.asks_matcher:
        scores = _scores(matcher, events, flat.promising(encoded))
    hits = flat.hits(*scores) if flat.asks_matcher and scores is not None else None
    plain, places, numbers = flat.process(encoded, events, times, hits, base=base, catalogue=detector._catalogue)
    if not detector._runs:
        return _finish(detector, times, plain)
    found = [(-0.5, detector._number_of(one), one) for one in rung]
    found += _general(detector, events, times, base, _answers(detector, events, encoded, scores))
    found += zip(places.tolist(), numbers.tolist(), plain, strict=True)
    found.sort(key=_place)
    return _finish(detector, times, [row[2] for row in found])


def _place(row: tuple[float, int, Detection]) -> tuple[float, Instant, int]:
    """Timers ring in order of time before the event that comes next; then patterns stand in their order."""
    place, number, found = row
    return place, found.time, number


def _scores(matcher: Matcher, events: Sequence[Event], some: NDArray[np.int64] | None = None) -> Scores:
    """The matcher's scores of all events, or of some of them under their own numbers."""
    chosen = events if some is None else [events[at] for at in some.tolist()]
    event, handle, score = matcher.score_batch(matcher.encode(chosen))
    return Scores(event if some is None else some[event], handle, score)


def _finish(detector: Detector, times: NDArray[np.int64], found: list[Detection]) -> list[Detection]:
    last = int(times[-1])
    detector._now = last if detector._now is None else max(detector._now, last)
    detector._timers.clock = max(detector._timers.clock, last - 1)
    return found


def _general(
    detector: Detector,
    events: Sequence[Event],
    times: NDArray[np.int64],
    base: int,
    answers: Iterator[tuple[int, list[Answer]]],
) -> list[tuple[float, int, Detection]]:
    """Detections of the other patterns, with their place among the events and their pattern's number."""
    out: list[tuple[float, int, Detection]] = []
    timers, number, ends = detector._timers, detector._number_of, times.tolist()

    def ring(limit: Instant) -> None:
        if limit > timers.clock and (rung := detector._ring(limit)):
            places = np.searchsorted(times, [found.time for found in rung], side="right")
            out.extend((place - 0.5, number(one), one) for place, one in zip(places.tolist(), rung, strict=True))

    with uncollected():
        for at, hits in answers:
            if not timers.idle(ends[at] - 1):
                ring(ends[at] - 1)
            found = deliver(hits, events[at], base + at)
            if found:
                out.extend((at, number(one), one) for one in found)
        ring(ends[-1] - 1)
    return out


def _answers(
    detector: Detector, events: Sequence[Event], encoded: Encoded, scores: Scores | None
) -> Iterator[tuple[int, list[Answer]]]:
    """The events that match a profile of the general path, in order, with what they match."""
    pool = detector._pool
    at, hits, meaning = -1, list[Answer](), False
    for event, code, sure in _rows(detector, events, encoded, scores):
        if event != at:
            if hits:
                yield at, pool.match(events[at]) if meaning else hits
            at, hits, meaning = event, [], False
        entry = pool.by_number.get(code) if code >= 0 else pool.by_handle.get(~code)
        # An event may say the same twice.
        if entry is not None and not (hits and any(entry is hit[0] for hit in hits)):
            hits.append((entry, sure, None))
            meaning = meaning or entry.by_meaning
    if hits:
        yield at, pool.match(events[at]) if meaning else hits


def _rows(
    detector: Detector, events: Sequence[Event], encoded: Encoded, scores: Scores | None
) -> Iterator[tuple[int, int, float]]:
    """Event, number of a simple profile or complement of the matcher's handle, and how sure; by event."""
    pool, matcher = detector._pool, detector._batch_matcher
    assert pool.columns is not None
    assert matcher is not None
    predicate = pool.columns.predicate_of[encoded.ids]
    where = np.flatnonzero(predicate >= 0)
    event, code = np.searchsorted(encoded.starts, where, side="right") - 1, predicate[where]
    if not pool.by_handle:
        return zip(event.tolist(), code.tolist(), repeat(1.0))
    if scores is None:
        scores = _scores(matcher, events)
    sure = np.concatenate((np.ones(len(where)), matcher.probabilities(scores.handle, scores.score)))
    event, code = np.concatenate((event, scores.event)), np.concatenate((code, ~scores.handle))
    order = np.argsort(event, kind="stable")
    return zip(event[order].tolist(), code[order].tolist(), sure[order].tolist(), strict=True)


def demote(detector: Detector, flat: FlatPatterns, name: str) -> None:
    """Take a pattern from the compiled path to the general one, with all that it holds."""
    facts, kept, number = flat.facts(name), flat.kept(name), flat.number(name)
    shape = flat.shape(name)
    flat.remove(name)
    run_general(detector, name, number=number, facts=facts, kept=kept, shape=shape)
