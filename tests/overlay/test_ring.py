"""The ring routes every key to its root despite faults of nodes and network."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.overlay import LeafSet, NetworkConditions, Peer, Ring, RingSettings, RoutingTable, key_of
from likewise.overlay.ring import messages as m
from likewise.overlay.ring.contacts import SECOND
from likewise.overlay.ring.ids import SPAN, distance, key_from, nearness, number_of, shared_digits
from likewise.overlay.simulation.world import static_ring

sys.path.insert(0, str(Path(__file__).parent))
from world import RingWorld

numbers = st.integers(0, SPAN - 1)


@given(numbers, numbers)
def test_distance_is_symmetric_and_at_most_half_the_ring(a: int, b: int) -> None:
    assert distance(a, b) == distance(b, a) <= SPAN // 2


@given(numbers, numbers)
def test_shared_digits_are_those_of_the_hex_text(a: int, b: int) -> None:
    left, right = key_from(a).hex(), key_from(b).hex()
    same = next((i for i in range(40) if left[i] != right[i]), 40)
    assert shared_digits(a, b) == same


@settings(max_examples=50)
@given(st.sets(numbers, min_size=2, max_size=40), numbers)
def test_a_leaf_set_finds_the_nearest_of_what_it_covers(ids: set[int], key: int) -> None:
    me, *others = (Peer(key_from(number)) for number in sorted(ids))
    leaves = LeafSet(me, half=4)
    for peer in others:
        leaves.add(peer)
    if leaves.covers(key):
        found = leaves.nearest(key) or me
        assert found.number == min(ids, key=lambda number: nearness(number, key))


def test_a_routing_table_extends_the_shared_prefix() -> None:
    me, other = Peer(bytes.fromhex("12" * 20)), Peer(bytes.fromhex("13" * 20))
    table = RoutingTable(me)
    assert table.add(other)
    assert table.find(number_of(bytes.fromhex("1399" + "00" * 18))) == other
    assert table.find(number_of(bytes.fromhex("1499" + "00" * 18))) is None


def test_keys_arrive_at_the_numerically_closest_node() -> None:
    assert RingWorld(60).misrouted(100) == 0


def test_crashed_nodes_are_routed_around_at_once() -> None:
    world = RingWorld(60, seed=2)
    for ring in world.random.sample(world.rings, 6):
        world.sim.crash(ring.me.id)
    assert world.misrouted(100, wait=8 * SECOND) == 0


def test_a_frozen_node_is_declared_dead_and_revived_when_it_resumes() -> None:
    world = RingWorld(40, seed=3)
    frozen = world.rings[7]
    world.sim.freeze(frozen.me.id)
    world.sim.run(world.sim.now + 10 * SECOND)
    assert world.misrouted(60) == 0
    world.sim.wake(frozen.me.id)
    world.sim.run(world.sim.now + 3 * SECOND)
    assert len(frozen.leaves) == 16, "it declared nobody dead on waking"
    assert world.root(frozen.me.id) == frozen.me
    assert world.misrouted(60) == 0


def test_only_its_own_message_revives_a_dead_node() -> None:
    world = RingWorld(10, seed=4)
    victim, witness = world.rings[3], world.rings[5]
    world.sim.crash(victim.me.id)
    world.sim.run(world.sim.now + 5 * SECOND)
    assert witness.is_dead(victim.me.id)
    witness.receive(world.sim.now, world.rings[6].me, m.Leaves((victim.me,)))
    world.sim.run(world.sim.now + SECOND)
    assert victim.me.id not in witness.leaves
    witness.receive(world.sim.now, victim.me, m.Announce())
    assert victim.me.id in witness.leaves


def test_two_halves_find_each_other_after_a_partition() -> None:
    world = RingWorld(24, seed=5)
    ids = [ring.me.id for ring in world.rings]
    world.sim.split(ids[::2], ids[1::2])
    world.sim.run(world.sim.now + 15 * SECOND)
    assert any(set(nodes) != {world.root(key).id} for key, nodes in world.route(40)), "the halves know two roots"
    world.sim.heal()
    world.sim.run(world.sim.now + 60 * SECOND)
    assert world.misrouted(60) == 0


def test_network_faults_lose_no_message() -> None:
    """Hops are acknowledged and retried, so loss and reordering only cost time; a message may arrive twice."""
    world = RingWorld(30, seed=6, conditions=NetworkConditions(loss=0.05, duplication=0.05, reordering=0.1))
    routed = world.route(100, wait=20 * SECOND)
    assert all(world.root(key).id in nodes for key, nodes in routed)


def test_nodes_that_join_and_leave_at_once_find_their_places() -> None:
    world = RingWorld(30, seed=7)
    for _ in range(15):
        world.join()
    for ring in world.random.sample(world.rings[:30], 10):
        ring.leave()
        world.sim.touch(ring.me.id)
    world.sim.run(world.sim.now + 6 * SECOND)
    assert all(ring.joined for ring in world.living)
    assert world.misrouted(100) == 0


def test_the_same_seed_gives_the_same_messages() -> None:
    conditions = NetworkConditions(loss=0.02, duplication=0.02, reordering=0.05)
    runs = [RingWorld(20, seed=8, conditions=conditions) for _ in range(2)]
    assert runs[0].sim.counts == runs[1].sim.counts
    assert runs[0].route(20) == runs[1].route(20)


def test_a_slow_root_is_retried_and_not_replaced() -> None:
    """One lost message must not make the second nearest node take itself for the root."""
    me, root = Peer(key_from(100)), Peer(key_from(10))
    ring = Ring(me, RingSettings(maintain=False))
    ring.join_static([root], [root])
    ring.route(0, key_from(9), "load")
    assert [peer for peer, _ in ring.flush()] == [root]
    ring.tick(ring.settings.first_timeout)
    routed = [(peer, message) for peer, message in ring.flush() if isinstance(message, m.Route)]
    assert [peer for peer, _ in routed] == [root]
    assert not ring.arrivals


def test_heartbeats_are_a_few_messages_a_second() -> None:
    world = RingWorld(50, seed=9)
    world.sim.run(world.sim.now + 10 * SECOND)
    before, start = world.sim.counts["messages"], world.sim.now
    world.sim.run(start + 10 * SECOND)
    assert (world.sim.counts["messages"] - before) / 50 / 10 < 25


@pytest.mark.parametrize("count", [300, 3000])
def test_hops_grow_with_the_logarithm_of_the_nodes(count: int) -> None:
    ids = [key_of(f"node {n}") for n in range(count)]
    known = static_ring(ids, half=8)
    rings: dict[bytes, Ring] = {}

    def ring_of(id: bytes) -> Ring:
        if id not in rings:
            rings[id] = Ring(Peer(id), RingSettings(maintain=False))
            rings[id].join_static(*known(id))
        return rings[id]

    hops = []
    for n in range(100):
        key, at, steps = key_of(f"key {n}"), ring_of(ids[n]), 0
        while (peer := at.next_hop(key)) is not None:
            at, steps = ring_of(peer.id), steps + 1
        assert at.me.id == min(ids, key=lambda node: nearness(number_of(node), number_of(key)))
        hops.append(steps)
    assert sum(hops) / len(hops) <= 3.2
