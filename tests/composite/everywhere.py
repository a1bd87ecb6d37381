"""One pattern over one trace on every path: general, compiled, batch, pieces, late, two steps, and snapshots."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from likewise.composite import Detection, Detector, Limits
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Subscription, parse

SECOND = 1_000_000
Found = list[tuple[str, ...]]


def trace(text: str) -> list[Event]:
    """Events such as `t1@0 from=Ann to=Bob; t2@1.5 room=1 room=2`; `e@3-8` lasts from 3 to 8."""
    return [_event(part.split()) for part in text.split(";") if part.strip()]


def _event(words: list[str]) -> Event:
    name, _, moment = words[0].partition("@")
    start, _, end = moment.partition("-")
    tuples = tuple((key, _value(value)) for key, value in (word.split("=") for word in words[1:]))
    return Event(name, tuples, (), _instant(start), _instant(end or start))


def _instant(seconds: str) -> int:
    return round(float(seconds) * SECOND)


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


def everywhere(
    patterns: str | list[Subscription],
    events: str | list[Event],
    *,
    until: float | None = None,
    limit: int | None = None,
    policy: Literal["drop oldest", "refuse"] = "drop oldest",
) -> Found:
    """The detections (pattern, then ids of the members), which must be the same on every path."""
    given = parse(patterns) if isinstance(patterns, str) else patterns
    stream = trace(events) if isinstance(events, str) else events
    horizon = max(event.span[1] for event in stream) if until is None else round(until * SECOND)
    noise = _noise(stream[0])
    options: dict[str, Any] = {} if limit is None else {"limits": Limits(limit, policy)}
    ways = {
        "general": _single(Detector(given, compiled=False, **options), stream, horizon),
        "compiled": _single(Detector(given, **options), stream, horizon),
        "batch": _batch(Detector(given, **options), [noise + stream], horizon),
        "general batch": _batch(Detector(given, compiled=False, **options), [noise + stream], horizon),
        "pieces": _batch(Detector(given, **options), [noise + stream[:2], stream[2:3], stream[3:]], horizon),
        "two steps": _single(TwoStepDetector(given, **options), stream, horizon),
        "snapshots": _snapshots(Detector(given, **options), stream, horizon, compiled=True),
        "general snapshots": _snapshots(Detector(given, compiled=False, **options), stream, horizon, compiled=False),
        "late": _late(Detector(given, lateness=_span(stream), **options), stream, horizon),
        "late, general": _late(Detector(given, lateness=_span(stream), compiled=False, **options), stream, horizon),
    }
    expected = [detection.signature for detection in ways["general"]]
    for way, detections in ways.items():
        assert [detection.signature for detection in detections] == expected, way
    return [(detection.pattern, *(event.id for event in detection.members)) for detection in ways["general"]]


def _single(detector: Detector, stream: Sequence[Event], horizon: int) -> list[Detection]:
    return [detection for event in stream for detection in detector.publish(event)] + detector.advance(horizon)


def _noise(first: Event) -> list[Event]:
    """Irrelevant events of the first moment, since a batch of fewer than nine is processed one by one."""
    return [Event(f"noise {number}", (("noise", number),), (), first.span[1], first.span[1]) for number in range(12)]


def _batch(detector: Detector, pieces: list[list[Event]], horizon: int) -> list[Detection]:
    return [detection for piece in pieces for detection in detector.publish_batch(piece)] + detector.advance(horizon)


def _snapshots(detector: Detector, stream: Sequence[Event], horizon: int, *, compiled: bool) -> list[Detection]:
    out = []
    for event in stream:
        out += detector.publish(event)
        detector = Detector.restore(detector.snapshot(), compiled=compiled)
    return out + detector.advance(horizon)


def _span(stream: Sequence[Event]) -> int:
    times = [event.span[1] for event in stream]
    return max(times) - min(times) + 1


def _late(detector: Detector, stream: Sequence[Event], horizon: int) -> list[Detection]:
    """In any order of arrival; `traces` of these tests are in the order of time, start and id."""
    assert all((a.span[1], a.span[0], a.id) < (b.span[1], b.span[0], b.id) for a, b in pairwise(stream))
    shuffled = random.Random(len(stream)).sample(list(stream), len(stream))
    return _single(detector, shuffled, horizon)
