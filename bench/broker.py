"""Benchmark of the broker on the loopback: speed in comparison with peers, many streams, `kill -9` and memory.

`LIKEWISE_BENCH_ONLY` runs one part: speed, crowds, kills or memory. `LIKEWISE_BENCH_EVENTS` is the number of events
of the memory part.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

Rows = list[dict[str, object]]


def run(*, quick: bool = False) -> Rows:
    """Run the benchmark; returns the rows of `likewise bench broker`."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _broker_faults import crowds, memory
    from _broker_kill import kills
    from _broker_world import show_progress

    events = int(os.environ.get("LIKEWISE_BENCH_EVENTS", "") or (100_000 if quick else 1_000_000))
    parts = {
        "speed": lambda: _speed((), quick),
        "crowds": lambda: crowds((), quick),
        "kills": lambda: kills(3 if quick else 50),
        "memory": lambda: memory((), events),
    }
    rows: Rows = []
    for name, part in parts.items():
        if os.environ.get("LIKEWISE_BENCH_ONLY", name) == name:
            for row in part():
                show_progress(" | ".join(str(cell) for cell in row.values()))
                rows.append(row)
    return rows


def _speed(options: tuple[str, ...], quick: bool) -> Rows:
    from _broker_load import load, quantile
    from _broker_peers import full_text, mosquitto, quality
    from _broker_world import feed, serving, show_progress, subscriptions

    stream = feed(10_000 if quick else 50_000)
    sample = feed(2_000 if quick else 10_000, seed=2)
    with serving(*options) as served:
        with served.client() as client:
            client.post("/v1/subscriptions", json={"text": subscriptions(1000)}).raise_for_status()
        asyncio.run(load(served, feed(3_000, seed=3).lines, size=100, connections=4))
        show_progress("batches of 100 over 8 connections, 10 streams")
        before = served.seconds()
        batch = asyncio.run(load(served, stream.lines, size=100, connections=8))
        share = (served.seconds() - before) / batch.until_last()
        show_progress("single events over 32 connections, 10 streams")
        single = asyncio.run(load(served, sample.lines, size=1, connections=32))
        show_progress("half of both loads")
        calm = asyncio.run(
            load(served, feed(4_000 if quick else 10_000, seed=4).lines, size=1, connections=32, rate=750)
        )
        half = asyncio.run(load(served, stream.lines[: 10_000 if quick else 30_000], size=100, connections=8, rate=50))
    found = {(name, number) for name, number, _ in batch.found}
    recall, precision = quality(found, stream.meant)
    rows: Rows = [
        {
            "what": "accepted, batches of 100",
            "value": len(stream.lines) / batch.seconds,
            "unit": "events/s",
            "target": 10_000,
        },
        {
            "what": "matched and delivered to 10 streams",
            "value": len(stream.lines) / batch.until_last(),
            "unit": "events/s",
            "target": 10_000,
            "note": f"{share:.2f} processors in the broker",
        },
        {
            "what": "single publishes over 32 connections",
            "value": len(sample.lines) / single.seconds,
            "unit": "requests/s",
            "target": 1_500,
        },
    ]
    for load_name, measured in (("750 single publishes/s", calm), ("5,000 events/s in batches", half)):
        delays = measured.delays()
        for name, share, goal in (("p50", 0.5, 10), ("p99", 0.99, 50)):
            rows.append(
                {
                    "what": f"publish to notify at {load_name}, {name}",
                    "value": quantile(delays, share),
                    "unit": "ms",
                    "target": f"< {goal}",
                }
            )
    show_progress("peers")
    peers = {"SQLite FTS5 percolation": full_text(sample, 1000), "Mosquitto, strings compared": mosquitto(sample, 1000)}
    rows.append(
        {
            "what": "broker: found of what was meant",
            "value": recall,
            "unit": "recall",
            "note": f"precision {precision:.3f}",
        }
    )
    for name, peer in peers.items():
        if peer is None:
            rows.append({"what": name, "value": None, "unit": "events/s", "note": "skipped: not installed"})
            continue
        recall, precision = quality(peer.found, sample.meant)
        rows.append({"what": name, "value": peer.rate, "unit": "events/s", "note": "nothing stored, one client"})
        rows.append(
            {
                "what": f"{name}: found of what was meant",
                "value": recall,
                "unit": "recall",
                "note": f"precision {precision:.3f}",
            }
        )
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
