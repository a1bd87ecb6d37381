"""The engine: subscribe, publish, advance; what it tells are notifications.

The same engine runs in a script, in the broker, in a Spark task and in an overlay node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from likewise.errors import BuildError
from likewise.events import Event, Instant, Value
from likewise.language import Composite, Options, Profile, Subscription
from likewise.matching import Match, Matcher

Clock: TypeAlias = Callable[[], Instant]
"""Tells the time of events that come without one."""


def system_clock() -> Instant:
    """Microseconds since 1970, from the machine."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Notification:
    """What a subscriber is told: which subscription, which events, how sure, and why."""

    subscription: str
    events: tuple[Event, ...]
    score: float
    matches: tuple[Match, ...]

    @property
    def event(self) -> Event:
        """The event, or the last one of a pattern."""
        return self.events[-1]

    @property
    def match(self) -> Match:
        """The match, or the last one of a pattern."""
        return self.matches[-1]


class Engine:
    """Subscriptions in, events through, notifications out, all in this process.

    >>> engine = Engine()
    >>> from likewise.language import Operator, Predicate
    >>> parking = Profile((Predicate("slots", Operator.GT, 0), Predicate("city", Operator.EQ, "Galway")))
    >>> engine.subscribe(Subscription("parking", parking))
    ['parking']
    >>> [told.subscription for told in engine.publish({"city": "galway", "slot": 3})]
    ['parking']
    """

    def __init__(self, *, clock: Clock = system_clock, matcher: Matcher | None = None, **options: Any) -> None:
        """Options are those of `Matcher`, unless a ready matcher is given."""
        if matcher is not None and options:
            raise BuildError(f"the matcher is already made, so {', '.join(options)} cannot be set", hint="drop one")
        self.matcher = matcher if matcher is not None else Matcher(**options)
        self._clock = clock
        self._now: Instant = -(1 << 62)
        self._handles: dict[str, int] = {}
        self._subscriptions: dict[str, Subscription] = {}

    @property
    def subscriptions(self) -> dict[str, Subscription]:
        """What is subscribed, by name."""
        return dict(self._subscriptions)

    def subscribe(self, interest: str | Subscription | Iterable[Subscription]) -> list[str]:
        """Add subscriptions, given as text or ready; all of them or, on an error, none."""
        added: list[str] = []
        try:
            for subscription in _subscriptions_of(interest):
                self._subscribe(subscription)
                added.append(subscription.name)
        except Exception:
            for name in added:
                self.unsubscribe(name)
            raise
        return added

    def unsubscribe(self, name: str) -> None:
        """Take a subscription out by its name."""
        if name not in self._subscriptions:
            raise BuildError(f"there is no subscription {name!r}", hint=f"there are {len(self._subscriptions)} others")
        self.matcher.remove(self._handles.pop(name))
        del self._subscriptions[name]

    def publish(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> list[Notification]:
        """Send one event through and give what it brings about, best score first."""
        return self.publish_batch((event,))

    def publish_batch(self, events: Sequence[Event | Mapping[str, Value | Iterable[Value]]]) -> list[Notification]:
        """Send many events through at once; notifications come in the order of the events."""
        ready = [self._stamp(event) for event in events]
        return [
            Notification(str(match.subscription), (match.event,), match.score, (match,))
            for matches in self.matcher.match_batch(ready)
            for match in matches
        ]

    def advance(self, instant: Instant) -> list[Notification]:
        """Tell the engine that event time has come to `instant`, for what patterns wait for."""
        self._now = max(self._now, instant)
        return []

    def _stamp(self, event: Event | Mapping[str, Value | Iterable[Value]]) -> Event:
        ready = event if isinstance(event, Event) else Event.of(event)
        return ready if ready.start is not None else ready.stamped(self._clock())

    def _subscribe(self, subscription: Subscription) -> None:
        name, body = subscription.name, subscription.body
        if name in self._subscriptions:
            raise BuildError(f"there is already a subscription {name!r}", hint="unsubscribe it first, or rename this")
        if isinstance(body, Composite):
            raise BuildError(f"{name!r} is a pattern, and this engine matches single events", hint="use a detector")
        self._handles[name] = self._register(body, subscription.options, name)
        self._subscriptions[name] = subscription

    def _register(self, profile: Profile, options: Options, name: str) -> int:
        return self.matcher.add(profile, options=options, key=name)


def _subscriptions_of(interest: str | Subscription | Iterable[Subscription]) -> Iterable[Subscription]:
    if isinstance(interest, Subscription):
        return (interest,)
    if isinstance(interest, str):
        from likewise.language import parse

        return parse(interest)
    return interest


__all__ = ["Clock", "Engine", "Notification", "system_clock"]
