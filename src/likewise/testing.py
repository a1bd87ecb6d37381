"""For tests of code that uses Likewise: a clock to set, a measure to write down, a tiny space, a broker in memory."""

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
"""Eight articles about what buildings and cities measure: enough for words to be related."""


class ManualClock:
    """A clock that stands still until it is moved.

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
        """Move on by a time span (or microseconds) and give the new time."""
        step = by if isinstance(by, int) else by // timedelta(microseconds=1)
        if step < 0:
            raise ValueError("a clock does not go back")
        self._now += step
        return self._now


class TableMeasure(Measure):
    """Relatedness written down pair by pair: the same term is 1, a pair not written down is 0.

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
        """The written values; themes change nothing."""
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
    """A space of eight short articles, written to a folder (such as pytest's `tmp_path`) and opened."""
    path = folder / "tiny"
    write_space(path, ARTICLES.items(), overwrite=True)
    return Space.open(path)


class InMemoryBroker:
    """An engine with subscribers: each hears its own notifications, in order, in this process.

    >>> broker, heard = InMemoryBroker(), []
    >>> broker.subscribe("parking: {slots > 0}", heard.append)
    ['parking']
    >>> broker.publish({"slots": 3})
    1
    >>> heard[0].subscription
    'parking'
    """

    def __init__(self, **options: Any) -> None:
        """Options are those of `Engine`."""
        self.engine = Engine(**options)
        self._hear: dict[str, Callable[[Notification], object]] = {}

    def subscribe(self, interest: str | Subscription, hear: Callable[[Notification], object]) -> list[str]:
        """Subscribe, and say who is to hear of it."""
        names = self.engine.subscribe(interest)
        self._hear.update(dict.fromkeys(names, hear))
        return names

    def unsubscribe(self, name: str) -> None:
        """Take a subscription out; nobody hears of it any more."""
        self.engine.unsubscribe(name)
        del self._hear[name]

    def publish(self, *events: Event | Mapping[str, Value | Iterable[Value]]) -> int:
        """Send events through and deliver; gives how many notifications there were."""
        return self._deliver(self.engine.publish_batch(events))

    def advance(self, instant: Instant) -> int:
        """Let event time go on to an instant and deliver."""
        return self._deliver(self.engine.advance(instant))

    def _deliver(self, notifications: list[Notification]) -> int:
        for told in notifications:
            self._hear[told.subscription](told)
        return len(notifications)
