"""A simulated network in one process, with fault injection; the same seed gives the same run.

Machines are the same objects that run over sockets. The simulator has the clock and the randomness: it delays, loses,
duplicates and reorders messages, partitions and heals the network, and crashes, freezes and wakes machines.
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
"""Encodes and decodes a message, for tests that include the encoding."""


class Machine(Protocol):
    """A node or ring as a driver sees it: messages and time in, messages out."""

    @property
    def me(self) -> Peer: ...
    @property
    def due(self) -> int | None: ...
    def receive(self, now: int, sender: Peer, message: Any) -> None: ...
    def tick(self, now: int) -> None: ...
    def flush(self) -> list[tuple[Peer, Any]]: ...


@dataclass(slots=True)
class NetworkConditions:
    """Delays in microseconds, and the probabilities that a message is lost, duplicated or delayed further."""

    min_delay: int = 5_000
    max_delay: int = 40_000
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    extra_delay: int = 200_000


class Host:
    """A machine and its state: running, frozen while messages queue in its inbox, or crashed."""

    __slots__ = ("frozen", "inbox", "machine", "up", "wake_time")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.up = True
        self.frozen = False
        self.inbox: list[tuple[Peer, Any]] = []
        self.wake_time: int | None = None


class Simulation:
    """Hosts, the messages between them, and the clock.

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
        """Add a machine to the network."""
        self.hosts[machine.me.id] = Host(machine)
        self._flush(self.hosts[machine.me.id])

    def touch(self, id: Key) -> None:
        """Send the messages of a machine that was called from outside, and update its timer."""
        self._flush(self.hosts[id])

    @property
    def living(self) -> list[Machine]:
        """The machines that are running."""
        return [host.machine for host in self.hosts.values() if host.up and not host.frozen]

    # faults

    def crash(self, id: Key) -> None:
        """Stop a machine for good; its memory is lost."""
        self.hosts[id].up = False

    def freeze(self, id: Key) -> None:
        """Suspend a machine; its messages queue."""
        self.hosts[id].frozen = True

    def wake(self, id: Key) -> None:
        """Resume a frozen machine, which does not notice the pause itself."""
        host = self.hosts[id]
        if not (host.up and host.frozen):
            return
        host.frozen = False
        inbox, host.inbox = host.inbox, []
        for sender, message in inbox:
            host.machine.receive(self.now, sender, message)
        host.machine.tick(self.now)
        self._flush(host)

    def split(self, *sides: Collection[Key]) -> None:
        """Partition the network: no message passes between the sides; hosts not named form another side."""
        self._sides = {key: number for number, side in enumerate(sides, 1) for key in side}

    def heal(self) -> None:
        """End the partition."""
        self._sides = {}

    # time

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Schedule a call."""
        self._push(time, action, None, None)

    def run(self, until: int) -> None:
        """Run until a moment, inclusive."""
        events = self._events
        while events and events[0][0] <= until:
            time, _, target, sender, message = heapq.heappop(events)
            self.now = time
            if type(target) is not Host:
                target()
            elif sender is None:
                self._wake_up(target, time)
            else:
                self._deliver(target, sender, message)
        self.now = max(self.now, until)

    def _push(self, time: int, target: Any, sender: Peer | None, message: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, target, sender, message))

    def _wake_up(self, host: Host, time: int) -> None:
        if host.wake_time != time:
            return
        host.wake_time = None
        if host.up and not host.frozen:
            due = host.machine.due
            if due is not None and due <= time:
                host.machine.tick(time)
            self._flush(host)

    def _deliver(self, host: Host, sender: Peer, message: Any) -> None:
        if not host.up:
            self.counts["to the dead"] += 1
        elif host.frozen:
            host.inbox.append((sender, message))
        else:
            host.machine.receive(self.now, sender, message)
            self._flush(host)

    def _flush(self, host: Host) -> None:
        machine = host.machine
        if self.after is not None:
            self.after(machine)
        for peer, message in machine.flush():
            self._post(machine.me, peer, message)
        due = machine.due
        if due is not None and (host.wake_time is None or due < host.wake_time):
            host.wake_time = max(due, self.now)
            self._push(host.wake_time, host, None, None)

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
        """The delays of a message's deliveries: none, one, or two."""
        conditions, chance = self.conditions, self.random.random
        delay = conditions.min_delay + int(chance() * (conditions.max_delay - conditions.min_delay))
        if not (conditions.loss or conditions.duplication or conditions.reordering):
            return (delay,)
        if chance() < conditions.loss:
            self.counts["lost"] += 1
            return ()
        if chance() < conditions.reordering:
            delay += int(chance() * conditions.extra_delay)
        if chance() < conditions.duplication:
            return (delay, delay + int(chance() * conditions.extra_delay))
        return (delay,)


def static_ring(ids: Iterable[Key], *, half: int) -> Callable[[Key], tuple[list[Peer], list[Peer]]]:
    """A function from a node's id to its neighbours and routing table, in a static ring of these ids."""
    from bisect import bisect_left

    ordered = sorted(ids)
    names = [key.hex() for key in ordered]
    place = {key: index for index, key in enumerate(ordered)}

    def known(id: Key) -> tuple[list[Peer], list[Peer]]:
        index, count = place[id], len(ordered)
        near = {ordered[(index + step) % count] for step in range(-half, half + 1)} - {id}
        table, digits = [], id.hex()
        for row in range(len(digits)):
            low, high = bisect_left(names, digits[:row]), bisect_left(names, digits[:row] + "g")
            if high - low <= 1:
                break
            for digit in "0123456789abcdef":
                prefix = digits[:row] + digit
                first, last = bisect_left(names, prefix, low, high), bisect_left(names, prefix + "g", low, high)
                if first < last and digit != digits[row]:
                    # Different nodes choose different peers, which spreads the load.
                    table.append(Peer(ordered[first + (index * 7919 + row) % (last - first)]))
        return [Peer(key) for key in near], table

    return known
