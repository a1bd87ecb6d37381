"""The engine: subscribe, publish events, advance event time, and get notifications.

The same engine runs in a script and in the broker. Spark and the overlay run its two halves in different places: a
matcher where events arrive, and a composer where the hits of a pattern meet.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from likewise.composite import Detection, Detector, HitColumns, Limits, PatternExplanation, Refused
from likewise.errors import BuildError, InputError
from likewise.events import Event, EventColumns, Instant, Value, to_instant
from likewise.language import (
    Composite,
    Duration,
    Field,
    Member,
    Options,
    Profile,
    Reference,
    Subscription,
    format_subscription,
    members,
    parse,
    parse_duration,
    parse_subscription,
    write_header,
)
from likewise.matching import Background, Explanation, Match, Matcher, StreamLearner, StreamSample
from likewise.semantics import Competitors, Measure, Space

Clock: TypeAlias = Callable[[], Instant]
"""Returns the time for events that have none."""

Interest: TypeAlias = str | Subscription | Mapping[str, str] | Iterable[str | Subscription]
"""Subscriptions: as text, as a dictionary of texts by name, as a list of texts, or parsed."""

SNAPSHOT: Final = ("likewise-engine", 1)
"""Format and version of snapshots."""


def system_clock() -> Instant:
    """Microseconds since 1970, from the system clock."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Notification:
    """A subscription, the events that answer it, and a score.

    `match` is set for a single event, `detection` for a pattern; either explains the score.
    """

    subscription: str
    events: tuple[Event, ...]
    score: float
    match: Match | None = None
    detection: Detection | None = None

    @property
    def event(self) -> Event:
        """The event; for a pattern, its last event."""
        return self.events[-1]

    def __repr__(self) -> str:
        ids = ", ".join(event.id or "?" for event in self.events)
        return f"Notification({self.subscription!r}, events=[{ids}], score={self.score:.3f})"

    def _repr_html_(self) -> str:
        why = "" if self.match is None else f"<pre>{html.escape(self.match.explain().text())}</pre>"
        return f"<b>{html.escape(repr(self))}</b>{why}"


class Engine:
    """Matches events against subscriptions and patterns in this process and returns notifications.

    >>> engine = Engine()
    >>> engine.subscribe("parking: {slots > 0, city = Galway}")
    ['parking']
    >>> [notification.subscription for notification in engine.publish({"city": "galway", "slot": 3})]
    ['parking']
    """

    def __init__(
        self,
        *,
        spaces: Space | str | Path | Sequence[Space | str | Path] = (),
        measure: Measure | Mapping[str, Measure] | None = None,
        approach: str | None = None,
        threshold: float | None = None,
        background: Competitors | Background | Literal["stream"] | None = "stream",
        lateness: Duration | str | timedelta = 0,
        limits: Limits | None = None,
        refuse: Callable[[Refused], None] | None = None,
        clock: Clock = system_clock,
        matcher: Matcher | None = None,
        **options: Any,
    ) -> None:
        """All arguments are optional; spaces make `~` more accurate.

        - `spaces`: names or paths of spaces, such as `"wordnet"` or `["wordnet", "wikipedia"]`.
        - `measure`: a measure of your own instead, one for all approaches or a dictionary by approach.
        - `approach` and `threshold`: defaults for subscriptions that set none.
        - `background`: how common the words of the stream are. By default the engine learns it from its first events:
          after 64 of them, and finally after 256. `Background.of(events)` gives a sample in advance, None switches it
          off.
        - `lateness`: how late events may arrive for patterns, such as `"5 minutes"`.
        - `limits`: how many instances patterns may hold. `refuse` is called with events that patterns refuse, such as
          late ones.
        - `clock`: the time for events that have none.
        - `matcher`: an existing matcher, in place of all options about matching.

        Other options are those of `Matcher`.
        """
        collects = background == "stream" and matcher is None and approach in (None, "evidence")
        if background == "stream":
            background = None
        given = {"measure": measure, "approach": approach, "threshold": threshold, "background": background}
        chosen = {name: value for name, value in given.items() if value is not None} | options
        if not isinstance(spaces, Sequence) or isinstance(spaces, str):
            spaces = (spaces,)
        if spaces:
            chosen["spaces"] = spaces
        if matcher is not None and chosen:
            raise BuildError(
                f"a matcher is given, so {', '.join(chosen)} cannot be set", hint="leave out the matcher or the options"
            )
        self.matcher = matcher if matcher is not None else Matcher(**chosen)
        self._learner = StreamLearner(self.matcher, StreamSample()) if collects else None
        self._clock = clock
        self._lateness = _length(lateness)
        self._limits = limits
        self._refuse = refuse
        self._handles: dict[str, int] = {}
        self._single: set[int] = set()
        self._subscriptions: dict[str, Subscription] = {}
        self._detector: Detector | None = None
        self._nameless = 0

    @property
    def subscriptions(self) -> dict[str, Subscription]:
        """All subscriptions by name."""
        return dict(self._subscriptions)

    @property
    def profiles(self) -> list[str]:
        """The names of the subscriptions to single events."""
        return list(self._handles)

    def __repr__(self) -> str:
        single, patterns = len(self._handles), len(self._subscriptions) - len(self._handles)
        subscriptions = f"{single:,} subscription{'' if single == 1 else 's'} to single events"
        return f"<Engine: {subscriptions}, {patterns:,} pattern{'' if patterns == 1 else 's'}>"

    def _repr_html_(self) -> str:
        listed = "\n".join(map(format_subscription, self._subscriptions.values()))
        return f"<b>{html.escape(repr(self))}</b><pre>{html.escape(listed)}</pre>"

    def explain(
        self, name: str, event: Event | Mapping[str, Value | Iterable[Value]]
    ) -> Explanation | PatternExplanation:
        """Explain why an event matches a subscription, or why not and what score it would need.

        For a pattern: how the event answers each part, how far the pattern got with the events so far, and which
        attributes are missing. This does not publish the event.
        """
        if not isinstance(name, str):
            raise BuildError("explain takes the name of a subscription first", hint="explain(name, event)")
        subscription = self._subscriptions.get(name)
        if subscription is None or not isinstance(subscription.body, Composite):
            return self.matcher.explain(self._handle(name), self._stamp(event))
        stamped = self._stamp(event)
        parts = [
            (role, replace(self.matcher.explain(profile, stamped, options=options), subscription=role))
            for role, profile, options in self._parts(subscription)
        ]
        [state] = [state for state in self.detector.state() if state.name == name]
        conditions = subscription.body.where
        compared = [side for condition in conditions for side in (condition.left, condition.right)]
        fields = [side for side in compared if isinstance(side, Field)]
        answered = {role for role, part in parts if part.matched}
        missing = [
            (field.alias, field.attribute)
            for field in fields
            if field.alias in answered and field.attribute not in stamped.attributes
        ]
        return PatternExplanation(name, stamped.id, tuple(parts), state, tuple(dict.fromkeys(missing)))

    def _parts(self, pattern: Subscription) -> Iterator[tuple[str, Profile, Options]]:
        """The profiles of a pattern's members, each with its alias and options."""
        assert isinstance(pattern.body, Composite)
        for number, leaf in enumerate(members(pattern.body.root), 1):
            if isinstance(leaf, Member):
                yield leaf.alias or f"part {number}", leaf.profile, pattern.options
            elif isinstance(leaf, Reference) and leaf.name in self._subscriptions:
                inner = self._subscriptions[leaf.name]
                if isinstance(inner.body, Composite):
                    yield from self._parts(inner)
                else:
                    yield leaf.alias or leaf.name, inner.body, inner.options

    def rank(self, name: str, events: Sequence[Event], *, limit: int | None = None) -> list[Match]:
        """The events with a score above zero for a subscription, best first, whatever its threshold."""
        return self.matcher.rank(self._handle(name), events, limit=limit)

    def without_thresholds(self) -> Matcher:
        """A matcher of the single-event subscriptions that returns every score above zero, to find near misses."""
        return self.matcher.without_thresholds(self._handles.values())

    @property
    def has_patterns(self) -> bool:
        """Whether a pattern was ever subscribed."""
        return self._detector is not None

    @property
    def detector(self) -> Detector:
        """The detector of the patterns, created with the first one."""
        if self._detector is None:
            self._detector = Detector(
                matcher=self.matcher,
                measure=self.matcher.measure,
                lateness=self._lateness,
                limits=self._limits,
                refuse=self._refuse,
            )
        return self._detector

    def subscribe(self, interest: Interest) -> list[str]:
        """Add subscriptions and return their names; on an error, none is added."""
        new = list(_subscriptions_of(interest))
        added: list[str] = []
        try:
            if any(isinstance(subscription.body, Composite) for subscription in new):
                for subscription in (*self._subscriptions.values(), *new):
                    self.detector.define(subscription)
            for subscription in new:
                self._subscribe(subscription)
                added.append(subscription.name)
        except BaseException:  # all or none, even on Ctrl-C
            for name in added:
                self.unsubscribe(name)
            raise
        return added

    def unsubscribe(self, name: str) -> None:
        """Remove a subscription by name."""
        subscription = self._subscriptions.get(name)
        if subscription is None:
            known = ", ".join(list(self._subscriptions)[:5]) or "none"
            raise BuildError(f"there is no subscription {name!r}", hint=f"subscribed: {known}")
        if isinstance(subscription.body, Composite):
            self.detector.remove(name)
        else:
            handle = self._handles.pop(name)
            self._single.discard(handle)
            self.matcher.remove(handle)
        del self._subscriptions[name]

    def publish(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> list[Notification]:
        """Publish one event and return its notifications, best score first."""
        return self.publish_batch((event,))

    def publish_batch(self, events: Sequence[Event | Mapping[str, Value | Iterable[Value]]]) -> list[Notification]:
        """Publish many events at once; return notifications of single events in event order, then those of patterns."""
        stamped = events.stamped(self._clock) if isinstance(events, EventColumns) else list(map(self._stamp, events))
        parts = (stamped,) if self._learner is None else self._learner.parts(stamped)
        single: list[Notification] = []
        composed: list[Notification] = []
        for part in parts:
            matches, detections = self._publish(part)
            single += matches
            composed += detections
        return single + composed

    def learn_background(self, events: Iterable[Event]) -> None:
        """Learn the background from the first of these events now, instead of from the events that are published."""
        if self._learner is not None:
            self._learner = StreamLearner(self.matcher, StreamSample(events, known=True))

    def _publish(self, events: Sequence[Event]) -> tuple[list[Notification], list[Notification]]:
        """The notifications of single events, and those of patterns."""
        matcher = self.matcher
        # One encoding and one scoring call serve single subscriptions and the members of patterns.
        encoded = matcher.encode(events)
        scores = matcher.score_batch(encoded)
        single = [
            Notification(str(match.subscription), (match.event,), match.score, match)
            for _, match in matcher.matches_of(encoded, scores, handles=self._single)
        ]
        if self._detector is None:
            return single, []
        hits = HitColumns(scores.event, scores.handle, matcher.probabilities(scores.handle, scores.score))
        return single, [_notification(detection) for detection in self._detector.publish_scored(events, hits)]

    def advance(self, instant: Instant | datetime) -> list[Notification]:
        """Advance event time to `instant`, so that windows and absences that end by then are decided."""
        if isinstance(instant, datetime):
            instant = to_instant(instant)
        if self._detector is None:
            return []
        return [_notification(detection) for detection in self._detector.advance(instant)]

    def snapshot(self) -> bytes:
        """The subscriptions and the state of all patterns, as bytes in a versioned format."""
        kind, version = SNAPSHOT
        return msgspec.msgpack.encode(
            {
                "format": kind,
                "version": version,
                "nameless": self._nameless,
                "subscriptions": list(map(format_subscription, self._subscriptions.values())),
                "detector": None if self._detector is None else self._detector.snapshot(),
                "sample": None if self._learner is None else [event.tuples for event in self._learner.sample.events],
                "foreseen": self._learner is not None and self._learner.sample.known,
            }
        )

    @classmethod
    def restore(cls, data: bytes, **options: Any) -> Engine:
        """An engine that continues where the snapshot was taken; options are those of `Engine`.

        >>> engine = Engine()
        >>> engine.subscribe("parking: {slots > 0}")
        ['parking']
        >>> [notification.subscription for notification in Engine.restore(engine.snapshot()).publish({"slots": 3})]
        ['parking']
        """
        state = _decoded(data)
        engine = cls(**options)
        engine._nameless = state["nameless"]
        if engine._learner is not None:
            engine._learner = _learner(engine.matcher, state)
        if state["detector"] is not None:
            engine._detector = Detector.restore(
                state["detector"],
                matcher=engine.matcher,
                measure=engine.matcher.measure,
                refuse=engine._refuse,
            )
        for subscription in map(parse_subscription, state["subscriptions"]):
            if isinstance(subscription.body, Composite):
                engine._subscriptions[subscription.name] = subscription
            else:
                engine._subscribe(subscription)
        return engine

    def _handle(self, name: str) -> int:
        if name not in self._handles:
            known = ", ".join(self.profiles[:5]) or "none"
            raise BuildError(f"there is no subscription {name!r} to single events", hint=f"subscribed: {known}")
        return self._handles[name]

    def _stamp(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> Event:
        """The event with an id and a time."""
        if not isinstance(event, Event):
            event = Event.of(event)
            if not event.id:
                self._nameless += 1
                event = msgspec.structs.replace(event, id=f"event {self._nameless}")
        return event if event.start is not None else event.stamped(self._clock())

    def _subscribe(self, subscription: Subscription) -> None:
        name, body = subscription.name, subscription.body
        if name in self._subscriptions:
            raise BuildError(f"there is already a subscription {name!r}", hint="unsubscribe it first, or rename this")
        if isinstance(body, Composite):
            self.detector.add(name, body, subscription.options)
        else:
            handle = self._handles[name] = self.matcher.add(body, options=subscription.options, key=name)
            self._single.add(handle)
        self._subscriptions[name] = subscription


def _length(lateness: Duration | str | timedelta) -> Duration:
    if isinstance(lateness, str):
        return parse_duration(lateness)
    return lateness // timedelta(microseconds=1) if isinstance(lateness, timedelta) else lateness


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        state = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"this is not a snapshot of an engine: {error}", hint="the file may be truncated") from None
    written = (state.get("format"), state.get("version")) if isinstance(state, dict) else None
    if written != SNAPSHOT:
        raise InputError(
            f"this is not a snapshot of this version: {written}", hint="start a new engine and publish the events again"
        )
    assert isinstance(state, dict)
    return state


def _learner(matcher: Matcher, state: Mapping[str, Any]) -> StreamLearner | None:
    """A learner that continues with the sample of a snapshot, or None if the snapshot has none."""
    if state.get("sample") is None:
        return None
    events = (Event("", tuple((name, value) for name, value in tuples)) for tuples in state["sample"])
    return StreamLearner(matcher, StreamSample(events, known=state.get("foreseen", False)))


def _notification(detection: Detection) -> Notification:
    return Notification(detection.pattern, detection.members, detection.probability, detection=detection)


def _subscriptions_of(interest: Interest) -> Iterable[Subscription]:
    if isinstance(interest, Subscription):
        return (interest,)
    if isinstance(interest, str):
        return parse(interest)
    if isinstance(interest, Mapping):
        interest = [f"{write_header(str(name))}: {text}" for name, text in interest.items()]
    untyped: Any = interest  # callers may pass anything
    items = list(untyped) if isinstance(untyped, Iterable) else [untyped]
    if wrong := [item for item in items if not isinstance(item, str | Subscription)]:
        hint = "give text, such as 'alert: {type~ = fire~}', a list of texts, or a dictionary of texts by name"
        raise BuildError(f"{wrong[0]!r} is not a subscription", hint=hint)
    # Texts are parsed together, so that those without a name get different ones.
    texts = parse("\n".join(item for item in items if isinstance(item, str)))
    return [*(item for item in items if isinstance(item, Subscription)), *texts]


__all__ = ["Clock", "Engine", "Notification", "system_clock"]
