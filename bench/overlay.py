"""The overlay: a large simulated federation, real nodes, and repair after a crash."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from likewise.events import Event
from likewise.overlay import Peer, Report, Ring, RingSettings, Simulation, key_of
from likewise.overlay.net.clients import OverlayClient
from likewise.overlay.net.frames import address_of
from likewise.overlay.net.identity import init_authority, init_node
from likewise.overlay.ring.contacts import SECOND
from likewise.overlay.simulation.trial import OverlayTrial, play_trial

Rows = list[dict[str, Any]]


def run(*, quick: bool = False) -> Rows:
    """Run all parts: simulation, real nodes, and repair."""
    rows = _simulated(quick)
    rows += _real(quick)
    rows += _repair(quick)
    return rows


def _simulated(quick: bool) -> Rows:
    nodes, composites, events = (1000, 100, 5000) if quick else (10_000, 1000, 100_000)
    began, spent = time.perf_counter(), time.process_time()
    trial = OverlayTrial(nodes=nodes, composites=composites, events=events, topics=5 * composites, seconds=300)
    figures = play_trial(trial).figures
    took, spent = time.perf_counter() - began, time.process_time() - spent
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    what = f"{nodes:,} simulated nodes, {composites:,} composites, {events:,} publications in {trial.seconds} s"
    return [
        {"what": what, "value": took, "unit": "s", "target": 300, "note": f"{figures['reports']:,} reports"},
        {"what": "processor time of the simulation", "value": spent, "unit": "s", "target": 300},
        {"what": "memory of the simulation", "value": memory, "unit": "GB", "target": 8},
        {"what": "messages per publication", "value": figures["messages per publication"], "unit": ""},
    ]


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listening(address: str) -> None:
    """Wait until a node listens at the address."""
    while True:
        try:
            socket.create_connection(address_of(address), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


class NodeProcesses:
    """Nodes in separate processes, started by `likewise node`."""

    def __init__(self, folder: Path, *, count: int = 8) -> None:
        init_authority(folder / "fed")
        init_node(folder / "client", folder / "fed")
        self.client = folder / "client"
        self.addresses = [f"127.0.0.1:{_port()}" for _ in range(count)]
        self.running = []
        for number, address in enumerate(self.addresses):
            init_node(folder / str(number), folder / "fed")
            command = [
                sys.executable,
                "-m",
                "likewise",
                "node",
                "--listen",
                address,
                "--state",
                str(folder / str(number)),
            ]
            command += ["--join", self.addresses[0]] if number else []
            self.running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for address in self.addresses:
            _listening(address)

    def seconds(self) -> float:
        """The processor time of all nodes so far, in seconds."""
        ticks = 0
        for process in self.running:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


def _real(quick: bool) -> Rows:
    """Measure events that are routed, replicated twice, reported at another node, and acknowledged."""
    count = 3200 if quick else 24_000
    with tempfile.TemporaryDirectory() as name:
        world = NodeProcesses(Path(name))
        try:
            return asyncio.run(_routed(world, count))
        finally:
            world.stop()


async def _routed(world: NodeProcesses, count: int) -> Rows:
    async with AsyncExitStack() as stack:
        clients = [OverlayClient([address], state=world.client) for address in world.addresses]
        for client in clients:
            await stack.enter_async_context(client)
            while not (await client.status())["joined"]:
                await asyncio.sleep(0.1)
        names = [f"s{number}" for number in range(8)]
        ids = [await clients[1].subscribe(f"{name}: {{kind = {name}}}", name) for name in names]
        collecting = [asyncio.create_task(_take(clients[1].reports(number), count // 8)) for number in ids]
        before, own, began = world.seconds(), time.process_time(), time.perf_counter()
        await asyncio.gather(*(_load(client, count // 8) for client in clients))
        await asyncio.gather(*collecting)
        took = time.perf_counter() - began
        nodes, client = world.seconds() - before, time.process_time() - own
        repairs = [await _repaired(world, clients, number) for number in (7, 6, 5, 4)]
    return [
        {"what": "8 node processes over TLS, 2 copies", "value": count / took, "unit": "events/s", "target": 5000},
        {"what": "nodes alone on two cores", "value": 2 * count / nodes, "unit": "events/s", "target": 5000},
        {"what": "processor time of nodes for an event", "value": nodes / count * 1e6, "unit": "us"},
        {"what": "processor time of clients for an event", "value": client / count * 1e6, "unit": "us"},
        {"what": "repair after kill -9, slowest of 4", "value": max(repairs), "unit": "s", "target": 2},
    ]


async def _repaired(world: NodeProcesses, clients: list[OverlayClient], number: int) -> float:
    """Kill a node; returns the seconds until no living node has it as a neighbour."""
    address = world.addresses[number]
    world.running[number].kill()
    began = time.perf_counter()
    for client in clients[:number]:
        while any(peer["address"] == address for peer in (await client.status())["neighbours"]):
            await asyncio.sleep(0.005)
    return time.perf_counter() - began


async def _take(reports: AsyncIterator[Report], count: int) -> None:
    async for _ in reports:
        count -= 1
        if not count:
            return


async def _load(client: OverlayClient, count: int) -> None:
    waiting: list[asyncio.Future[None]] = []
    for number in range(count):
        waiting.append(client.send(Event(f"e{number}", (("kind", f"s{number % 8}"),))))
        if len(waiting) >= 200:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)


def _repair(quick: bool) -> Rows:
    """Simulate crashes with the latency of a loopback; measures the time until no neighbour has the silent node."""
    from likewise.overlay.simulation.world import NetworkConditions

    took = []
    for seed in range(5 if quick else 200):
        sim = Simulation(seed=seed, conditions=NetworkConditions(min_delay=100, max_delay=2_000))
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
    p99 = took[math.ceil(0.99 * len(took)) - 1]
    note = f"{len(took)} crashes in simulated time, the slowest {took[-1]:.2f} s"
    return [{"what": "repair after silence, p99", "value": p99, "unit": "s", "target": 2, "note": note}]
