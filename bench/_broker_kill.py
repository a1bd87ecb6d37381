"""`kill -9` at random moments under load: count lost events and missed notifications."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from _broker_world import Rows, Served, show_progress, start, stop
from likewise.engine import Engine
from likewise.events import Event

TEXT = """warm: {type = temperature, value > 80}
left: {type = open} as o then not {type = closed} within 30 seconds
both: {type = open} as o then {type = closed} as c within 20 seconds where o.room = c.room
"""
KINDS = ("temperature", "open", "closed", "weather")
BATCH = 9
"""Maximum number of events per request."""


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Random events, seven seconds of event time apart, so that patterns have partial instances across kills."""
    chance = random.Random(seed)
    return [
        {
            "id": f"e{number}",
            "time": number * 7,
            "attributes": {
                "type": chance.choice(KINDS),
                "value": chance.randrange(100),
                "room": f"r{chance.randrange(2)}",
            },
        }
        for number in range(count)
    ]


def uninterrupted(trace: list[dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """The notifications of an engine that is not killed."""
    engine, found = Engine(), []
    engine.subscribe(TEXT)
    for record in trace:
        moment = record["time"] * 1_000_000
        event = Event(record["id"], tuple(record["attributes"].items()), (), moment, moment)
        found += [
            (notification.subscription, tuple(member.id for member in notification.events))
            for notification in engine.publish(event)
        ]
    return sorted(found)


class Subscriber(threading.Thread):
    """Follows the stream and resumes after the last id when the broker has crashed."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.last, self.ended = url, "0", threading.Event()
        self.got: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.changed = 0
        """Number of notifications that were repeated with the same id but other content."""

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                with httpx.stream("GET", f"{self.url}/v1/stream", params={"after": self.last}, timeout=20) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("data: "):
                            self._note(json.loads(line[6:]))
                        if self.ended.is_set():
                            return
            except httpx.HTTPError:
                time.sleep(0.05)

    def _note(self, body: dict[str, Any]) -> None:
        notification = (body["subscription"], tuple(event["id"] for event in body["events"]))
        self.changed += self.got.setdefault(body["id"], notification) != notification
        self.last = body["id"]


def kills(count: int, *, per_kill: int = 120, seed: int = 11) -> Rows:
    """Kill the broker `count` times, each time after a random number of acknowledged events; returns the report."""
    folder, chance = Path(tempfile.mkdtemp(prefix="likewise-kill-")), random.Random(seed)
    trace = events((count + 1) * (2 * per_kill + BATCH), seed)
    served = start(folder)
    subscriber = Subscriber(served.url)
    try:
        httpx.post(f"{served.url}/v1/subscriptions", json={"text": TEXT}, timeout=60).raise_for_status()
        subscriber.start()
        acknowledged, times = 0, list[float]()
        while len(times) < count:
            acknowledged = _until_killed(served, trace, acknowledged, acknowledged + chance.randrange(2 * per_kill))
            began = time.perf_counter()
            served = start(folder)
            times.append(time.perf_counter() - began)
            subscriber.url = served.url
            if len(times) % 10 == 0:
                show_progress(f"killed {len(times)} times, {acknowledged:,} events acknowledged")
        last = acknowledged
        with served.client() as client:
            while acknowledged < last + per_kill:
                acknowledged = _publish(client, trace, acknowledged)
        return _report(served, subscriber, trace[:acknowledged], times, last)
    finally:
        subscriber.ended.set()
        stop(served)
        shutil.rmtree(folder, ignore_errors=True)


def _until_killed(served: Served, trace: list[dict[str, Any]], low: int, calm: int) -> int:
    """Publish without a pause and kill the broker shortly after `calm` events; returns how many it acknowledged."""
    timer = threading.Timer((calm % 29) / 1000, served.kill)
    with served.client() as client:
        try:
            while True:
                if low >= calm and timer.ident is None:
                    timer.start()
                low = _publish(client, trace, low)
        except httpx.TransportError:
            timer.join()
            return low


def _publish(client: httpx.Client, trace: list[dict[str, Any]], low: int) -> int:
    """Publish a batch and wait for its acknowledgement; a batch keeps its idempotency key after a kill."""
    batch = trace[low : low + 1 + (low * 7919) % BATCH]
    client.post("/v1/events", json=batch, headers={"Idempotency-Key": f"k{low}"}).raise_for_status()
    return low + len(batch)


def _report(served: Served, subscriber: Subscriber, trace: list[dict[str, Any]], times: list[float], last: int) -> Rows:
    expected = uninterrupted(trace)
    deadline = time.monotonic() + 600
    while len(subscriber.got) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.05)
    stored, after = list[str](), 0
    with served.client() as client:
        while page := client.get("/v1/events", params={"after": after, "limit": 1000}).json()["events"]:
            stored += [event["id"] for event in page]
            after = page[-1]["position"]
    got = sorted(subscriber.got.values())
    lost = len({event["id"] for event in trace} - set(stored))
    doubled = len(stored) - len(set(stored))
    missed = len(set(expected) - set(got))
    what = f"kill -9 at {len(times)} random moments"
    good = not (lost or doubled or missed or subscriber.changed) and got == expected
    return [
        {"what": f"{what}: acknowledged by the last kill", "value": last, "unit": "events"},
        {"what": f"{what}: acknowledged events lost", "value": lost, "unit": f"of {len(trace):,}", "target": 0},
        {"what": f"{what}: events stored twice", "value": doubled, "unit": f"of {len(trace):,}", "target": 0},
        {"what": f"{what}: notifications missed", "value": missed, "unit": f"of {len(expected):,}", "target": 0},
        {
            "what": f"{what}: equal to an uninterrupted run",
            "value": "yes" if good else "no",
            "unit": "",
            "note": "" if good else "failed: the runs differ",
        },
        {"what": "ready again after a kill, slowest", "value": max(times), "unit": "s"},
    ]
