"""Simulated rings for tests."""

from __future__ import annotations

import random

from likewise.overlay import NetworkConditions, Peer, Ring, RingSettings, Simulation, key_of
from likewise.overlay.ring.contacts import SECOND, RingArrival
from likewise.overlay.ring.ids import nearness, number_of


class RingWorld:
    """Rings in a simulation, and the messages that arrived at each."""

    def __init__(
        self, count: int, *, seed: int = 1, conditions: NetworkConditions | None = None, apart: int = 50_000
    ) -> None:
        self.random = random.Random(seed)
        self.sim = Simulation(seed=seed, conditions=conditions)
        self.arrived: list[tuple[Peer, RingArrival]] = []
        self.rings: list[Ring] = []
        self.sim.after = self._collect
        for _ in range(count):
            self.join()
            self.sim.run(self.sim.now + apart)
        self.sim.run(self.sim.now + 3 * SECOND)

    def _collect(self, machine: object) -> None:
        assert isinstance(machine, Ring)
        self.arrived += [(machine.me, arrival) for arrival in machine.arrivals]
        machine.arrivals.clear()

    def join(self) -> Ring:
        ring = Ring(Peer(key_of(f"node {len(self.rings)}")), RingSettings(heartbeat=SECOND // 2))
        bootstrap = [ready.me for ready in self.living if ready.joined]
        self.sim.add(ring)
        ring.start(self.sim.now, self.random.sample(bootstrap, min(3, len(bootstrap))))
        self.sim.touch(ring.me.id)
        self.rings.append(ring)
        return ring

    @property
    def living(self) -> list[Ring]:
        return [machine for machine in self.sim.living if isinstance(machine, Ring) and not machine.left]

    def root(self, key: bytes) -> Peer:
        """The definition of a root: the living node numerically closest to the key."""
        return min((ring.me for ring in self.living), key=lambda peer: nearness(peer.number, number_of(key)))

    def route(self, count: int, *, wait: int = 3 * SECOND) -> list[tuple[bytes, set[bytes]]]:
        """Route random keys; returns each with the nodes at which it arrived."""
        self.arrived.clear()
        keys = [key_of(str(self.random.random())) for _ in range(count)]
        for key in keys:
            ring = self.random.choice(self.living)
            ring.route(self.sim.now, key, "load")
            self.sim.touch(ring.me.id)
        self.sim.run(self.sim.now + wait)
        return [(key, {peer.id for peer, arrival in self.arrived if arrival.key == key}) for key in keys]

    def misrouted(self, count: int, *, wait: int = 3 * SECOND) -> int:
        return sum(nodes != {self.root(key).id} for key, nodes in self.route(count, wait=wait))
