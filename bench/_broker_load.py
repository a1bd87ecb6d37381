"""A load generator with a minimal HTTP client, which leaves most of the two cores to the broker."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from _broker_world import Served

LINES, JSON = "application/x-ndjson", "application/json"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_FOUND = re.compile(rb'"subscription":"([^"]+)".*?"events":\[\{"id":"(\d+)"')


class Connection(asyncio.Protocol):
    """A persistent connection with one request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None:
            return
        length = _LENGTH.search(self._buffer, 0, end)
        size = int(length[1]) if length else 0
        if len(self._buffer) < end + 4 + size:
            return
        answer = (int(self._buffer[9:12]), self._buffer[end + 4 : end + 4 + size])
        self._buffer = self._buffer[end + 4 + size :]
        if not self._waiting.done():
            self._waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("the broker closed the connection"))

    async def post(self, body: bytes, kind: str = LINES) -> tuple[int, bytes]:
        """Publish and wait for the response."""
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(
            b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
            % (kind.encode(), len(body), body)
        )
        return await self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Stream(asyncio.Protocol):
    """A stream of server-sent events that records when each notification arrived."""

    def __init__(self, names: Iterable[str] = (), *, after: str = "") -> None:
        query = "&".join([*(f"subscription={name}" for name in names), *([f"after={after}"] if after else [])])
        self._request = f"GET /v1/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        self._rest = b""
        self.transport: asyncio.Transport | None = None
        self.open = asyncio.Event()
        self.found: list[tuple[str, int, float]] = []
        """Subscription, number of the event, time of arrival."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.open.set()
        arrived = time.perf_counter()
        complete, mark, rest = (self._rest + data).rpartition(b"\n\n")
        self._rest = rest
        if mark:
            self.found += [(name.decode(), int(number), arrived) for name, number in _FOUND.findall(complete)]

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


@dataclass
class Measured:
    """The measurements of one run."""

    seconds: float = 0.0
    sent: dict[int, float] = field(default_factory=dict)
    found: list[tuple[str, int, float]] = field(default_factory=list)
    refused: int = 0

    def delays(self) -> list[float]:
        """Milliseconds from the request to the notification, sorted."""
        return sorted((came - self.sent[number]) * 1000 for _, number, came in self.found if number in self.sent)

    def until_last(self) -> float:
        """Seconds from the first request to the last notification."""
        return max(came for _, _, came in self.found) - min(self.sent.values()) if self.found else self.seconds


def quantile(values: list[float], share: float) -> float:
    """A quantile of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


async def connected(port: int, protocol: Connection | Stream) -> None:
    """Connect to the broker."""
    await asyncio.get_running_loop().create_connection(lambda: protocol, "127.0.0.1", port)


async def load(
    served: Served,
    lines: list[bytes],
    *,
    size: int,
    connections: int,
    rate: float | None = None,
    streams: int = 10,
    subscribed: int = 1000,
) -> Measured:
    """Publish in requests of `size` events, as fast as possible or at `rate` requests per second.

    The streams divide the subscriptions among them and are read until everything is matched and delivered.
    """
    measured = Measured()
    listeners = [Stream(f"s{n}" for n in range(low, subscribed, streams)) for low in range(streams)]
    publishers = [Connection() for _ in range(connections)]
    for protocol in (*listeners, *publishers):
        await connected(served.port, protocol)
    for listener in listeners:
        await asyncio.wait_for(listener.open.wait(), 60)
    kind = JSON if size == 1 else LINES
    requests = iter([(low, b"\n".join(lines[low : low + size])) for low in range(0, len(lines), size)])
    start = time.perf_counter()

    async def work(publisher: Connection) -> None:
        for low, body in requests:
            due = start + (low // size) / rate if rate else time.perf_counter()
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            for number in range(low, low + size):
                measured.sent[number] = due
            status, _ = await publisher.post(body, kind)
            measured.refused += status != 200

    await asyncio.gather(*(work(publisher) for publisher in publishers))
    measured.seconds = time.perf_counter() - start
    await asyncio.to_thread(served.wait_until_matched)
    seen = -1
    while seen != (seen := sum(len(listener.found) for listener in listeners)):
        await asyncio.sleep(0.5)
    measured.found = [found for listener in listeners for found in listener.found]
    for protocol in (*listeners, *publishers):
        protocol.close()
    await asyncio.sleep(0.05)
    return measured
