"""For tests of code that uses Likewise: a manual clock, a measure from a table, a tiny space, an in-memory broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from likewise.engine import Engine, Notification
from likewise.events import Event, Instant, Value, normalise, to_instant
from likewise.language import Subscription
from likewise.semantics import Matrix, Measure, Shared, Space, Themes, write_space

__all__ = ["InMemoryBroker", "ManualClock", "TableMeasure", "tiny_space"]

ARTICLES = {
    "Electricity": "electricity power energy current electric energy consumption usage kilowatt hour",
    "Energy consumption": "energy consumption electricity usage power usage kilowatt hour of a building",
    "Laptop": "laptop notebook portable computer device with keyboard and display",
    "Computer": "computer laptop device machine memory and processor usage",
    "Parking": "parking garage car park vehicle empty slot space vacancy",
    "Temperature": "temperature degrees celsius heat cold thermometer weather",
    "Window": "window glass broken shattered pane of a house",
    "Presence": "presence motion person detected human in a room",
}
"""Eight articles about sensors in buildings and cities: enough for words to be related."""


class ManualClock:
    """A clock that stands still until it is advanced.

    >>> clock = ManualClock()
    >>> clock.advance(timedelta(seconds=2))
    2000000
    >>> clock()
    2000000
    """

    def __init__(self, start: Instant | datetime = 0) -> None:
        self._now = to_instant(start) if isinstance(start, datetime) else start

    def __call__(self) -> Instant:
        return self._now

    def advance(self, by: timedelta | Instant) -> Instant:
        """Advance by a time span or a number of microseconds and return the new time."""
        step = by if isinstance(by, int) else by // timedelta(microseconds=1)
        if step < 0:
            raise ValueError("the clock cannot go back")
        self._now += step
        return self._now


class TableMeasure(Measure):
    """Relatedness from a table of pairs: equal terms get 1, pairs that are not in the table 0.

    >>> measure = TableMeasure({("laptop", "computer"): 0.5})
    >>> measure.matrix(["laptop", "lamp"], ["computer", "laptops"]).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """

    name = "table"
    symmetric = True

    def __init__(self, pairs: Mapping[tuple[str, str], float]) -> None:
        self._pairs = {
            pair: value
            for (left, right), value in pairs.items()
            for pair in ((normalise(left), normalise(right)), (normalise(right), normalise(left)))
        }

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> Matrix:
        """The values of the table; themes have no effect."""
        rows = [[self._relate(a, b) for b in event_terms] for a in subscription_terms]
        return np.array(rows, dtype=np.float32).reshape(len(subscription_terms), len(event_terms))

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The pair itself, with its value."""
        value = self._relate(mine, theirs)
        return [Shared(f"{mine} / {theirs}", value)][:limit] if value else []

    def _relate(self, left: str, right: str) -> float:
        a, b = normalise(left), normalise(right)
        return 1.0 if a == b else self._pairs.get((a, b), 0.0)


def tiny_space(folder: Path) -> Space:
    """Write a space of eight short articles to a folder, such as pytest's `tmp_path`, and open it."""
    path = folder / "tiny"
    write_space(path, ARTICLES.items(), overwrite=True)
    return Space.open(path)


class InMemoryBroker:
    """An engine that calls a function for each subscriber's notifications, in order, in this process.

    >>> broker, received = InMemoryBroker(), []
    >>> broker.subscribe("parking: {slots > 0}", received.append)
    ['parking']
    >>> broker.publish({"slots": 3})
    1
    >>> received[0].subscription
    'parking'
    """

    def __init__(self, **options: Any) -> None:
        """Options are those of `Engine`."""
        self.engine = Engine(**options)
        self._receivers: dict[str, Callable[[Notification], object]] = {}

    def subscribe(self, interest: str | Subscription, receive: Callable[[Notification], object]) -> list[str]:
        """Subscribe; `receive` is called with each notification."""
        names = self.engine.subscribe(interest)
        self._receivers.update(dict.fromkeys(names, receive))
        return names

    def unsubscribe(self, name: str) -> None:
        """Remove a subscription and its receiver."""
        self.engine.unsubscribe(name)
        del self._receivers[name]

    def publish(self, *events: Event | Mapping[str, Value | Iterable[Value]]) -> int:
        """Publish events, deliver the notifications and return their number."""
        return self._deliver(self.engine.publish_batch(events))

    def advance(self, instant: Instant) -> int:
        """Advance event time, deliver the notifications and return their number."""
        return self._deliver(self.engine.advance(instant))

    def _deliver(self, notifications: list[Notification]) -> int:
        for notification in notifications:
            self._receivers[notification.subscription](notification)
        return len(notifications)
