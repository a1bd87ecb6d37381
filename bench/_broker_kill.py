"""`kill -9` at random moments under load: what was acknowledged, what was lost, what subscribers missed."""

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

from _broker_world import Rows, Served, say, start, stop
from likewise.engine import Engine
from likewise.events import Event

TEXT = """warm: {type = temperature, value > 80}
left: {type = open} as o then not {type = closed} within 30 seconds
both: {type = open} as o then {type = closed} as c within 20 seconds where o.room = c.room
"""
KINDS = ("temperature", "open", "closed", "weather")


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Seven seconds of event time apart, so that patterns wait across kills."""
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
    """What one engine finds that nobody kills."""
    engine, found = Engine(), []
    engine.subscribe(TEXT)
    for one in trace:
        moment = one["time"] * 1_000_000
        event = Event(one["id"], tuple(one["attributes"].items()), (), moment, moment)
        found += [(n.subscription, tuple(each.id for each in n.events)) for n in engine.publish(event)]
    return sorted(found)


class Subscriber(threading.Thread):
    """Follows the stream from the last id it has seen, through every crash."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.last, self.ended = url, "0", threading.Event()
        self.got: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.changed = 0
        """Notifications that came again under their id with another content."""

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
        told = (body["subscription"], tuple(event["id"] for event in body["events"]))
        self.changed += self.got.setdefault(body["id"], told) != told
        self.last = body["id"]


def kills(count: int, *, per_kill: int = 120, seed: int = 11) -> Rows:
    """The report of `count` kills."""
    folder, chance = Path(tempfile.mkdtemp(prefix="likewise-kill-")), random.Random(seed)
    trace = events(count * per_kill, seed)
    served = start(folder)
    subscriber = Subscriber(served.url)
    try:
        httpx.post(f"{served.url}/v1/subscriptions", json={"text": TEXT}, timeout=60).raise_for_status()
        subscriber.start()
        acknowledged, times = 0, list[float]()
        while acknowledged < len(trace):
            end = min(len(trace), acknowledged + per_kill)
            timer = threading.Timer(chance.uniform(0, 1.5), served.kill)
            if len(times) < count:
                timer.start()
            acknowledged = _publish(served, trace, acknowledged, end, chance)
            if len(times) < count:
                timer.join()
                began = time.perf_counter()
                served = start(folder)
                times.append(time.perf_counter() - began)
                subscriber.url = served.url
                if len(times) % 10 == 0:
                    say(f"killed {len(times)} times, {acknowledged} events acknowledged")
        return _report(served, subscriber, trace, times)
    finally:
        subscriber.ended.set()
        stop(served)
        shutil.rmtree(folder, ignore_errors=True)


def _publish(served: Served, trace: list[dict[str, Any]], low: int, end: int, chance: random.Random) -> int:
    """Publish until all is acknowledged or the broker is gone; the same batch has the same key."""
    with httpx.Client(base_url=served.url, timeout=30) as client:
        while low < end:
            size = 1 + (low * 7919) % 9  # the same batch after a kill as before it
            batch = trace[low : low + size]
            try:
                answer = client.post("/v1/events", json=batch, headers={"Idempotency-Key": f"k{low}"})
                answer.raise_for_status()
            except httpx.HTTPError:
                return low
            low += len(batch)
            time.sleep(chance.uniform(0, 0.004))
    return low


def _report(served: Served, subscriber: Subscriber, trace: list[dict[str, Any]], times: list[float]) -> Rows:
    expected = uninterrupted(trace)
    deadline = time.monotonic() + 120
    while len(subscriber.got) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.05)
    stored, after = list[str](), 0
    with served.client() as client:
        while page := client.get("/v1/events", params={"after": after, "limit": 1000}).json()["events"]:
            stored += [event["id"] for event in page]
            after = page[-1]["position"]
    got = sorted(subscriber.got.values())
    lost = len({one["id"] for one in trace} - set(stored))
    doubled = len(stored) - len(set(stored))
    missed = len(set(expected) - set(got))
    what = f"kill -9 at {len(times)} random moments"
    good = not (lost or doubled or missed or subscriber.changed) and got == expected
    return [
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
