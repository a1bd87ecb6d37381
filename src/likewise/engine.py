"""The engine: subscribe, publish, advance; what it tells are notifications.

The same engine runs in a script and in the broker. Spark and the overlay run its two halves in different places: a
matcher where events come in, a composer where the hits of a pattern meet.
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
    Profile,
    Reference,
    Subscription,
    format_subscription,
    members,
    parse,
    parse_duration,
    parse_subscription,
)
from likewise.matching import Background, Explanation, Match, Matcher, StreamLearner, StreamSample
from likewise.semantics import Competitors, Measure, Space

Clock: TypeAlias = Callable[[], Instant]
"""Tells the time of events that come without one."""

Interest: TypeAlias = str | Subscription | Mapping[str, str] | Iterable[str | Subscription]
"""Subscriptions: as text, as texts by name, as a list of texts, or ready."""

SNAPSHOT: Final = ("likewise-engine", 1)
"""Format and version of snapshots."""


def system_clock() -> Instant:
    """Microseconds since 1970, from the machine."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Notification:
    """What a subscriber is told: which subscription, which events, how sure, and why.

    A single event comes with its match, a pattern with its detection.
    """

    subscription: str
    events: tuple[Event, ...]
    score: float
    match: Match | None = None
    detection: Detection | None = None

    @property
    def event(self) -> Event:
        """The event, or the last one of a pattern."""
        return self.events[-1]

    def __repr__(self) -> str:
        ids = ", ".join(event.id or "?" for event in self.events)
        return f"Notification({self.subscription!r}, events=[{ids}], score={self.score:.3f})"

    def _repr_html_(self) -> str:
        why = "" if self.match is None else f"<pre>{html.escape(self.match.explain().text())}</pre>"
        return f"<b>{html.escape(repr(self))}</b>{why}"


class Engine:
    """Subscriptions in, events through, notifications out, all in this process.

    >>> engine = Engine()
    >>> engine.subscribe("parking: {slots > 0, city = Galway}")
    ['parking']
    >>> [told.subscription for told in engine.publish({"city": "galway", "slot": 3})]
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
        """Nothing is needed for exact matching; for `~` give spaces, by name or path, or a measure.

        - `spaces`: what words mean, such as `"wordnet"` or `["wordnet", "wikipedia"]`.
        - `measure`: a measure of your own instead, one for all approaches or one for each by name.
        - `approach` and `threshold`: for subscriptions that choose none; each has a good default.
        - `background`: what is known of the stream. By default the engine collects it from its first events: it learns
          after 64 of them, and for good after 256. `Background.of(events)` is a sample that is known beforehand, and
          None switches it off.
        - `lateness`: how far out of order events may come for patterns, such as `"5 minutes"`.
        - `limits`: how much patterns may hold. `refuse` takes the events that patterns refuse, such as late ones.
        - `clock`: the time of events without one.
        - `matcher`: a ready matcher in place of all that is about matching.

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
            raise BuildError(f"the matcher is already made, so {', '.join(chosen)} cannot be set", hint="drop one")
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
        """What is subscribed, by name."""
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
        listed = "\n".join(format_subscription(one) for one in self._subscriptions.values())
        return f"<b>{html.escape(repr(self))}</b><pre>{html.escape(listed)}</pre>"

    def explain(
        self, name: str, event: Event | Mapping[str, Value | Iterable[Value]]
    ) -> Explanation | PatternExplanation:
        """Why an event matches a subscription, or why not and what would be enough.

        For a pattern: what the event is to each of its parts, how far it came with all events so far, and what it
        lacks. The event is not published by this.
        """
        if not isinstance(name, str):
            raise BuildError("explain takes the name of a subscription first", hint="explain(name, event)")
        subscription = self._subscriptions.get(name)
        if subscription is None or not isinstance(subscription.body, Composite):
            return self.matcher.explain(self._handle(name), self._stamp(event))
        ready = self._stamp(event)
        parts = [
            (role, replace(self.matcher.explain(profile, ready), subscription=role))
            for role, profile in self._parts(subscription.body)
        ]
        [state] = [one for one in self.detector.state() if one.name == name]
        asked = [side for one in subscription.body.where for side in (one.left, one.right) if isinstance(side, Field)]
        answered = {role for role, part in parts if part.matched}
        lacks = [
            (side.alias, side.attribute)
            for side in asked
            if side.alias in answered and side.attribute not in ready.attributes
        ]
        return PatternExplanation(name, ready.id, tuple(parts), state, tuple(dict.fromkeys(lacks)))

    def _parts(self, body: Composite) -> Iterator[tuple[str, Profile]]:
        """The profiles that a pattern waits for, with the names of their roles."""
        for number, leaf in enumerate(members(body.root), 1):
            if isinstance(leaf, Member):
                yield leaf.alias or f"part {number}", leaf.profile
            elif isinstance(leaf, Reference) and leaf.name in self._subscriptions:
                inner = self._subscriptions[leaf.name].body
                if isinstance(inner, Composite):
                    yield from self._parts(inner)
                else:
                    yield leaf.alias or leaf.name, inner

    def rank(self, name: str, events: Sequence[Event], *, limit: int | None = None) -> list[Match]:
        """The events that answer a subscription at all, best first, whatever its threshold."""
        return self.matcher.rank(self._handle(name), events, limit=limit)

    def without_thresholds(self) -> Matcher:
        """A matcher of the subscriptions to single events that gives every score above zero: for what came near."""
        return self.matcher.without_thresholds(self._handles.values())

    @property
    def has_patterns(self) -> bool:
        """Whether anything was ever subscribed that takes a detector."""
        return self._detector is not None

    @property
    def detector(self) -> Detector:
        """What runs the patterns; made with the first one."""
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
        """Add subscriptions, given as text, a list or a dictionary of texts, or ready; all or, on an error, none."""
        wanted = list(_subscriptions_of(interest))
        added: list[str] = []
        try:
            if any(isinstance(one.body, Composite) for one in wanted):
                for one in (*self._subscriptions.values(), *wanted):
                    self.detector.define(one)
            for subscription in wanted:
                self._subscribe(subscription)
                added.append(subscription.name)
        except BaseException:  # whatever it was, all or none
            for name in added:
                self.unsubscribe(name)
            raise
        return added

    def unsubscribe(self, name: str) -> None:
        """Take a subscription out by its name."""
        subscription = self._subscriptions.get(name)
        if subscription is None:
            raise BuildError(f"there is no subscription {name!r}", hint=f"there are {len(self._subscriptions)} others")
        if isinstance(subscription.body, Composite):
            self.detector.remove(name)
        else:
            handle = self._handles.pop(name)
            self._single.discard(handle)
            self.matcher.remove(handle)
        del self._subscriptions[name]

    def publish(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> list[Notification]:
        """Send one event through and give what it brings about, best score first."""
        return self.publish_batch((event,))

    def publish_batch(self, events: Sequence[Event | Mapping[str, Value | Iterable[Value]]]) -> list[Notification]:
        """Send many events through at once: what single events bring about, in their order, then what patterns find."""
        ready = events.stamped(self._clock) if isinstance(events, EventColumns) else list(map(self._stamp, events))
        if self._learner is None:
            return [told for part in self._publish(ready) for told in part]
        single: list[Notification] = []
        composed: list[Notification] = []
        for part in self._learner.parts(ready):
            first, later = self._publish(part)
            single += first
            composed += later
        return single + composed

    def foresee(self, events: Iterable[Event]) -> None:
        """Take these, the first of them, for all that is known of the stream, before any is published."""
        if self._learner is not None:
            self._learner = StreamLearner(self.matcher, StreamSample(events, known=True))

    def _publish(self, ready: Sequence[Event]) -> tuple[list[Notification], list[Notification]]:
        """What single events bring about, and what patterns find."""
        matcher = self.matcher
        # One encoding and one scoring call, for single subscriptions and for the members of patterns.
        encoded = matcher.encode(ready)
        scores = matcher.score_batch(encoded)
        found = matcher.matches_of(encoded, scores, handles=self._single)
        out = [
            Notification(str(match.subscription), (match.event,), match.score, match)
            for matches in found
            for match in matches
        ]
        if self._detector is None:
            return out, []
        hits = HitColumns(scores.event, scores.handle, matcher.probabilities(scores.handle, scores.score))
        return out, [_notification(found) for found in self._detector.publish_scored(ready, hits)]

    def advance(self, instant: Instant | datetime) -> list[Notification]:
        """Move event time on to `instant`, for what patterns wait for."""
        if isinstance(instant, datetime):
            instant = to_instant(instant)
        return [] if self._detector is None else [_notification(found) for found in self._detector.advance(instant)]

    def snapshot(self) -> bytes:
        """Subscriptions and all that patterns hold, as bytes of a versioned format."""
        kind, version = SNAPSHOT
        return msgspec.msgpack.encode(
            {
                "format": kind,
                "version": version,
                "nameless": self._nameless,
                "subscriptions": [format_subscription(one) for one in self._subscriptions.values()],
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
        >>> [found.subscription for found in Engine.restore(engine.snapshot()).publish({"slots": 3})]
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
            raise BuildError(f"there is no subscription {name!r} to single events", hint="patterns have detections")
        return self._handles[name]

    def _stamp(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> Event:
        if isinstance(event, Event):
            ready = event
        else:
            ready = Event.of(event)
            if not ready.id:
                self._nameless += 1
                ready = msgspec.structs.replace(ready, id=f"event {self._nameless}")
        return ready if ready.start is not None else ready.stamped(self._clock())

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
        raise InputError(f"this is not a snapshot of an engine: {error}", hint="it may be cut short") from None
    found = (state.get("format"), state.get("version")) if isinstance(state, dict) else None
    if found != SNAPSHOT:
        raise InputError(f"this is not a snapshot of this version: {found}", hint="replay the events instead")
    assert isinstance(state, dict)
    return state


def _learner(matcher: Matcher, state: Mapping[str, Any]) -> StreamLearner | None:
    """What goes on learning from the sample in a snapshot; none where there was none."""
    if state.get("sample") is None:
        return None
    said = (Event("", tuple((name, value) for name, value in tuples)) for tuples in state["sample"])
    return StreamLearner(matcher, StreamSample(said, known=state.get("foreseen", False)))


def _notification(found: Detection) -> Notification:
    return Notification(found.pattern, found.members, found.probability, detection=found)


def _subscriptions_of(interest: Interest) -> Iterable[Subscription]:
    if isinstance(interest, Subscription):
        return (interest,)
    if isinstance(interest, str):
        return parse(interest)
    if isinstance(interest, Mapping):
        interest = [f"{name}: {text}" for name, text in interest.items()]
    given: Any = interest  # whatever a caller may give
    listed = list(given) if isinstance(given, Iterable) else [given]
    if strange := [each for each in listed if not isinstance(each, str | Subscription)]:
        hint = "give text, such as 'alert: {type~ = fire~}', a list of texts, or a dictionary of texts by name"
        raise BuildError(f"{strange[0]!r} is not a subscription", hint=hint)
    # Texts are read together, so that each without a name gets one of its own.
    texts = parse("\n".join(each for each in listed if isinstance(each, str)))
    return [*(each for each in listed if isinstance(each, Subscription)), *texts]


__all__ = ["Clock", "Engine", "Notification", "system_clock"]
