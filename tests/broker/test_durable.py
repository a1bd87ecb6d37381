"""Nothing that was acknowledged is lost, and a restart changes nothing that subscribers see."""

from __future__ import annotations

import asyncio
import random
import resource
import shutil
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from likewise.broker import Arrival, BrokerClient, BrokerSettings, Retention
from likewise.broker.engines.spaces import EngineFactory
from likewise.broker.store import records
from likewise.broker.store.schema import MIGRATIONS, migrate
from likewise.errors import BuildError, LikewiseError
from likewise.events import Event

from .conftest import running, start_process

TEXT = """usage: {type~ = energy consumption~}
parking: {type~ = parking~, slots > 0}
left: {type = open} as o then not {type = closed} within 30 seconds
both: {type = open} as o then {type = closed} as c within 20 seconds where o.room = c.room
"""
KINDS = ("electricity usage", "car park", "open", "closed", "weather", "energy consumption")


def trace(count: int, seed: int = 1) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "id": f"e{number}",
            "time": number * 7,
            "attributes": {
                "type": chance.choice(KINDS),
                "slots": chance.randrange(3),
                "room": f"r{chance.randrange(2)}",
            },
        }
        for number in range(count)
    ]


def summary(arrival: Arrival) -> tuple[Any, ...]:
    return (arrival.subscription, tuple(event["id"] for event in arrival.events), arrival.score)


def by_engine(settings: BrokerSettings, events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The notifications of an engine in this process for the same events."""
    factory = EngineFactory(settings)
    factory.open()
    engine = factory.make(lambda _: None)
    engine.subscribe(TEXT)
    notifications = []
    for record in events:
        moment = record["time"] * 1_000_000
        event = Event(record["id"], tuple(record["attributes"].items()), (), moment, moment)
        notifications += [
            (
                notification.subscription,
                tuple(member.id for member in notification.events),
                round(float(notification.score), 6),  # as the broker does
            )
            for notification in engine.publish(event)
        ]
    return sorted(notifications)


def all_arrivals(client: BrokerClient, count: int) -> list[Arrival]:
    found: list[Arrival] = []
    for arrival in client.stream(after="0", timeout=60):
        found.append(arrival)
        if len(found) == count:
            break
    return found


def publish_in_parts(client: BrokerClient, events: list[dict[str, Any]], chance: random.Random) -> None:
    while events:
        size = chance.choice((1, 3, 20))
        client.publish(events[:size])
        events = events[size:]


def test_the_broker_finds_what_the_engine_finds_across_restarts(settings):
    events, chance = trace(300), random.Random(5)
    expected = by_engine(settings, events)
    assert {name for name, _, _ in expected} == {"usage", "parking", "left", "both"}
    settings = replace(settings, snapshot_events=70)
    for part in range(3):
        with running(settings) as served:
            client = served.client()
            if part == 0:
                client.subscribe(TEXT)
            publish_in_parts(client, events[part * 100 : part * 100 + 100], chance)
            found = all_arrivals(client, len(expected)) if part == 2 else []
    assert sorted(map(summary, found)) == expected
    assert len({arrival.id for arrival in found}) == len(found)


def test_without_its_snapshots_the_whole_log_gives_the_same_state(settings):
    events = trace(120)
    expected = by_engine(settings, events)
    with running(settings) as served:
        client = served.client()
        client.subscribe(TEXT)
        client.publish(events[:60])
    database = sqlite3.connect(settings.folder / "broker.sqlite3")
    with database:
        database.execute("UPDATE snapshots SET body = x'00'")
    database.close()
    with running(settings) as served:
        client = served.client()
        client.publish(events[60:])
        found = all_arrivals(client, len(expected))
    assert sorted(map(summary, found)) == expected


class Listener(threading.Thread):
    """A subscriber that reconnects after every crash of the broker and records what it receives."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.url, self.token = "", ""
        self.got: dict[str, Arrival] = {}
        self.enough = threading.Event()
        self.want = -1

    def run(self) -> None:
        last = "0"
        while not self.enough.is_set():
            try:
                with BrokerClient(self.url, token=self.token) as client:
                    for arrival in client.stream(after=last, reconnect=False):
                        before = self.got.setdefault(arrival.id, arrival)
                        assert summary(before) == summary(arrival)
                        last = arrival.id
                        if len(self.got) == self.want:
                            self.enough.set()
                            return
            except LikewiseError:
                time.sleep(0.05)


def kill_run(folder: Path, settings: BrokerSettings, *, kills: int, count: int, seed: int) -> dict[str, Any]:
    """Publish under `kill -9` at random moments, and compare with an uninterrupted engine."""
    chance, events = random.Random(seed), trace(count, seed)
    options = ("--space", settings.spaces[0])
    process = start_process(folder, *options)
    listener, sent = Listener(), 0
    listener.url, listener.token = process.url, (folder / "admin.token").read_text().strip()
    with BrokerClient(process.url, token=listener.token) as client:
        client.subscribe(TEXT)
    listener.start()
    moments = sorted(chance.sample(range(1, count), kills))
    batch: list[dict[str, Any]] = []
    while sent < count:
        if moments and sent >= moments[0]:
            moments.pop(0)
            threading.Timer(chance.uniform(0, 0.05), process.kill).start()
        batch = batch or events[sent : sent + chance.choice((1, 5, 25))]
        try:
            with BrokerClient(process.url, token=listener.token, retries=0) as client:
                client.publish(batch, key=f"k{sent}")
        except LikewiseError:
            process.process.wait(timeout=30)
            process.process.stderr.close()
            process = start_process(folder, *options)
            listener.url = process.url
            continue  # the same batch with the same key: stored once
        sent, batch = sent + len(batch), []
    expected = by_engine(settings, events)
    listener.want = len(expected)
    if len(listener.got) >= listener.want:
        listener.enough.set()
    listener.enough.wait(timeout=60)
    with BrokerClient(process.url, token=listener.token) as client:
        stored = client.list_events(limit=1000)["events"] if count <= 1000 else []
    process.stop()
    process.process.stderr.close()
    return {"expected": expected, "found": sorted(map(summary, listener.got.values())), "stored": stored, "sent": count}


def test_killed_at_random_moments_nothing_is_lost(settings, tmp_path):
    result = kill_run(tmp_path / "killed", settings, kills=2, count=200, seed=3)
    assert [event["id"] for event in result["stored"]] == [f"e{number}" for number in range(200)]
    assert result["found"] == result["expected"]


def test_a_subscriber_that_fell_behind_reads_from_the_log(settings):
    with running(settings) as served:
        client = served.client()
        client.subscribe("all: {number >= 0}")
        served.broker.hub._most = 50
        for low in range(0, 1000, 100):
            client.publish([{"attributes": {"number": number}} for number in range(low, low + 100)])
        served.settle()
        assert served.broker.hub.floor("default") > 0
        found = all_arrivals(client, 1000)
    assert [arrival.event["attributes"]["number"] for arrival in found] == list(range(1000))


def test_retention_removes_what_a_replay_does_not_need(settings):
    settings = replace(settings, retention=Retention(age=0.0))
    with running(settings) as served:
        client = served.client()
        client.subscribe("all: {number >= 0}")
        client.publish([{"attributes": {"number": 1}}])
        position = served.broker.log.position
    with running(settings) as served:
        client = served.client()
        done = asyncio.run_coroutine_threadsafe(served.broker.upkeep.retain(), served.broker._loop)
        assert done.result(timeout=30) == position
        assert client.list_events()["events"] == []
        client.publish([{"attributes": {"number": 2}}])
        [found] = all_arrivals(client, 1)
        assert found.event["attributes"] == {"number": 2}
        assert served.broker.log.position == position + 1


def test_a_full_disk_is_a_problem_document_and_passes(processes, tmp_path):
    """The files of a running broker reach a size limit, which is raised later."""
    folder = tmp_path / "broker"
    started = processes(folder, "--open")
    with BrokerClient(started.url) as client:
        client.publish([{"id": "first", "attributes": {"number": 1}}])
        largest = max(path.stat().st_size for path in folder.iterdir())
        _, hard = resource.prlimit(started.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(started.process.pid, resource.RLIMIT_FSIZE, (largest, hard))
        with pytest.raises(LikewiseError, match="could not be stored: disk I/O error"):
            client.publish([{"id": "refused", "attributes": {f"text {n}": "x" * 60_000 for n in range(9)}}])
        checks = client._http.get("/health/ready").json()["checks"]
        assert (checks["storage"], checks["engine"]) == ("disk I/O error", "ok")
        resource.prlimit(started.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        client.publish([{"id": "second", "attributes": {"number": 2}}])
        assert client._http.get("/health/ready").json()["checks"]["storage"] == "ok"
        assert [event["id"] for event in client.list_events()["events"]] == ["first", "second"]


def test_the_first_moment_of_1970_does_not_make_a_replay_live(settings):
    """The clock advances live streams only; in a replay, events would be late otherwise."""
    with running(settings) as served:
        client = served.client()
        client.subscribe("left: {type = open} then not {type = closed} within 30 seconds")
        client.publish([{"time": 0, "attributes": {"type": "open"}}])
        served.settle()
        position = served.broker.log.position
        ticking = asyncio.run_coroutine_threadsafe(served.broker.upkeep.tick(), served.broker._loop)
        ticking.result(timeout=600)
        assert served.broker.log.position == position
        assert served.broker.host.tenants["default"].lag > 0


def test_a_clock_that_goes_back_changes_no_order(settings, monkeypatch):
    with running(settings) as served:
        served.client().publish([{"attributes": {"number": 1}}])
    real = records.now
    monkeypatch.setattr(records, "now", lambda: real() - 3_600_000_000)
    with running(settings) as served:
        client = served.client()
        client.publish([{"attributes": {"number": 2}}, {"attributes": {"number": 3}}])
        served.settle()
        events = client.list_events()["events"]
        text = client._http.get("/metrics").text
    assert [event["attributes"]["number"] for event in events] == [1, 2, 3]
    times = [event["received"] for event in events]
    assert times == sorted(times)
    assert len({*times}) == 3
    [behind] = [line for line in text.splitlines() if line.startswith("likewise_clock_behind_seconds ")]
    assert float(behind.split()[1]) > 3000


def test_a_backup_of_a_running_broker_is_a_broker(settings, tmp_path):
    with running(settings) as served:
        client = served.client()
        client.subscribe("all: {number >= 0}")
        client.publish([{"attributes": {"number": 1}}])
        served.settle()
        answer = client._http.post("/v1/backup")
        assert answer.status_code == 200
        token = served.token
    copy = replace(settings, folder=tmp_path / "copy")
    copy.folder.mkdir()
    (copy.folder / "broker.sqlite3").write_bytes(answer.content)
    shutil.copy(settings.token_file, copy.token_file)
    with running(copy) as served:
        client = served.client(token)
        assert [subscription["name"] for subscription in client.list_subscriptions()["subscriptions"]] == ["all"]
        client.publish([{"attributes": {"number": 2}}])
        assert [arrival.event["attributes"]["number"] for arrival in all_arrivals(client, 2)] == [1, 2]


def test_a_database_of_a_newer_version_is_refused_and_migrations_run_once():
    engine = create_engine("sqlite://")
    ran: list[int] = []
    version = len(MIGRATIONS)
    steps = (*MIGRATIONS, lambda _: ran.append(version + 1))
    with engine.begin() as connection:
        assert migrate(connection) == 0
        assert migrate(connection, steps) == version
        assert migrate(connection, steps) == version + 1
        assert ran == [version + 1]
        with pytest.raises(BuildError, match=f"schema {version + 1}, this version knows {version}"):
            migrate(connection)
    engine.dispose()
