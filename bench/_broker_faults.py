"""Idle, slow and hanging subscribers, which must not affect others, and memory over many events."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from _broker_load import LINES, Connection, Stream, connected, load, quantile
from _broker_world import Rows, Served, feed, raise_file_limit, serving, show_progress, subscriptions


def crowds(options: tuple[str, ...], quick: bool) -> Rows:
    """Measure with 1,000 idle streams, 100 streams that do not read, and a webhook that hangs."""
    raise_file_limit()
    idle, slow = (200, 20) if quick else (1000, 100)
    stream = feed(4_000 if quick else 10_000)
    with serving("--private-webhooks", *options) as served, _hanging_receiver() as port:
        with served.client() as client:
            client.post("/v1/subscriptions", json={"text": subscriptions(1000)}).raise_for_status()
            text = "hooked: {type = rainfall}\nnever: {type = nothing of the kind}\nall: {value >= 0}"
            client.post("/v1/subscriptions", json={"text": text}).raise_for_status()
            hook = {"webhook": f"http://127.0.0.1:{port}/"}
            client.patch("/v1/subscriptions/hooked", json=hook).raise_for_status()
        show_progress(f"{idle} idle and {slow} slow streams, a webhook that hangs")
        rows = asyncio.run(_load_among(served, stream.lines, idle=idle, slow=slow))
        ready = served.client().get("/health/ready")
        rows.append({"what": "ready meanwhile", "value": ready.status_code, "unit": "status", "target": 200})
    return rows


@contextmanager
def _hanging_receiver() -> Iterator[int]:
    """A webhook receiver that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()


async def _load_among(served: Served, lines: list[bytes], *, idle: int, slow: int) -> Rows:
    before = await load(served, lines, size=100, connections=4, rate=25)
    idle_streams = [Stream(["never"]) for _ in range(idle)]
    slow_streams = [Stream(["all"]) for _ in range(slow)]
    for stream in (*idle_streams, *slow_streams):
        await connected(served.port, stream)
        await stream.open.wait()
    for stream in slow_streams:
        assert stream.transport is not None
        stream.transport.pause_reading()
    among = await load(served, lines, size=100, connections=4, rate=25)
    crowd = await asyncio.to_thread(served.metric, "likewise_streams")
    memory = served.megabytes()
    for stream in slow_streams:
        assert stream.transport is not None
        stream.transport.resume_reading()
    deadline = time.monotonic() + 120
    while any(len(stream.found) < len(lines) for stream in slow_streams) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    behind = sum(len(stream.found) < len(lines) for stream in slow_streams)
    for stream in (*idle_streams, *slow_streams):
        stream.close()
    await asyncio.sleep(0.1)
    what = f"2,500 events/s among {idle:,} idle and {slow:,} slow streams"
    return [
        {
            "what": f"{what}: p99",
            "value": quantile(among.delays(), 0.99),
            "unit": "ms",
            "note": f"{quantile(before.delays(), 0.99):.3g} ms without them",
        },
        {"what": f"{what}: refused", "value": among.refused, "unit": "requests", "target": 0},
        {"what": "slow streams that missed something in the end", "value": behind, "unit": f"of {slow}", "target": 0},
        {"what": "streams open at the time", "value": int(crowd), "unit": "streams"},
        {"what": "memory with them", "value": memory, "unit": "MB"},
    ]


def memory(options: tuple[str, ...], count: int) -> Rows:
    """Measure resident memory over many events, with 1,000 subscriptions."""
    lines = feed(20_000).lines
    bodies = [b"\n".join(lines[low : low + 500]) for low in range(0, len(lines), 500)]
    with serving("--keep-size", "300m", *options) as served:
        with served.client() as client:
            client.post("/v1/subscriptions", json={"text": subscriptions(1000)}).raise_for_status()
        marks, rate = asyncio.run(_publish_many(served, bodies, count))
    half = marks[len(marks) // 2 :]
    return [
        {"what": f"{count:,} events: accepted and matched", "value": rate, "unit": "events/s"},
        {"what": f"{count:,} events: memory after a tenth", "value": marks[0], "unit": "MB"},
        {
            "what": f"{count:,} events: memory at half, at the end",
            "value": f"{half[0]:.0f}, {half[-1]:.0f}",
            "unit": "MB",
        },
    ]


async def _publish_many(served: Served, bodies: list[bytes], count: int) -> tuple[list[float], float]:
    publishers, marks, sent = [Connection() for _ in range(4)], list[float](), 0
    for publisher in publishers:
        await connected(served.port, publisher)
    began = time.perf_counter()

    async def work(publisher: Connection) -> None:
        nonlocal sent
        while sent < count:
            body = bodies[(sent // 500) % len(bodies)]
            sent += 500
            await publisher.post(body, LINES)
            if sent * 10 >= count * (len(marks) + 1):
                marks.append(served.megabytes())
                show_progress(f"{sent:,} events, {marks[-1]:.0f} MB")

    await asyncio.gather(*(work(publisher) for publisher in publishers))
    await asyncio.to_thread(served.wait_until_matched)
    took = time.perf_counter() - began
    marks.append(served.megabytes())
    for publisher in publishers:
        publisher.close()
    await asyncio.sleep(0.05)
    return marks, count / took
