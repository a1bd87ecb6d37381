"""Composition at the rendezvous: the core's composer runs on the hits that entry nodes found and sent with events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from likewise.composite import Composer, Detection, Hit
from likewise.events import Event, Instant, Value, normalise
from likewise.language import Options, Profile, Subscription, parse
from likewise.overlay.cube.decompose import NAME, topic_of
from likewise.overlay.cube.items import MatchedEvent, Report, TopicHit, id_of
from likewise.overlay.ring.ids import Key
from likewise.semantics import Measure


@lru_cache(maxsize=1 << 16)
def _plain_key(profile: Profile, options: Options) -> Key:
    return topic_of(profile, options).key


@lru_cache(maxsize=4096)
def _parsed(source: str) -> tuple[Subscription, ...]:
    return tuple(parse(source))


class PatternRun:
    """One pattern at its rendezvous: composes hits in the order in which they are published."""

    def __init__(self, source: str, *, measure: Measure | None = None, state: bytes | None = None) -> None:
        """With a `state`, continue from the snapshot of another run."""
        # Events come one at a time, each for few patterns: the compiled path would be slower.
        if state is None:
            self._composer = Composer(_parsed(source), measure=measure, max_jump=None, compiled=False)
        else:
            self._composer = Composer.restore(state, measure=measure, compiled=False)
        self._profiles = {
            _plain_key(member.profile, member.options): number for number, member in self._composer.profiles.items()
        }

    def publish(self, matched: MatchedEvent) -> list[Detection]:
        """Publish an event with its hits."""
        return self.publish_event(matched.event(), matched.hits)

    def publish_event(self, event: Event, topic_hits: tuple[TopicHit, ...]) -> list[Detection]:
        """Publish a decoded event with the hits that its entry node found."""
        profiles = self._profiles
        hits = [
            Hit(event, profiles[hit.topic], hit.probability, mapped_of(event, hit))
            for hit in topic_hits
            if hit.topic in profiles
        ]
        return self._composer.take(hits) if hits else self._composer.notice(event.span[1])

    def advance(self, instant: Instant) -> list[Detection]:
        """Advance event time."""
        return self._composer.advance(instant)

    @property
    def due(self) -> Instant | None:
        """The next event time at which a timer fires."""
        return self._composer.due

    def snapshot(self) -> bytes:
        """The state, from which another run can continue."""
        return self._composer.snapshot()


def mapped_of(event: Event, hit: TopicHit) -> dict[str, tuple[tuple[Value, float], ...]] | None:
    """The event's values for a profile's approximate attributes, most likely first."""
    out: dict[str, dict[Value, float]] = {}
    for name, place, weight in hit.values:
        out.setdefault(normalise(name), {}).setdefault(event.tuples[place][1], weight)
    return {name: tuple(values.items()) for name, values in out.items()} or None


def verify(source: str, parts: Sequence[MatchedEvent], *, measure: Measure | None = None) -> list[Report]:
    """The detections of a pattern that consist of exactly these events.

    This is the definition of a pattern whose detections depend only on their own events.
    """
    run = PatternRun(source, measure=measure)
    events = [(part, part.event()) for part in parts]
    detections = [detection for part, event in events for detection in run.publish_event(event, part.hits)]
    parts_by_event = {id(event): part for part, event in events}
    return [
        report_of(detection, [parts_by_event[id(event)] for event in detection.members])
        for detection in detections
        if {id(event) for event in detection.members} == parts_by_event.keys()
    ]


def report_of(detection: Detection, members: Sequence[MatchedEvent | None]) -> Report:
    """The report of a detection; the same events in the same roles give the same id."""
    # A detected absence has no members: only span and probability distinguish it from others at the same time.
    parts: list[str | bytes] = [f"{detection.time} {detection.start} {detection.end} {detection.probability:.9f}"]
    for name, matched, event in zip(detection.names, members, detection.members, strict=True):
        # Time events differ only in their time.
        parts += [name, _moment(event) if matched is None else matched.id]
    raw = tuple(
        _moment(event) if matched is None else matched.raw
        for matched, event in zip(members, detection.members, strict=True)
    )
    return Report(
        id_of(*parts),
        detection.time,
        detection.start,
        detection.end,
        detection.probability,
        detection.names,
        raw,
    )


def _moment(event: Event) -> bytes:
    """Encode a time event, which has only its time."""
    return b"@%d" % event.span[1]


def report_of_event(matched: MatchedEvent, topic: Key) -> Report:
    """The report of a single event, for a subscriber of its topic."""
    [hit] = [hit for hit in matched.hits if hit.topic == topic]
    span = matched.end, matched.start, matched.end
    return Report(id_of(matched.id), *span, hit.probability, (NAME,), (matched.raw,))
