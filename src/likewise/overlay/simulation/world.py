"""A network in one process, with faults on order: everything that happens follows from the seed.

Machines are the same objects that run over sockets. The simulator owns time and chance: it delays, loses, doubles and
reorders messages, splits the network and heals it, and crashes, freezes and wakes machines.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.tables import Peer

Wire = Callable[[Any], Any]
"""Sends a message through its encoding and back, where that is to be tested too."""


class Machine(Protocol):
    """What a driver runs: messages and time in, messages out."""

    @property
    def me(self) -> Peer: ...
    @property
    def due(self) -> int | None: ...
    def receive(self, now: int, sender: Peer, message: Any) -> None: ...
    def tick(self, now: int) -> None: ...
    def flush(self) -> list[tuple[Peer, Any]]: ...


@dataclass(slots=True)
class NetworkConditions:
    """How the network behaves; times in microseconds, the rest are probabilities for each message."""

    low: int = 5_000
    high: int = 40_000
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    late: int = 200_000


class Host:
    """A machine in its place: running, frozen with its mail piling up, or gone."""

    __slots__ = ("frozen", "machine", "mail", "up", "wakes")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.up = True
        self.frozen = False
        self.mail: list[tuple[Peer, Any]] = []
        self.wakes: int | None = None


class Simulation:
    """Hosts, the messages between them, and the time.

    >>> from likewise.overlay.ring.ring import Ring
    >>> from likewise.overlay.ring.ids import key_of
    >>> world = Simulation(seed=1)
    >>> rings = [Ring(Peer(key_of(name))) for name in "abc"]
    >>> for ring in rings:
    ...     world.add(ring)
    ...     ring.start(world.now, [rings[0].me])
    ...     world.touch(ring.me.id)
    >>> world.run(2_000_000)
    >>> [len(ring.leaves) for ring in rings]
    [2, 2, 2]
    """

    def __init__(self, *, seed: int, conditions: NetworkConditions | None = None, wire: Wire | None = None) -> None:
        self.random = random.Random(seed)
        self.conditions = conditions or NetworkConditions()
        self.now = 0
        self.hosts: dict[Key, Host] = {}
        self.counts: Counter[str] = Counter()
        self.after: Callable[[Machine], None] | None = None
        self.lookup: Callable[[Key], Host | None] | None = None
        self._wire = wire
        self._events: list[tuple[int, int, Any, Peer | None, Any]] = []
        self._number = 0
        self._sides: dict[Key, int] = {}

    # hosts

    def add(self, machine: Machine) -> None:
        """Place a machine in the network."""
        self.hosts[machine.me.id] = Host(machine)
        self._settle(self.hosts[machine.me.id])

    def touch(self, id: Key) -> None:
        """Collect what a machine wants after it was called from outside."""
        self._settle(self.hosts[id])

    @property
    def living(self) -> list[Machine]:
        """The machines that run."""
        return [host.machine for host in self.hosts.values() if host.up and not host.frozen]

    # faults

    def crash(self, id: Key) -> None:
        """The machine is gone, with all it had in memory."""
        self.hosts[id].up = False

    def freeze(self, id: Key) -> None:
        """The machine stops; its mail waits."""
        self.hosts[id].frozen = True

    def wake(self, id: Key) -> None:
        """A frozen machine goes on, unaware of the pause."""
        host = self.hosts[id]
        if not (host.up and host.frozen):
            return
        host.frozen = False
        mail, host.mail = host.mail, []
        for sender, message in mail:
            host.machine.receive(self.now, sender, message)
        host.machine.tick(self.now)
        self._settle(host)

    def split(self, *sides: Collection[Key]) -> None:
        """Divide the network: nothing passes between the sides; those not named are on a side of their own."""
        self._sides = {key: number for number, side in enumerate(sides, 1) for key in side}

    def heal(self) -> None:
        """End the division."""
        self._sides = {}

    # time

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Call something at a time."""
        self._push(time, action, None, None)

    def run(self, until: int) -> None:
        """Let time pass up to and including a moment."""
        events = self._events
        while events and events[0][0] <= until:
            time, _, target, sender, message = heapq.heappop(events)
            self.now = time
            if type(target) is not Host:
                target()
            elif sender is None:
                self._ring(target, time)
            else:
                self._deliver(target, sender, message)
        self.now = max(self.now, until)

    def _push(self, time: int, target: Any, sender: Peer | None, message: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, target, sender, message))

    def _ring(self, host: Host, time: int) -> None:
        if host.wakes != time:
            return
        host.wakes = None
        if host.up and not host.frozen:
            due = host.machine.due
            if due is not None and due <= time:
                host.machine.tick(time)
            self._settle(host)

    def _deliver(self, host: Host, sender: Peer, message: Any) -> None:
        if not host.up:
            self.counts["to the dead"] += 1
        elif host.frozen:
            host.mail.append((sender, message))
        else:
            host.machine.receive(self.now, sender, message)
            self._settle(host)

    def _settle(self, host: Host) -> None:
        machine = host.machine
        if self.after is not None:
            self.after(machine)
        for peer, message in machine.flush():
            self._post(machine.me, peer, message)
        due = machine.due
        if due is not None and (host.wakes is None or due < host.wakes):
            host.wakes = max(due, self.now)
            self._push(host.wakes, host, None, None)

    def _post(self, sender: Peer, peer: Peer, message: Any) -> None:
        host = self.hosts.get(peer.id)
        if host is None and self.lookup is not None:
            host = self.lookup(peer.id)
        self.counts[type(message).__name__] += 1
        self.counts["messages"] += 1
        if host is None or (self._sides and self._sides.get(sender.id) != self._sides.get(peer.id)):
            return
        for delay in self._delays():
            self._push(self.now + delay, host, sender, message if self._wire is None else self._wire(message))

    def _delays(self) -> Iterable[int]:
        """When a message comes: never, once, or twice."""
        conditions, chance = self.conditions, self.random.random
        delay = conditions.low + int(chance() * (conditions.high - conditions.low))
        if not (conditions.loss or conditions.duplication or conditions.reordering):
            return (delay,)
        if chance() < conditions.loss:
            self.counts["lost"] += 1
            return ()
        if chance() < conditions.reordering:
            delay += int(chance() * conditions.late)
        if chance() < conditions.duplication:
            return (delay, delay + int(chance() * conditions.late))
        return (delay,)


def static_ring(ids: Iterable[Key], *, half: int) -> Callable[[Key], tuple[list[Peer], list[Peer]]]:
    """Neighbours and table of any node of a finished ring, worked out when asked."""
    from bisect import bisect_left

    ordered = sorted(ids)
    names = [key.hex() for key in ordered]
    place = {key: index for index, key in enumerate(ordered)}

    def known(id: Key) -> tuple[list[Peer], list[Peer]]:
        index, count = place[id], len(ordered)
        near = {ordered[(index + step) % count] for step in range(-half, half + 1)} - {id}
        table, mine = [], id.hex()
        for row in range(len(mine)):
            low, high = bisect_left(names, mine[:row]), bisect_left(names, mine[:row] + "g")
            if high - low <= 1:
                break
            for digit in "0123456789abcdef":
                prefix = mine[:row] + digit
                first, last = bisect_left(names, prefix, low, high), bisect_left(names, prefix + "g", low, high)
                if first < last and digit != mine[row]:
                    # Not always the first: the load is to spread.
                    table.append(Peer(ordered[first + (index * 7919 + row) % (last - first)]))
        return [Peer(key) for key in near], table

    return known
