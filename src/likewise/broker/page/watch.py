"""The live state of a namespace, shared by all visitors: recent events and notifications, rates and words."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog

from likewise.broker.auth import Access
from likewise.broker.engines.host import subscription_of
from likewise.broker.page.anomalies import AnomalyDetector
from likewise.broker.page.phrases import pairs_of, plain_summary, time_of_day
from likewise.broker.service import Broker
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import LogRecord, Notice
from likewise.errors import LikewiseError
from likewise.events import Event, decode_line
from likewise.language import Profile

KEPT: Final = 2_000
"""Maximum number of events and of notifications in memory."""
BUCKET: Final = 5.0
"""Seconds per bucket of a rate."""
BUCKETS: Final = 60
_REASONS: Final = 4_000
"""Maximum number of cached reasons."""
_EXPLAINED: Final = 12
"""Reasons computed per refresh; at a high rate, other matches are shown without a reason."""
_ATTRIBUTES: Final = 400
_VALUES: Final = 60
logs = structlog.get_logger("likewise.page")


class RateCounter:
    """Counts items in time buckets."""

    def __init__(self) -> None:
        self._counts: deque[int] = deque([0] * BUCKETS, maxlen=BUCKETS)
        self._bucket = 0

    def add(self, count: int, moment: float) -> None:
        """Count items that arrived at a time in seconds."""
        self._forward(moment)
        self._counts[-1] += count

    def counts(self, moment: float) -> list[int]:
        """The counts of all buckets, oldest first."""
        self._forward(moment)
        return list(self._counts)

    def last_minute(self, moment: float) -> int:
        """The number of items in the last minute."""
        return sum(self.counts(moment)[-round(60 / BUCKET) :])

    def _forward(self, moment: float) -> None:
        bucket = int(moment // BUCKET)
        self._counts.extend([0] * min(BUCKETS, bucket - self._bucket))
        self._bucket = max(bucket, self._bucket)


class StreamWords:
    """Counts of attributes and their text values; the rarest are dropped."""

    def __init__(self) -> None:
        self.attributes: Counter[str] = Counter()
        self.values: dict[str, Counter[str]] = {}

    def add(self, event: Event) -> None:
        """Count the words of an event."""
        for name, value in event.tuples:
            self.attributes[name] += 1
            if isinstance(value, str) and len(value) <= 60:
                values = self.values.setdefault(name, Counter())
                values[value] += 1
                if len(values) > 2 * _VALUES:
                    self.values[name] = Counter(dict(values.most_common(_VALUES)))
        if len(self.attributes) > 2 * _ATTRIBUTES:
            self.attributes = Counter(dict(self.attributes.most_common(_ATTRIBUTES)))
            self.values = {name: values for name, values in self.values.items() if name in self.attributes}

    def common_attributes(self) -> list[str]:
        """The attributes, most frequent first."""
        return [name for name, _ in self.attributes.most_common(200)]

    def common_values(self) -> dict[str, list[str]]:
        """The values of each attribute, most frequent first."""
        return {name: [value for value, _ in values.most_common(40)] for name, values in self.values.items()}

    def terms(self) -> list[tuple[str, int]]:
        """Attributes and values together, most frequent first."""
        terms: Counter[str] = Counter(self.attributes)
        for values in self.values.values():
            terms.update(values)
        return terms.most_common(300)


class StreamWatch:
    """Follows the events and notifications of a namespace while the broker runs."""

    def __init__(self, broker: Broker, namespace: str) -> None:
        self._broker, self.namespace = broker, namespace
        self._access = Access("page", namespace, frozenset({"subscribe"}))
        self.events: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.notices: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.event_rate, self.notice_rate = RateCounter(), RateCounter()
        self.by_subscription: dict[str, RateCounter] = {}
        self.words = StreamWords()
        self.anomalies = AnomalyDetector()
        self._reasons: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Load the recent history, then follow the streams."""
        broker, newest = self._broker, HistoryQuery(before=0, limit=500)
        events = await broker.read(broker.history.events, self.namespace, newest)
        notices = await broker.read(broker.history.notices, self.namespace, newest)
        for record in reversed(events):
            self._take_event(record)
        for notice in reversed(notices):
            self._take_notice(notice)
        position = self.events[-1]["key"] if self.events else 0
        cursor = self.notices[-1]["key"] if self.notices else 0
        self._follow(broker.tail(self._access, after=position), self._take_event)
        self._follow(broker.follow(self._access, names=None, after=cursor), self._take_notice)

    def _follow(self, stream: AsyncGenerator[list[Any], None], take: Callable[[Any], None]) -> None:
        async def run() -> None:
            try:
                async with aclosing(stream):
                    async for items in stream:
                        for item in items:
                            take(item)
            except LikewiseError as error:
                logs.warning("the page stopped following a stream", reason=error.message)

        self._tasks.append(asyncio.create_task(run()))

    def stop(self) -> None:
        """Stop reading."""
        for task in self._tasks:
            task.cancel()

    # incoming

    def _take_event(self, record: LogRecord) -> None:
        event, moment = record.to_event(), record.received / 1e6
        self.words.add(event)
        self.anomalies.add(event, moment)
        self.event_rate.add(1, moment)
        row = {"key": record.position, "id": event.id, "when": time_of_day(record.received), "pairs": pairs_of(event)}
        self.events.append(row | {"text": _search_text(event)})

    def _take_notice(self, notice: Notice) -> None:
        body: dict[str, Any] = msgspec.json.decode(notice.body)
        events = [decode_line(msgspec.json.encode(event)) for event in body["events"]]
        moment = time.time() if notice.time is None else notice.time / 1e6
        self.notice_rate.add(1, moment)
        self.by_subscription.setdefault(notice.subscription, RateCounter()).add(1, moment)
        self.notices.append(
            {
                "key": notice.cursor,
                "name": notice.subscription,
                "kind": notice.kind,
                "score": notice.score,
                "when": time_of_day(notice.time),
                "time": notice.time,
                "event": events[-1].id if events else "",
                "roles": body.get("roles"),
                "events": events,
                "text": f"{notice.subscription} {' '.join(map(_search_text, events))}".lower(),
            }
        )

    # for the views

    def last_events(self, *, after: int = 0, limit: int = 80, words: str = "") -> list[dict[str, Any]]:
        """The newest events after a position that contain all the words, newest first."""
        return _newest(self.events, after, limit, words)

    def last_notices(self, *, after: int = 0, limit: int = 40, words: str = "") -> list[dict[str, Any]]:
        """The newest notifications after a cursor that contain all the words, newest first."""
        return _newest(self.notices, after, limit, words)

    def with_reasons(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add the reason in words to notifications; may be called in another thread."""
        explained, left = [], _EXPLAINED
        for row in rows:
            key = (row["name"], *((name, str(value)) for event in row["events"] for name, value in event.tuples))
            if key not in self._reasons and left > 0:
                left -= 1
                self._reasons[key] = self._reason(row)
                while len(self._reasons) > _REASONS:
                    self._reasons.popitem(last=False)
            explained.append(row | {"reason": self._reasons.get(key, "")})
        return explained

    def _reason(self, row: dict[str, Any]) -> str:
        if row["kind"] == "detection":
            return ", then ".join(
                f"{role}: {', '.join(value for _, value in pairs_of(event)[:2])}"
                for role, event in _roles(row["roles"] or {}, row["events"])
            )
        tenant = self._broker.host.tenant(self.namespace)
        entry = tenant.entries.get(row["name"])
        if entry is None:
            return ""
        subscription = subscription_of(entry)
        if not isinstance(subscription.body, Profile):
            return ""
        try:
            explanation = tenant.engine.matcher.explain(
                subscription.body, row["events"][0], options=subscription.options
            )
        except LikewiseError as error:
            return error.message
        return plain_summary(explanation)


class Watches:
    """The watches of a broker, created on first use."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._watches: dict[str, asyncio.Task[StreamWatch]] = {}

    async def of(self, namespace: str) -> StreamWatch:
        """The watch of a namespace."""
        if namespace not in self._watches:
            self._watches[namespace] = asyncio.create_task(self._start(namespace))
        return await asyncio.shield(self._watches[namespace])

    async def _start(self, namespace: str) -> StreamWatch:
        watch = StreamWatch(self._broker, namespace)
        await watch.start()
        return watch

    def stop(self) -> None:
        """Stop all watches."""
        for task in self._watches.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().stop()


def _roles(roles: dict[str, list[str]], events: list[Event]) -> list[tuple[str, Event]]:
    by_id = {event.id: event for event in events}
    return [(role, by_id[ids[0]]) for role, ids in roles.items() if ids and ids[0] in by_id]


def _newest(rows: deque[dict[str, Any]], after: int, limit: int, words: str) -> list[dict[str, Any]]:
    wanted, newest = words.lower().split(), list[dict[str, Any]]()
    for row in reversed(rows):
        if row["key"] <= after or len(newest) == limit:
            break
        if all(word in row["text"] for word in wanted):
            newest.append(row)
    return newest


def _search_text(event: Event) -> str:
    return " ".join(f"{name} {value}" for name, value in event.tuples).lower()
