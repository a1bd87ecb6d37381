"""What the page sees of a namespace: the last events and notifications, rates, words; one for all who look."""

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
from likewise.broker.page.phrases import clock, pairs_of, told_plainly
from likewise.broker.page.unusual import Oddities
from likewise.broker.service import Broker
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import LogRecord, Notice
from likewise.errors import LikewiseError
from likewise.events import Event, decode_line
from likewise.language import Profile

KEPT: Final = 2_000
"""Events and notifications in memory."""
BUCKET: Final = 5.0
BUCKETS: Final = 60
_VERDICTS: Final = 4_000
_EXPLAINED: Final = 12
"""Verdicts that are worked out at a time; at a high rate the others have their score only."""
_ATTRIBUTES: Final = 400
_VALUES: Final = 60
logs = structlog.get_logger("likewise.page")


class Tally:
    """How many came in each of the last buckets of time."""

    def __init__(self) -> None:
        self._counts: deque[int] = deque([0] * BUCKETS, maxlen=BUCKETS)
        self._bucket = 0

    def add(self, count: int, moment: float) -> None:
        """Count some at a moment (seconds)."""
        self._forward(moment)
        self._counts[-1] += count

    def shape(self, moment: float) -> list[int]:
        """The counts, oldest first."""
        self._forward(moment)
        return list(self._counts)

    def last_minute(self, moment: float) -> int:
        """How many came in the last minute."""
        return sum(self.shape(moment)[-round(60 / BUCKET) :])

    def _forward(self, moment: float) -> None:
        bucket = int(moment // BUCKET)
        self._counts.extend([0] * min(BUCKETS, bucket - self._bucket))
        self._bucket = max(bucket, self._bucket)


class StreamWords:
    """Attributes, and the text values of each, with how often they were said; the rarest are forgotten."""

    def __init__(self) -> None:
        self.attributes: Counter[str] = Counter()
        self.values: dict[str, Counter[str]] = {}

    def add(self, event: Event) -> None:
        """Take the words of an event."""
        for name, value in event.tuples:
            self.attributes[name] += 1
            if isinstance(value, str) and len(value) <= 60:
                said = self.values.setdefault(name, Counter())
                said[value] += 1
                if len(said) > 2 * _VALUES:
                    self.values[name] = Counter(dict(said.most_common(_VALUES)))
        if len(self.attributes) > 2 * _ATTRIBUTES:
            self.attributes = Counter(dict(self.attributes.most_common(_ATTRIBUTES)))
            self.values = {name: said for name, said in self.values.items() if name in self.attributes}

    def common_attributes(self, most: int = 200) -> list[str]:
        """The attributes, most frequent first."""
        return [name for name, _ in self.attributes.most_common(most)]

    def common_values(self, most: int = 40) -> dict[str, list[str]]:
        """The values of each attribute, most frequent first."""
        return {name: [value for value, _ in said.most_common(most)] for name, said in self.values.items()}

    def terms(self, most: int = 300) -> list[tuple[str, int]]:
        """Attributes and values together, most frequent first."""
        found: Counter[str] = Counter(self.attributes)
        for said in self.values.values():
            found.update(said)
        return found.most_common(most)


class StreamWatch:
    """Reads along in a namespace as long as the broker runs."""

    def __init__(self, broker: Broker, namespace: str) -> None:
        self._broker, self.namespace = broker, namespace
        self._access = Access("page", namespace, frozenset({"subscribe"}))
        self.events: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.notices: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.event_rate, self.notice_rate = Tally(), Tally()
        self.by_subscription: dict[str, Tally] = {}
        self.words = StreamWords()
        self.odd = Oddities()
        self._verdicts: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take the last of the history, then all that comes."""
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
                logs.warning("the page lost its stream", reason=error.message)

        self._tasks.append(asyncio.create_task(run()))

    def stop(self) -> None:
        """Stop reading."""
        for task in self._tasks:
            task.cancel()

    # what comes

    def _take_event(self, record: LogRecord) -> None:
        event, moment = record.to_event(), record.received / 1e6
        self.words.add(event)
        self.odd.add(event, moment)
        self.event_rate.add(1, moment)
        row = {"key": record.position, "id": event.id, "when": clock(record.received), "pairs": pairs_of(event)}
        self.events.append(row | {"text": _searched(event)})

    def _take_notice(self, notice: Notice) -> None:
        body: dict[str, Any] = msgspec.json.decode(notice.body)
        events = [decode_line(msgspec.json.encode(one)) for one in body["events"]]
        moment = time.time() if notice.time is None else notice.time / 1e6
        self.notice_rate.add(1, moment)
        self.by_subscription.setdefault(notice.subscription, Tally()).add(1, moment)
        self.notices.append(
            {
                "key": notice.cursor,
                "name": notice.subscription,
                "kind": notice.kind,
                "score": notice.score,
                "when": clock(notice.time),
                "time": notice.time,
                "event": events[-1].id if events else "",
                "roles": body.get("roles"),
                "events": events,
                "text": f"{notice.subscription} {' '.join(map(_searched, events))}".lower(),
            }
        )

    # what is asked

    def last_events(self, *, after: int = 0, limit: int = 80, words: str = "") -> list[dict[str, Any]]:
        """The newest events beyond a position that have all the words, newest first."""
        return _newest(self.events, after, limit, words)

    def last_notices(self, *, after: int = 0, limit: int = 40, words: str = "") -> list[dict[str, Any]]:
        """The newest notifications beyond a cursor, newest first."""
        return _newest(self.notices, after, limit, words)

    def told(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Notifications with their verdict in words; may be called in another thread."""
        out, left = [], _EXPLAINED
        for row in rows:
            key = (row["name"], *((name, str(value)) for event in row["events"] for name, value in event.tuples))
            if key not in self._verdicts and left > 0:
                left -= 1
                self._verdicts[key] = self._verdict(row)
                while len(self._verdicts) > _VERDICTS:
                    self._verdicts.popitem(last=False)
            out.append(row | {"verdict": self._verdicts.get(key, "")})
        return out

    def _verdict(self, row: dict[str, Any]) -> str:
        if row["kind"] == "detection":
            return ", then ".join(
                f"{role}: {', '.join(value for _, value in pairs_of(event)[:2])}"
                for role, event in _roles(row["roles"] or {}, row["events"])
            )
        tenant = self._broker.host.tenant(self.namespace)
        entry = tenant.book.get(row["name"])
        if entry is None:
            return ""
        subscription = subscription_of(entry)
        if not isinstance(subscription.body, Profile):
            return ""
        try:
            found = tenant.engine.matcher.explain(subscription.body, row["events"][0], options=subscription.options)
        except LikewiseError as error:
            return error.message
        return told_plainly(found)


class Watches:
    """The watches of a broker, made when somebody looks."""

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
        """Stop all of them."""
        for task in self._watches.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().stop()


def _roles(roles: dict[str, list[str]], events: list[Event]) -> list[tuple[str, Event]]:
    known = {event.id: event for event in events}
    return [(role, known[one]) for role, ids in roles.items() for one in ids[:1] if one in known]


def _newest(rows: deque[dict[str, Any]], after: int, limit: int, words: str) -> list[dict[str, Any]]:
    wanted, out = words.lower().split(), list[dict[str, Any]]()
    for row in reversed(rows):
        if row["key"] <= after or len(out) == limit:
            break
        if all(word in row["text"] for word in wanted):
            out.append(row)
    return out


def _searched(event: Event) -> str:
    return " ".join(f"{name} {value}" for name, value in event.tuples).lower()
