"""Subscribers that idle, crawl or hang, and memory over many events: the others must not notice."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from _broker_load import LINES, Connection, Stream, connected, load, quantile
from _broker_world import Rows, Served, feed, many_files, say, serving, subscriptions


def crowds(options: tuple[str, ...], quick: bool) -> Rows:
    """1,000 streams that hear nothing, 100 that do not read, and a webhook that hangs."""
    many_files()
    idle, slow = (200, 20) if quick else (1000, 100)
    stream = feed(4_000 if quick else 10_000)
    with serving("--private-webhooks", *options) as served, _hanging() as port:
        with served.client() as client:
            client.post("/v1/subscriptions", json={"text": subscriptions(1000)}).raise_for_status()
            text = "hooked: {type = rainfall}\nnever: {type = nothing of the kind}\nall: {value >= 0}"
            client.post("/v1/subscriptions", json={"text": text}).raise_for_status()
            hook = {"webhook": f"http://127.0.0.1:{port}/"}
            client.patch("/v1/subscriptions/hooked", json=hook).raise_for_status()
        say(f"{idle} idle and {slow} slow streams, a webhook that hangs")
        rows = asyncio.run(_among(served, stream.lines, idle=idle, slow=slow))
        ready = served.client().get("/health/ready")
        rows.append({"what": "ready meanwhile", "value": ready.status_code, "unit": "status", "target": 200})
    return rows


@contextmanager
def _hanging() -> Iterator[int]:
    """A receiver that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for one in held:
            one.close()


async def _among(served: Served, lines: list[bytes], *, idle: int, slow: int) -> Rows:
    before = await load(served, lines, size=100, connections=4, rate=25)
    idlers = [Stream(["never"]) for _ in range(idle)]
    crawlers = [Stream(["all"]) for _ in range(slow)]
    for one in (*idlers, *crawlers):
        await connected(served.port, one)
        await one.open.wait()
    for one in crawlers:
        assert one.transport is not None
        one.transport.pause_reading()
    among = await load(served, lines, size=100, connections=4, rate=25)
    crowd = await asyncio.to_thread(served.metric, "likewise_streams")
    memory = served.megabytes()
    for one in crawlers:
        assert one.transport is not None
        one.transport.resume_reading()
    deadline = time.monotonic() + 120
    while any(len(one.found) < len(lines) for one in crawlers) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    behind = sum(len(one.found) < len(lines) for one in crawlers)
    for one in (*idlers, *crawlers):
        one.close()
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
    """Resident memory over many events, with 1,000 subscriptions and a stream."""
    lines = feed(20_000).lines
    bodies = [b"\n".join(lines[low : low + 500]) for low in range(0, len(lines), 500)]
    with serving("--keep-size", "300m", *options) as served:
        with served.client() as client:
            client.post("/v1/subscriptions", json={"text": subscriptions(1000)}).raise_for_status()
        marks, rate = asyncio.run(_long(served, bodies, count))
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


async def _long(served: Served, bodies: list[bytes], count: int) -> tuple[list[float], float]:
    publishers, marks, sent = [Connection() for _ in range(4)], list[float](), 0
    for one in publishers:
        await connected(served.port, one)
    began = time.perf_counter()

    async def work(publisher: Connection) -> None:
        nonlocal sent
        while sent < count:
            body = bodies[(sent // 500) % len(bodies)]
            sent += 500
            await publisher.post(body, LINES)
            if sent * 10 >= count * (len(marks) + 1):
                marks.append(served.megabytes())
                say(f"{sent:,} events, {marks[-1]:.0f} MB")

    await asyncio.gather(*(work(one) for one in publishers))
    await asyncio.to_thread(served.settle)
    took = time.perf_counter() - began
    marks.append(served.megabytes())
    for one in publishers:
        one.close()
    await asyncio.sleep(0.05)
    return marks, count / took
