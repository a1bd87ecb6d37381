"""What is unusual in a stream: a kind of event that comes much oftener or stops, a reading far off, a new word."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Final

from likewise.broker.page.phrases import many, rate, shortened
from likewise.events import Event

SLICE: Final = 10.0
"""Seconds that are counted together."""
PAST: Final = 30
"""Slices that the present one is compared with."""
_WARM: Final = 6
_SURPRISE: Final = 4.0
"""Standard deviations that are worth a word."""
_READINGS: Final = 200
_KINDS: Final = 500
_NEWS: Final = 12


@dataclass(frozen=True)
class Oddity:
    """One thing that is unusual, in words, and since when."""

    text: str
    time: float
    words: str
    """What to filter the stream by to see it."""


class Oddities:
    """Counts kinds of events by slices of time, and keeps the last readings of each number."""

    def __init__(self) -> None:
        self._now: Counter[str] = Counter()
        self._past: dict[str, deque[int]] = {}
        self._readings: dict[tuple[str, str], deque[float]] = {}
        self._slices = 0
        self._end: float | None = None
        self.news: deque[Oddity] = deque(maxlen=_NEWS)

    def add(self, event: Event, moment: float) -> None:
        """Take an event that came at a moment (seconds)."""
        self.tick(moment)
        kind = kind_of(event)
        if kind not in self._past and len(self._past) < _KINDS:
            self._past[kind] = deque([0] * min(self._slices, PAST), maxlen=PAST)
            if self._slices > _WARM:
                self._tell(f"“{kind}” appears for the first time", moment, kind)
        self._now[kind] += 1
        for name, value in event.tuples:
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._reading(kind, name, float(value), moment)

    def tick(self, moment: float) -> None:
        """Close the slices that have passed."""
        if self._end is None:
            self._end = moment + SLICE
        if moment - self._end > PAST * SLICE:
            self._end = moment  # after a long silence the past says nothing
            self._past.clear()
            self._slices = 0
        while moment >= self._end:
            self._close(self._end)
            self._end += SLICE

    def _close(self, moment: float) -> None:
        for kind, past in self._past.items():
            count = self._now[kind]
            if len(past) >= _WARM:
                self._compare(kind, count, past, moment)
            past.append(count)
        self._now.clear()
        self._slices += 1

    def _compare(self, kind: str, count: int, past: deque[int], moment: float) -> None:
        usual = sum(past) / len(past)
        spread = sqrt(max(usual, sum((one - usual) ** 2 for one in past) / len(past), 1.0))
        if count - usual > _SURPRISE * spread:
            self._tell(f"“{kind}” comes {count / max(usual, 0.1):.0f} times as often as usual", moment, kind)
        elif count == 0 and usual - count > _SURPRISE * spread:
            self._tell(f"“{kind}” has stopped; usually {rate(usual, SLICE)}", moment, kind)

    def _reading(self, kind: str, name: str, value: float, moment: float) -> None:
        if len(self._readings) >= _KINDS and (kind, name) not in self._readings:
            return
        known = self._readings.setdefault((kind, name), deque(maxlen=_READINGS))
        if len(known) >= 30:
            middle = median(known)
            spread = median(abs(one - middle) for one in known) * 1.4826
            if spread > 0 and abs(value - middle) > 2 * _SURPRISE * spread:
                low, high = min(known), max(known)
                if not low <= value <= high:
                    self._tell(f"{name} {value:g} of “{kind}” is far off; usually about {middle:g}", moment, kind)
        known.append(value)

    def _tell(self, text: str, moment: float, kind: str) -> None:
        if not any(one.text == text for one in self.news):
            self.news.appendleft(Oddity(text, moment, kind))

    def summary(self) -> str:
        """How many there were lately."""
        return many(len(self.news), "unusual thing") if self.news else "nothing unusual"


def kind_of(event: Event) -> str:
    """What kind of event it is: the first text it says.

    >>> kind_of(Event.of({"slots": 3, "type": "parking"}))
    'parking'
    """
    return next((shortened(value, 40) for _, value in event.tuples if isinstance(value, str)), "event")
