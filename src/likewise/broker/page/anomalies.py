"""Detect anomalies in a stream: a kind of event that is new, much more frequent or has stopped, and outliers."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Final

from likewise.broker.page.phrases import counted, rate, shortened
from likewise.events import Event

SLICE: Final = 10.0
"""Seconds per counting interval."""
PAST: Final = 30
"""Number of past intervals that the current one is compared with."""
_WARM: Final = 6
_SURPRISE: Final = 4.0
"""Standard deviations from the usual value that count as an anomaly."""
_READINGS: Final = 200
_KINDS: Final = 500
_RECENT: Final = 12


@dataclass(frozen=True)
class Anomaly:
    """An anomaly in words, and its time."""

    text: str
    time: float
    words: str
    """Words to filter the stream by, to see its events."""


class AnomalyDetector:
    """Counts each kind of event per interval, and keeps the last values of each numeric attribute."""

    def __init__(self) -> None:
        self._now: Counter[str] = Counter()
        self._past: dict[str, deque[int]] = {}
        self._readings: dict[tuple[str, str], deque[float]] = {}
        self._slices = 0
        self._end: float | None = None
        self.recent: deque[Anomaly] = deque(maxlen=_RECENT)

    def add(self, event: Event, moment: float) -> None:
        """Add an event that arrived at a time in seconds."""
        self.tick(moment)
        kind = kind_of(event)
        if kind not in self._past and len(self._past) < _KINDS:
            self._past[kind] = deque([0] * min(self._slices, PAST), maxlen=PAST)
            if self._slices > _WARM:
                self._report(f"“{kind}” appears for the first time", moment, kind)
        self._now[kind] += 1
        for name, value in event.tuples:
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._reading(kind, name, float(value), moment)

    def tick(self, moment: float) -> None:
        """Close the intervals that have passed."""
        if self._end is None:
            self._end = moment + SLICE
        if moment - self._end > PAST * SLICE:
            self._end = moment  # after a long silence, start again
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
        spread = sqrt(max(usual, sum((other - usual) ** 2 for other in past) / len(past), 1.0))
        if count - usual > _SURPRISE * spread:
            self._report(f"“{kind}” is {count / max(usual, 0.1):.0f} times as frequent as usual", moment, kind)
        elif count == 0 and usual - count > _SURPRISE * spread:
            self._report(f"“{kind}” has stopped; usual rate: {rate(usual, SLICE)}", moment, kind)

    def _reading(self, kind: str, name: str, value: float, moment: float) -> None:
        if len(self._readings) >= _KINDS and (kind, name) not in self._readings:
            return
        values = self._readings.setdefault((kind, name), deque(maxlen=_READINGS))
        if len(values) >= 30:
            middle = median(values)
            spread = median(abs(other - middle) for other in values) * 1.4826
            if spread > 0 and abs(value - middle) > 2 * _SURPRISE * spread:
                low, high = min(values), max(values)
                if not low <= value <= high:
                    self._report(f"“{kind}” has an unusual {name}: {value:g}; usually about {middle:g}", moment, kind)
        values.append(value)

    def _report(self, text: str, moment: float, kind: str) -> None:
        if not any(anomaly.text == text for anomaly in self.recent):
            self.recent.appendleft(Anomaly(text, moment, kind))

    def summary(self) -> str:
        """The number of recent anomalies, in words."""
        return counted(len(self.recent), "unusual observation") if self.recent else "nothing unusual"


def kind_of(event: Event) -> str:
    """The kind of an event: its first text value.

    >>> kind_of(Event.of({"slots": 3, "type": "parking"}))
    'parking'
    """
    return next((shortened(value, 40) for _, value in event.tuples if isinstance(value, str)), "event")
