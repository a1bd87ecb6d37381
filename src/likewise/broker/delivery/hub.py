"""The hub: keeps recent notifications in memory and wakes the streams that wait for them.

A stream is only a cursor. It reads from memory while it keeps up, and from the database when it falls behind. A slow
subscriber therefore needs no buffer and blocks nobody. All methods run in the event loop's thread.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from likewise.broker.store.records import Notice

RECENT: Final = 20_000
"""Notifications kept in memory for each namespace."""


@dataclass(slots=True)
class Recent:
    """The latest notifications of a namespace, ordered by cursor."""

    floor: int
    """Notifications up to this cursor are in the database only."""
    notices: list[Notice] = field(default_factory=list)
    cursors: list[int] = field(default_factory=list)

    def add(self, notices: Iterable[Notice]) -> None:
        self.notices += notices
        self.cursors += [notice.cursor for notice in self.notices[len(self.cursors) :]]

    def trim(self, stored: int) -> None:
        """Drop the oldest notifications that are already stored."""
        if len(self.notices) <= 2 * RECENT:
            return
        cut = min(len(self.notices) - RECENT, bisect_right(self.cursors, stored))
        if cut > 0:
            self.floor = self.cursors[cut - 1]
            del self.notices[:cut], self.cursors[:cut]

    def after(self, cursor: int, limit: int) -> Sequence[Notice]:
        start = bisect_right(self.cursors, cursor)
        return self.notices[start : start + limit]


class Signal:
    """Wakes one stream when its subscriptions have new notifications."""

    __slots__ = ("_is_set", "_waiter", "names", "namespace")

    def __init__(self, namespace: str, names: frozenset[str] | None) -> None:
        self.namespace = namespace
        self.names = names
        self._is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def clear(self) -> None:
        """Reset the signal."""
        self._is_set = False

    def set(self) -> None:
        """Wake the stream."""
        self._is_set = True
        _end(self._waiter, True)

    async def wait(self, seconds: float) -> bool:
        """Wait until the signal is set; returns False after the timeout.

        This is cheaper than `asyncio.Event` with a timeout, which needs a task.
        """
        if self._is_set:
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _end, self._waiter, False)
        try:
            return await self._waiter
        finally:
            timer.cancel()
            self._waiter = None


def _end(waiter: asyncio.Future[bool] | None, value: bool) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class Hub:
    """Recent notifications by namespace, and the signals of open streams."""

    def __init__(self, floor: int) -> None:
        """`floor` is the last cursor stored before this start of the broker."""
        self._start = floor
        self.stored = floor
        self._recent: dict[str, Recent] = {}
        self._signals: dict[tuple[str, str | None], set[Signal]] = defaultdict(set)
        self.closing = asyncio.Event()
        self.streams = 0
        self.delivered = 0

    def add(self, notices: Sequence[Notice]) -> None:
        """Add new notifications and wake the streams that follow them."""
        if not notices:
            return
        grouped: dict[str, list[Notice]] = {}
        for notice in notices:
            grouped.setdefault(notice.namespace, []).append(notice)
        for namespace, group in grouped.items():
            recent = self._of(namespace)
            recent.add(group)
            recent.trim(self.stored)
            self._wake(namespace, {notice.subscription for notice in group})

    def mark_stored(self, cursor: int) -> None:
        """Note that all notifications up to a cursor are in the database."""
        self.stored = max(self.stored, cursor)

    def after(self, namespace: str, cursor: int, *, limit: int) -> Sequence[Notice] | None:
        """Notifications after a cursor; None if they must be read from the database."""
        recent = self._of(namespace)
        return None if cursor < recent.floor else recent.after(cursor, limit)

    def floor(self, namespace: str) -> int:
        """The cursor after which all notifications are in memory."""
        return self._of(namespace).floor

    def latest(self, namespace: str) -> int:
        """The cursor of the newest notification."""
        recent = self._of(namespace)
        return recent.cursors[-1] if recent.cursors else max(recent.floor, self._start)

    def join(self, namespace: str, names: Iterable[str] | None) -> Signal:
        """Register a stream for some subscriptions, or for all (None)."""
        signal = Signal(namespace, None if names is None else frozenset(names))
        for name in signal.names if signal.names is not None else (None,):
            self._signals[namespace, name].add(signal)
        self.streams += 1
        return signal

    def leave(self, signal: Signal) -> None:
        """Unregister a stream that has ended."""
        for name in signal.names if signal.names is not None else (None,):
            waiting = self._signals[signal.namespace, name]
            waiting.discard(signal)
            if not waiting:
                del self._signals[signal.namespace, name]
        self.streams -= 1

    def close(self) -> None:
        """Close all streams."""
        self.closing.set()
        for waiting in self._signals.values():
            for signal in waiting:
                signal.set()

    def _of(self, namespace: str) -> Recent:
        if namespace not in self._recent:
            self._recent[namespace] = Recent(self._start)
        return self._recent[namespace]

    def _wake(self, namespace: str, names: Iterable[str]) -> None:
        for name in (None, *names):
            for signal in self._signals.get((namespace, name), ()):
                signal.set()
