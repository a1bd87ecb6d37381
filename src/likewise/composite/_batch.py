"""The way of a batch: matched at once, plain patterns compiled, the others event by event where something matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite._detection import Detection
from likewise.composite._flat import FlatPatterns
from likewise.composite._resume import run_general
from likewise.events import Event, Instant

if TYPE_CHECKING:
    from likewise.composite.detector import Detector
    from likewise.matching import Matcher


class Scores(NamedTuple):
    """Which event matches which profile of the matcher, and how well."""

    event: NDArray[Any]
    handle: NDArray[Any]
    score: NDArray[Any]


_start_of, _end_of = attrgetter("start"), attrgetter("end")


def good_times(
    events: Sequence[Event], *, after: Instant, seen: Instant | None, lateness: int
) -> NDArray[np.int64] | None:
    """The times of a batch in which no event is to be refused; None if there may be one."""
    try:
        ends = np.fromiter(map(_end_of, events), np.int64, count=len(events))
        starts = np.fromiter(map(_start_of, events), np.int64, count=len(events))
    except (TypeError, OverflowError):
        return None
    latest = np.maximum.accumulate(ends if seen is None else np.append(np.int64(seen), ends)[:-1])
    late = ends < latest - lateness
    return None if late.any() or (ends < starts).any() or ends.min() <= after else ends


def take_batch(detector: Detector, events: Sequence[Event], times: NDArray[np.int64] | None) -> list[Detection]:
    """Ordered and accepted events through all patterns."""
    matcher = detector._batch_matcher
    assert matcher is not None
    if times is None:
        times = np.fromiter((event.span[1] for event in events), np.int64, count=len(events))
    first = int(times[0])
    out = detector._ring(first - 1) if first - 1 > detector._timers.clock else []
    detector._start(first)
    base = detector._ranks
    detector._ranks += len(events)
    flat = detector._flat
    if flat is None or not len(flat):
        found = _general(detector, events, times, base, _scores(matcher, events))
        return out + _finish(detector, times, [row[2] for row in found])
    encoded = flat.encode(events)
    for name in flat.unfit(encoded):
        demote(detector, flat, name)
    scores: Any = None
    if detector._runs:
        scores = _scores(matcher, events)
    elif flat.asks_matcher:
        scores = _scores(matcher, events, flat.promising(encoded))
    hits = flat.hits(*scores) if flat.asks_matcher else None
    plain, places, numbers = flat.process(encoded, events, times, hits, base=base, catalogue=detector._catalogue)
    if not detector._runs:
        return out + _finish(detector, times, plain)
    found = _general(detector, events, times, base, scores)
    found += zip(places.tolist(), numbers.tolist(), plain, strict=True)
    found.sort(key=lambda row: row[:2])
    return out + _finish(detector, times, [row[2] for row in found])


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
    detector: Detector, events: Sequence[Event], times: NDArray[np.int64], base: int, scores: Any
) -> list[tuple[float, int, Detection]]:
    """Detections of the other patterns, with their place among the events and their pattern's number."""
    if scores is None:
        return []
    out: list[tuple[float, int, Detection]] = []

    def ring(limit: Instant) -> None:
        if limit > detector._timers.clock and (rung := detector._ring(limit)):
            places = np.searchsorted(times, [found.time for found in rung], side="right")
            out.extend((place - 0.5, 0, found) for place, found in zip(places.tolist(), rung, strict=True))

    for at, hits in _groups(detector, events, scores):
        ring(int(times[at]) - 1)
        number = detector._number_of
        out.extend((at, number(found), found) for found in detector._deliver(events[at], base + at, hits))
    ring(int(times[-1]) - 1)
    return out


def _groups(detector: Detector, events: Sequence[Event], scores: Any) -> Iterator[tuple[int, list[Any]]]:
    """The events that someone on the general path waits for, in order, with what they match."""
    pool = detector._pool
    order = np.argsort(scores.event, kind="stable")
    handles = scores.handle[order]
    matcher = detector._batch_matcher
    assert matcher is not None  # without one there are no scores
    sure = matcher.probabilities(handles, scores.score[order])
    rows = zip(scores.event[order].tolist(), handles.tolist(), sure.tolist(), strict=True)
    at, hits, meaning = -1, list[Any](), False
    for event, handle, probability in rows:
        if event != at:
            if hits:
                yield at, pool.match(events[at]) if meaning else hits
            at, hits, meaning = event, [], False
        entry = pool.by_handle.get(handle)
        if entry is not None:
            hits.append((entry, probability, None))
            meaning = meaning or entry.by_meaning
    if hits:
        yield at, pool.match(events[at]) if meaning else hits


def demote(detector: Detector, flat: FlatPatterns, name: str) -> None:
    """Take a pattern from the compiled path to the general one, with all that it holds."""
    facts, kept, number = flat.facts(name), flat.kept(name), flat.number(name)
    shape = flat.shape(name)
    flat.remove(name)
    run_general(detector, name, number=number, facts=facts, kept=kept, shape=shape)
