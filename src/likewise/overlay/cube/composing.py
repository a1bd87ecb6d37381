"""The core behind the cube: entry nodes find hits, hits travel with their events, and here they are composed."""

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
    """One pattern at its rendezvous: the core composes the hits that entry nodes found, in their order."""

    def __init__(self, source: str, *, measure: Measure | None = None, state: bytes | None = None) -> None:
        """With a `state`, it goes on where another run stood."""
        # Single events come, each to few patterns: the compiled path would only cost.
        if state is None:
            self._composer = Composer(_parsed(source), measure=measure, max_jump=None, compiled=False)
        else:
            self._composer = Composer.restore(state, measure=measure, compiled=False)
        self._profiles = {
            _plain_key(wanted.profile, wanted.options): number for number, wanted in self._composer.profiles.items()
        }

    def publish(self, matched: MatchedEvent) -> list[Detection]:
        """An event with its hits."""
        return self.publish_event(matched.event(), matched.hits)

    def publish_event(self, event: Event, found: tuple[TopicHit, ...]) -> list[Detection]:
        """An event, and what entry nodes found."""
        profiles = self._profiles
        hits = [
            Hit(event, profiles[hit.topic], hit.probability, mapped_of(event, hit))
            for hit in found
            if hit.topic in profiles
        ]
        return self._composer.take(hits) if hits else self._composer.notice(event.span[1])

    def advance(self, instant: Instant) -> list[Detection]:
        """Event time has come so far."""
        return self._composer.advance(instant)

    @property
    def due(self) -> Instant | None:
        """The next moment at which time alone changes something."""
        return self._composer.due

    def snapshot(self) -> bytes:
        """Its state, to go on elsewhere."""
        return self._composer.snapshot()


def mapped_of(event: Event, hit: TopicHit) -> dict[str, tuple[tuple[Value, float], ...]] | None:
    """The values that stand for a profile's own attributes, most likely first."""
    out: dict[str, dict[Value, float]] = {}
    for name, place, weight in hit.values:
        out.setdefault(normalise(name), {}).setdefault(event.tuples[place][1], weight)
    return {name: tuple(values.items()) for name, values in out.items()} or None


def verify(source: str, parts: Sequence[MatchedEvent], *, measure: Measure | None = None) -> list[Report]:
    """What a whole pattern makes of these events alone, all of them.

    For a pattern whose detections depend on nothing but their own events, this is the definition.
    """
    run = PatternRun(source, measure=measure)
    events = [(part, part.event()) for part in parts]
    found = [detection for part, event in events for detection in run.publish_event(event, part.hits)]
    known = {id(event): part for part, event in events}
    every = set(known)
    return [
        report_of(detection, [known[id(event)] for event in detection.members])
        for detection in found
        if {id(event) for event in detection.members} == every
    ]


def report_of(detection: Detection, members: Sequence[MatchedEvent | None]) -> Report:
    """A detection as its subscriber gets it; two of the same events in the same roles are one."""
    # A silence has no members: its span and probability tell it from others that are known at the same moment.
    parts: list[str | bytes] = [f"{detection.time} {detection.start} {detection.end} {detection.probability:.9f}"]
    for name, matched, event in zip(detection.names, members, detection.members, strict=True):
        # Two time events differ in their time alone.
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
    """A time event says nothing but its time."""
    return b"@%d" % event.span[1]


def report_of_event(matched: MatchedEvent, topic: Key) -> Report:
    """A single event for a subscriber of its topic."""
    [hit] = [hit for hit in matched.hits if hit.topic == topic]
    span = matched.end, matched.start, matched.end
    return Report(id_of(matched.id), *span, hit.probability, (NAME,), (matched.raw,))
