"""Nodes that start at the same time all get ready, and a subscription is confirmed, in any order of messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from likewise.events import Event
from likewise.language import parse_subscription
from likewise.overlay import NetworkConditions, Peer, Simulation, key_of
from likewise.overlay.node.catalogue import MatchingClassifier
from likewise.overlay.node.node import OverlayNode
from likewise.overlay.ring.contacts import SECOND
from likewise.overlay.ring.ring import Ring

PAIR = parse_subscription("pair: {kind = smoke} as a and {kind = heat} as b where a.room = b.room")


class Race:
    """Nodes that join through the first one at nearly the same time."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random.Random(seed)
        self.sim = Simulation(seed=seed, conditions=_conditions(self.random))
        self.sim.after = self._collect
        self.rooms: list[str] = []
        self.confirmed: list[str] = []
        self.acknowledged: set[bytes] = set()
        classify = MatchingClassifier()
        self.nodes = [OverlayNode(Peer(key_of(f"{seed} {n}"), f"n{n}"), classify=classify) for n in range(count)]
        apart = self.random.choice((1_000, SECOND // 10, SECOND, 3 * SECOND))
        for node in self.nodes:
            first = node is self.nodes[0]
            self.sim.at(
                0 if first else self.random.randrange(apart), lambda node=node, first=first: self._start(node, first)
            )
        self.sim.run(apart)

    def _start(self, node: OverlayNode, first: bool) -> None:
        self.sim.add(node)
        node.start(self.sim.now, () if first else [self.nodes[0].me])
        self.sim.touch(node.me.id)

    def _collect(self, node: object) -> None:
        assert isinstance(node, OverlayNode)
        for delivery in node.deliveries:
            self.rooms.append(str(delivery.report.events[0].attributes["room"][0]))
            node.acknowledge(delivery)
        node.deliveries.clear()
        self.confirmed += node.confirmed
        node.confirmed.clear()
        self.acknowledged.update(node.acknowledged)
        node.acknowledged.clear()

    def until(self, done: Callable[[], bool]) -> bool:
        """Run for up to two minutes; with a third of all messages lost, it takes a while."""
        end = self.sim.now + 120 * SECOND
        while not done() and self.sim.now < end:
            self.sim.run(self.sim.now + SECOND // 100)
        return done()

    def subscribe(self, node: OverlayNode) -> None:
        node.subscribe(self.sim.now, PAIR)
        self.sim.touch(node.me.id)

    def publish(self, nodes: Sequence[OverlayNode]) -> set[bytes]:
        """For each room, publish smoke at one node and heat at the node before it."""
        numbers = set()
        for room, smoke in enumerate(nodes):
            for kind, node in (("smoke", smoke), ("heat", nodes[room - 1])):
                event = Event(f"{kind}{room}", (("kind", kind), ("room", f"r{room}")))
                numbers.add(node.publish(self.sim.now, event))
                self.sim.touch(node.me.id)
        return numbers


def _conditions(chance: random.Random) -> NetworkConditions:
    loss = chance.choice((0, 0, 0.02, 0.1, 0.3))
    rough = chance.choice((0, 0.1))
    high = chance.choice((2_000, 40_000, 300_000))
    return NetworkConditions(
        min_delay=100, max_delay=high, loss=loss, reordering=rough, duplication=rough, extra_delay=SECOND
    )


def subscribe_and_publish(race: Race, nodes: Sequence[OverlayNode]) -> None:
    """Events published at any node after the confirmation are acknowledged, and reported once."""
    assert race.until(lambda: nodes[0].ready), "never ready"
    race.subscribe(nodes[0])
    assert race.until(lambda: bool(race.confirmed)), "never confirmed"
    numbers = race.publish(nodes)
    assert race.until(lambda: numbers <= race.acknowledged), "never acknowledged"
    assert race.until(lambda: len(race.rooms) >= len(nodes)), "never reported"
    assert sorted(race.rooms) == sorted(f"r{room}" for room in range(len(nodes)))


@pytest.mark.parametrize(("count", "seeds"), [(4, (*range(20), 83)), (5, range(20)), (9, (175,))])
def test_nodes_that_start_together_confirm_the_first_subscription(count: int, seeds: Sequence[int]) -> None:
    """In some of these rings all others are on one side of a node, whose predecessor is the farthest of them.

    In others the leader of a rendezvous changes during the broadcast of its members' topics.
    """
    lopsided = 0
    for seed in seeds:
        race = Race(seed, count)
        subscribe_and_publish(race, race.nodes[1:] + race.nodes[:1])
        lopsided += any(_is_lopsided(node.ring) for node in race.nodes[1:])
    assert lopsided > 3 or len(seeds) == 1


def _is_lopsided(ring: Ring) -> bool:
    return not ring.leaves.left and len(ring.leaves) > 2


def test_the_first_node_crashes_before_the_others_are_synchronised() -> None:
    """Then no catalogue is known to be complete; once each node knows that of the others, they go on."""
    unsure = 0
    for seed in (*range(20), 79, 131, 162, 196):
        race = Race(seed, 4)
        first, *others = race.nodes
        # A node that knows only the first one would be alone without it.
        race.until(lambda others=others: all(len(node.ring.leaves) > 1 for node in others))
        race.sim.crash(first.me.id)
        unsure += not any(node.ready for node in others)
        subscribe_and_publish(race, others)
    assert unsure
