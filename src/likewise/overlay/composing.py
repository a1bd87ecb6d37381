"""The core behind the cube: whole patterns, run on events that bring their matches with them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from likewise.composite import Detection, Detector
from likewise.events import Event, Instant, Value
from likewise.language import Composite, Options, Predicate, Profile, Subscription, parse
from likewise.overlay.decompose import NAME, topic_of
from likewise.overlay.ids import Key
from likewise.overlay.items import Carried, Report, TopicHit, id_of
from likewise.semantics import Measure


@dataclass(frozen=True, slots=True)
class CarriedPair:
    """Which of the event's tuples answers a predicate."""

    predicate: Predicate
    tuple: tuple[str, Value]


@dataclass(frozen=True, slots=True)
class CarriedMapping:
    """A mapping as the entry node found it."""

    probability: float
    correspondences: tuple[CarriedPair, ...]


@dataclass(frozen=True, slots=True)
class CarriedMatch:
    """A match that came with its event."""

    subscription: Hashable
    probability: float
    mappings: tuple[CarriedMapping, ...]


class CarriedMatcher:
    """Answers from what came with the event: the entry node has matched it."""

    def __init__(self) -> None:
        self._profiles: dict[int, tuple[Profile, Hashable]] = {}
        self._by_topic: dict[Key, dict[int, None]] = {}
        self._numbers = 0
        self.hits: tuple[TopicHit, ...] = ()

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:
        """A profile that a pattern waits for."""
        self._numbers += 1
        self._profiles[self._numbers] = (profile, key)
        self._by_topic.setdefault(_topic_key(profile, options or Options()), {})[self._numbers] = None
        return self._numbers

    def remove(self, handle: int) -> None:
        """It waits no longer."""
        del self._profiles[handle]
        for handles in self._by_topic.values():
            handles.pop(handle, None)

    def activate(self, handle: int) -> None:
        """Nothing is switched here: an event brings all its matches."""

    def deactivate(self, handle: int) -> None:
        """As above."""

    def match(self, event: Event) -> Iterable[CarriedMatch]:
        """The profiles that the present event matches."""
        for hit in self.hits:
            for handle in self._by_topic.get(hit.topic, ()):
                profile, key = self._profiles[handle]
                yield CarriedMatch(key, hit.probability, tuple(_mappings(profile, event, hit)))


def _mappings(profile: Profile, event: Event, hit: TopicHit) -> Iterable[CarriedMapping]:
    by_name = {predicate.attribute: predicate for predicate in profile.predicates}
    # A weight above one another separates the mappings: each alternative is one.
    for name, place, weight in hit.values:
        if name in by_name:
            yield CarriedMapping(weight, (CarriedPair(by_name[name], event.tuples[place]),))


@lru_cache(maxsize=1 << 16)
def _plain_key(profile: Profile, options: Options) -> Key:
    return topic_of(profile, options).key


def _topic_key(profile: Profile, options: Options) -> Key:
    return _plain_key(profile, options)


@lru_cache(maxsize=4096)
def _parsed(source: str) -> tuple[Subscription, ...]:
    return tuple(parse(source))


class PatternRun:
    """One pattern at its rendezvous; events must come in their order."""

    def __init__(self, source: str, *, measure: Measure | None = None) -> None:
        self.source = source
        self._measure = measure
        self._matcher = CarriedMatcher()
        self._detector = self._fresh()

    def _fresh(self) -> Detector:
        *known, pattern = _parsed(self.source)
        detector = Detector(matcher=self._matcher, measure=self._measure, max_jump=None)
        for subscription in known:
            detector.define(subscription)
        assert isinstance(pattern.body, Composite)
        detector.add(pattern.name, pattern.body, pattern.options)
        return detector

    def publish(self, carried: Carried) -> list[Detection]:
        """An event with its matches."""
        return self.publish_event(carried.event(), carried.hits)

    def publish_event(self, event: Event, hits: tuple[TopicHit, ...]) -> list[Detection]:
        """An event, and its matches."""
        self._matcher.hits = hits
        return self._detector.publish(event)

    def advance(self, instant: Instant) -> list[Detection]:
        """Event time has come so far."""
        self._matcher.hits = ()
        return self._detector.advance(instant)

    @property
    def due(self) -> Instant | None:
        """The next moment at which time alone changes something."""
        return self._detector.due

    def snapshot(self) -> bytes:
        """Its state, to go on elsewhere."""
        return self._detector.snapshot()

    @classmethod
    def restored(cls, source: str, state: bytes, *, measure: Measure | None = None) -> PatternRun:
        """A run that goes on where another stood."""
        run = cls.__new__(cls)
        run.source, run._measure, run._matcher = source, measure, CarriedMatcher()
        run._detector = Detector.restore(state, matcher=run._matcher, measure=measure)
        return run


def verify(source: str, parts: Sequence[Carried], *, measure: Measure | None = None) -> list[Report]:
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


def report_of(detection: Detection, members: Sequence[Carried | None]) -> Report:
    """A detection as its subscriber gets it; two of the same events in the same roles are one."""
    parts: list[str | bytes] = [str(detection.time)]
    for name, carried in zip(detection.names, members, strict=True):
        parts += [name, b"" if carried is None else carried.id]
    raw = tuple(
        _moment(event) if carried is None else carried.raw
        for carried, event in zip(members, detection.members, strict=True)
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


def report_of_event(carried: Carried, topic: Key) -> Report:
    """A single event for a subscriber of its topic."""
    [hit] = [hit for hit in carried.hits if hit.topic == topic]
    span = carried.end, carried.start, carried.end
    return Report(id_of(carried.id), *span, hit.probability, (NAME,), (carried.raw,))
