"""Alternatives for comparison: Mosquitto with string comparison, and percolation with SQLite full-text search."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _broker_world import PLACES, SUBSCRIBED, Feed


@dataclass(frozen=True)
class PeerResult:
    """Events per second, and the matched pairs of subscription and event."""

    rate: float
    found: set[tuple[str, int]]


def quality(found: set[tuple[str, int]], meant: list[str]) -> tuple[float, float]:
    """Recall and precision against the subscription that each event is meant for."""
    right = sum((name, number) in found for number, name in enumerate(meant))
    return right / len(meant), right / len(found) if found else 0.0


def full_text(feed: Feed, count: int) -> PeerResult:
    """Percolation: every subscription is a document, every event a query for a word of its type and its place."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE s USING fts5(type, place, tokenize='porter')")
    documents = [(number + 1, SUBSCRIBED[number % 10], PLACES[number // 10 % 100]) for number in range(count)]
    database.executemany("INSERT INTO s(rowid, type, place) VALUES (?, ?, ?)", documents)
    found: set[tuple[str, int]] = set()
    start = time.perf_counter()
    for number, line in enumerate(feed.lines):
        attributes = json.loads(line)["attributes"]
        words = " OR ".join(f'"{word}"' for word in attributes["type"].split())
        query = f'type : ({words}) AND place : "{attributes["place"]}"'
        found.update(
            (f"s{row - 1}", number) for (row,) in database.execute("SELECT rowid FROM s WHERE s MATCH ?", (query,))
        )
    rate = len(feed.lines) / (time.perf_counter() - start)
    database.close()
    return PeerResult(rate, found)


def mosquitto(feed: Feed, count: int) -> PeerResult | None:
    """Mosquitto with QoS 1, and a subscriber that looks up the strings of each event in a table."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    if not Path(program).exists():
        return None
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    wanted = {(SUBSCRIBED[number % 10], PLACES[number // 10 % 100]): f"s{number}" for number in range(count)}
    found: set[tuple[str, int]] = set()
    received, all_received, subscribed = [0], threading.Event(), threading.Event()

    def received_message(_: Any, __: Any, message: Any) -> None:
        event = json.loads(message.payload)
        name = wanted.get((event["attributes"]["type"], event["attributes"]["place"]))
        if name is not None:
            found.add((name, int(event["id"])))
        received[0] += 1
        if received[0] >= len(feed.lines):
            all_received.set()

    with tempfile.TemporaryDirectory(prefix="likewise-bench-") as folder:
        port = _free_port()
        file = Path(folder) / "mosquitto.conf"
        file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nuser root\n")
        process = subprocess.Popen([program, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        clients = [mqtt.Client(CallbackAPIVersion.VERSION2) for _ in range(2)]
        try:
            _until_listening(port)
            clients[0].on_message = received_message
            clients[0].on_subscribe = lambda *_: subscribed.set()
            for client in clients:
                client.max_inflight_messages_set(1000)
                client.max_queued_messages_set(0)
                client.connect("127.0.0.1", port)
                client.loop_start()
            clients[0].subscribe("events", qos=1)
            subscribed.wait(30)
            start = time.perf_counter()
            for line in feed.lines:
                clients[1].publish("events", line, qos=1)
            all_received.wait(120)
            rate = received[0] / (time.perf_counter() - start)
        finally:
            for client in clients:
                client.disconnect()
                client.loop_stop()
            process.terminate()
            process.wait(timeout=10)
    return PeerResult(rate, found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_listening(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
