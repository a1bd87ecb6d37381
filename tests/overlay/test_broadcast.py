"""After a subscription is confirmed, events published at any node are reported."""

from __future__ import annotations

import pytest
from federation import Federation

from likewise.events import Event
from likewise.overlay import NetworkConditions
from likewise.overlay.ring.contacts import SECOND

PAIR = "pair: {kind = smoke} as a and {kind = heat} as b where a.room = b.room"
ROUGH = NetworkConditions(loss=0.1, duplication=0.1, reordering=0.3)


def confirm(world: Federation, text: str) -> None:
    """Subscribe, and let time pass until the subscription is confirmed."""
    [(node, name)] = world.subscribe(text, at=world.nodes[1])
    for _ in range(100_000):
        if name in node.confirmed:
            return
        world.run(1_000)
    raise AssertionError("never confirmed")


@pytest.mark.parametrize(("count", "conditions"), [(1, None), (3, None), (20, None), (6, ROUGH), (30, ROUGH)])
def test_events_published_anywhere_after_the_confirmation_are_reported(
    count: int, conditions: NetworkConditions | None
) -> None:
    world = Federation(count + 1, seed=count, static=False, conditions=conditions)
    confirm(world, PAIR)
    for number, node in enumerate(world.nodes):
        assert len(node.catalogue) == 2
        for kind in ("smoke", "heat"):
            world.publish(Event(f"{kind}{number}", (("kind", kind), ("room", f"r{number}"))), at=node)
    world.run(60 * SECOND)
    assert sorted(world.reported().values()) == [1] * len(world.nodes)


def test_a_node_that_was_frozen_holds_events_until_it_is_synchronised() -> None:
    world = Federation(8, seed=3, static=False)
    frozen = world.nodes[5]
    world.sim.freeze(frozen.me.id)
    confirm(world, "one: {kind = smoke}")
    assert not len(frozen.catalogue)
    world.sim.wake(frozen.me.id)
    world.publish(Event("e", (("kind", "smoke"),)), at=frozen)
    assert world.publications["e"] not in world.acknowledged
    world.run(10 * SECOND)
    assert world.publications["e"] in world.acknowledged
    assert sorted(world.reported().values()) == [1]


def test_nodes_that_were_all_frozen_do_not_wait_for_each_other() -> None:
    world = Federation(5, seed=4, static=False)
    confirm(world, "one: {kind = smoke}")
    for node in world.nodes:
        world.sim.freeze(node.me.id)
    world.run(3 * SECOND)
    for node in world.nodes:
        world.sim.wake(node.me.id)
    assert not any(node.ready for node in world.nodes)
    world.publish(Event("e", (("kind", "smoke"),)), at=world.nodes[2])
    world.run(10 * SECOND)
    assert sorted(world.reported().values()) == [1]


def test_a_root_that_crashes_during_its_broadcast_is_replaced() -> None:
    world = Federation(12, seed=5, static=False)
    text = "one: {kind = smoke}"
    [(node, name)] = world.subscribe(text, at=world.nodes[1])
    while not any(len(other.catalogue) for other in world.living):
        world.run(100)
    [root] = [other for other in world.living if any(led.rendezvous.store for led in other.replication.led.values())]
    assert root is not node
    assert sum(bool(len(other.catalogue)) for other in world.living) < 6
    world.sim.crash(root.me.id)
    while name not in node.confirmed:
        world.run(1_000)
    assert all(len(other.catalogue) for other in world.living)


@pytest.mark.parametrize("text", ["one: {kind = smoke}", "both: {kind = smoke} and {kind = heat}", PAIR])
def test_a_pattern_can_be_subscribed_to_again(text: str) -> None:
    world = Federation(12, seed=2, static=False)
    counts = []
    for round_ in range(3):
        [(node, name)] = world.subscribe(text)
        world.run(5 * SECOND)
        for subscribed in (True, False):
            for kind in ("smoke", "heat"):
                world.publish(Event(f"{kind}{round_}{subscribed}", (("kind", kind), ("room", "r"))))
            world.run(5 * SECOND)
            counts.append(len(world.reports))
            if subscribed:
                node.unsubscribe(world.sim.now, name)
                world.sim.touch(node.me.id)
                world.run(5 * SECOND)
    assert counts == [1, 1, 2, 2, 3, 3]
