"""The overlay: a large simulated federation, real nodes, and repair after a crash."""

from __future__ import annotations

import asyncio
import resource
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from likewise.events import Event
from likewise.overlay import Peer, Ring, RingSettings, Simulation, key_of
from likewise.overlay.clients import OverlayClient
from likewise.overlay.identity import init_authority, init_node
from likewise.overlay.network import NodeHost
from likewise.overlay.node import NodeSettings
from likewise.overlay.ring import SECOND
from likewise.overlay.trial import OverlayTrial, run_trial

Rows = list[dict[str, Any]]


def run(*, quick: bool = False) -> Rows:
    """All parts."""
    rows = _simulated(quick)
    rows += asyncio.run(_real(quick))
    rows += _repair(quick)
    return rows


def _simulated(quick: bool) -> Rows:
    nodes, composites, events = (1000, 100, 5000) if quick else (10_000, 1000, 100_000)
    began = time.perf_counter()
    trial = OverlayTrial(nodes=nodes, composites=composites, events=events, topics=5 * composites, seconds=100)
    found = run_trial(trial)
    took = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    what = f"{nodes:,} simulated nodes, {composites:,} composites, {events:,} publications"
    return [
        {"what": what, "value": took, "unit": "s", "target": 300, "note": f"{found['reports']:,} reports"},
        {"what": "memory of it", "value": memory, "unit": "GB", "target": 8},
        {"what": "messages per publication", "value": found["messages per publication"], "unit": ""},
    ]


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _real(quick: bool) -> Rows:
    """Eight nodes over TLS in one process: the same sockets and frames as in eight."""
    count = 2000 if quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        init_authority(folder / "fed")
        hosts, addresses = [], [f"127.0.0.1:{_port()}" for _ in range(8)]
        for number, address in enumerate(addresses):
            init_node(folder / str(number), folder / "fed")
            host = NodeHost(folder / str(number), listen=address, settings=NodeSettings(copies=0))
            await host.start(addresses[:1] if number else ())
            hosts.append(host)
        init_node(folder / "client", folder / "fed")
        await asyncio.sleep(2)
        async with OverlayClient(addresses[1:2], state=folder / "client") as listener:
            for number in range(8):
                await listener.subscribe(f"s{number}: {{kind = k{number}}}", f"s{number}")
            await asyncio.sleep(2)
            began = time.perf_counter()
            clients = [OverlayClient([address], state=folder / "client") for address in addresses]
            await asyncio.gather(*(_load(client, count // 8) for client in clients))
            took = time.perf_counter() - began
        for host in hosts:
            await host.stop()
    return [{"what": "8 nodes over TLS, one process", "value": count / took, "unit": "events/s", "target": 5000}]


async def _load(client: OverlayClient, count: int) -> None:
    async with client:
        waiting = []
        for number in range(count):
            waiting.append(client.send(Event(f"e{number}", (("kind", f"k{number % 8}"),))))
            if len(waiting) >= 200:
                await asyncio.gather(*waiting)
                waiting.clear()
        await asyncio.gather(*waiting)


def _repair(quick: bool) -> Rows:
    """Simulated, with the latency of a loopback: until no neighbour knows a crashed node."""
    from likewise.overlay.simulation import Weather

    took = []
    for seed in range(5 if quick else 40):
        sim = Simulation(seed=seed, weather=Weather(low=100, high=2_000))
        rings: list[Ring] = []
        for number in range(8):
            ring = Ring(Peer(key_of(f"{seed} {number}")), RingSettings())
            sim.add(ring)
            ring.start(sim.now, [rings[0].me] if rings else [])
            sim.touch(ring.me.id)
            rings.append(ring)
            sim.run(sim.now + SECOND // 2)
        sim.run(sim.now + 3 * SECOND + seed * 7_000)
        victim = rings[seed % 8].me.id
        sim.crash(victim)
        began = sim.now
        while any(victim in ring.leaves for ring in rings if ring.me.id != victim):
            sim.run(sim.now + 10_000)
        took.append((sim.now - began) / SECOND)
    took.sort()
    return [
        {"what": "repair after a crash, p99", "value": took[-1], "unit": "s", "target": 2, "note": "simulated time"}
    ]
