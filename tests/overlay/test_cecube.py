"""Figures 2 and 6 of the paper, cell by cell: plane, flags, SIV, SIM and matching vector of each node."""

from __future__ import annotations

import pytest
from federation import Federation

from likewise.events import Event
from likewise.language import parse
from likewise.overlay.cube.cells import Cube, fits
from likewise.overlay.cube.decompose import Compound, Pairing, ProfileTopic, decompose
from likewise.overlay.cube.items import Item, MatchedEvent
from likewise.overlay.cube.plane import ANY, Plane, Subscriber
from likewise.overlay.node.node import OverlayNode
from likewise.overlay.ring.contacts import SECOND
from likewise.overlay.ring.ids import Key, key_of

TEXT = """
e1: {topic = football match}
e2: {topic = comments in english}
e3: {topic = weather}
sub1: {topic = football match} and {topic = comments in english}
sub2: ({topic = football match} and {topic = comments in english}) or {topic = weather}
"""


class Figure:
    """The subscriptions of figure 2, each at a different node."""

    def __init__(self, *, both: bool = True) -> None:
        self.subscriptions = {subscription.name: subscription for subscription in parse(TEXT)}
        self.world = Federation(40, seed=11)
        self.subscriber1, self.subscriber2 = self.world.nodes[0], self.world.nodes[1]
        self.ce2 = self.tree("sub2")
        self.ce1 = self.tree("sub1")
        self.e1, self.e2, self.e3 = (self.tree(name) for name in ("e1", "e2", "e3"))
        if both:
            self.world.subscribe([self.subscriptions["sub1"]], at=self.subscriber1)
            self.world.run(3 * SECOND)
        self.world.subscribe([self.subscriptions["sub2"]], at=self.subscriber2)
        self.world.run(3 * SECOND)

    def tree(self, name: str) -> ProfileTopic | Compound:
        return decompose(self.subscriptions[name])

    def root(self, key: Key) -> OverlayNode:
        [node] = [node for node in self.world.nodes if node.ring.is_root(key)]
        return node


def test_figure_2_the_tree_of_sub2_has_ce1_as_a_member() -> None:
    figure = Figure()
    assert isinstance(figure.ce2, Compound)
    assert {member.key for member in figure.ce2.members} == {figure.ce1.key, figure.e3.key}
    [ce1] = [member for member in figure.ce2.members if isinstance(member, Compound)]
    assert {member.key for member in ce1.members} == {figure.e1.key, figure.e2.key}
    assert (ce1.join, figure.ce2.join) == (Pairing("and"), Pairing("or"))


def test_figure_2_a_shared_composite_is_decomposed_once() -> None:
    """sub2 only adds itself to the SIM of CE1, which sub1 created; nothing is routed to e1 and e2 again."""
    figure = Figure()
    node = figure.root(figure.e1.key)
    assert len(node.replication.stores[figure.e1.key].interests) == 1


def test_figure_6_the_cube_of_ce2_at_its_root() -> None:
    figure = Figure()
    cube = figure.root(figure.ce2.key).cube
    cells = cube.cell_matrix(figure.ce2.key)
    assert set(cells) == {(figure.ce1.key, ANY), (figure.e3.key, ANY)}
    for cell in cells.values():
        assert cell.flag == 1
        assert cell.end is None
        assert set(cell.sim) == {"E1 or E2"}
        assert [entry.key for entry in cell.sim["E1 or E2"].values()] == [figure.subscriber2.me.id]
    assert cube.vector(figure.ce2.key) == {"E1 or E2": 1 + 1}


def test_figure_6_the_cube_of_ce1_at_its_root() -> None:
    """CE1 has two subscribers with one relationship: subscriber 1, and the rendezvous of CE2."""
    figure = Figure()
    cube = figure.root(figure.ce1.key).cube
    cells = cube.cell_matrix(figure.ce1.key)
    assert set(cells) == {(figure.e1.key, ANY), (figure.e2.key, ANY)}
    for cell in cells.values():
        assert cell.flag == 1
        assert [entry.key for entry in cell.sim["E1 and E2"].values()] == [figure.subscriber1.me.id, figure.ce2.key]
    assert cube.vector(figure.ce1.key) == {"E1 and E2": 2}


def test_figure_6_the_planes_of_the_primitive_events() -> None:
    figure = Figure()
    for event, composite in ((figure.e1, figure.ce1), (figure.e2, figure.ce1), (figure.e3, figure.ce2)):
        plane = figure.root(event.key).plane
        cell = plane.cells[event.key, ANY]
        assert cell.flag == 1
        assert [entry.key for entry in cell.siv.values()] == [composite.key]


def test_no_other_node_holds_cells() -> None:
    figure = Figure()
    cubes = {node.me.id for node in figure.world.nodes if node.cube.cells}
    planes = {node.me.id for node in figure.world.nodes if node.plane}
    assert cubes == {figure.root(composite.key).me.id for composite in (figure.ce1, figure.ce2)}
    assert planes == {figure.root(topic.key).me.id for topic in (figure.e1, figure.e2, figure.e3)}


def publish(figure: Figure, topic: str, number: int) -> None:
    now = figure.world.sim.now
    figure.world.publish(Event(f"e{number}", (("topic", topic),), (), now, now))
    figure.world.run(2 * SECOND)


def test_publication_clears_flags_until_the_composite_is_matched() -> None:
    """Algorithm 2: e1 arrives and is held at CE1; e2 completes CE1, which goes to subscriber 1 and to CE2."""
    figure = Figure()
    cube = figure.root(figure.ce1.key).cube
    publish(figure, "football match", 1)
    assert cube.vector(figure.ce1.key) == {"E1 and E2": 1}
    assert cube.cells[figure.ce1.key, figure.e1.key, ANY].flag == 0
    assert not figure.world.reports
    assert cube.cells[figure.ce1.key, figure.e1.key, ANY].end is not None
    publish(figure, "comments in english", 2)
    assert cube.vector(figure.ce1.key) == {"E1 and E2": 0}
    assert sorted(name for name, _ in figure.world.reports) == ["sub1", "sub2"]
    # With `or`, one member is enough: the flag of the other is cleared too.
    assert figure.root(figure.ce2.key).cube.vector(figure.ce2.key) == {"E1 or E2": 0}


def test_an_event_that_completes_nothing_is_not_forwarded() -> None:
    figure = Figure()
    figure.world.sim.counts.clear()
    publish(figure, "chess", 1)
    assert figure.world.sim.counts["Route"] == 0, "without a subscriber, the entry node drops it"
    publish(figure, "football match", 2)
    assert not figure.root(figure.ce2.key).replication.stores[figure.ce2.key].log


def test_unsubscribing_removes_all_cells() -> None:
    figure = Figure(both=False)
    [name] = figure.subscriber2.subscriptions
    figure.subscriber2.unsubscribe(figure.world.sim.now, name)
    figure.world.sim.touch(figure.subscriber2.me.id)
    figure.world.run(5 * SECOND)
    assert not any(node.cube.cells or node.plane for node in figure.world.nodes)
    assert not any(len(node.catalogue) for node in figure.world.nodes)
    publish(figure, "weather", 1)
    assert not figure.world.reports


def test_unsubscribing_keeps_shared_composites() -> None:
    figure = Figure()
    [name] = figure.subscriber2.subscriptions
    figure.subscriber2.unsubscribe(figure.world.sim.now, name)
    figure.world.sim.touch(figure.subscriber2.me.id)
    figure.world.run(5 * SECOND)
    publish(figure, "football match", 1)
    publish(figure, "comments in english", 2)
    assert [name for name, _ in figure.world.reports] == ["sub1"]


def test_a_plane_distinguishes_times() -> None:
    plane, event, evening = Plane(), key_of("match"), key_of("evening")
    plane.subscribe(event, Subscriber("fan", key_of("N1")), time=evening)
    assert [entry.id for entry in plane.scan(event, time=evening)] == ["fan"]
    assert plane.scan(event, time=key_of("morning")) == []


def item(name: str, start: int, end: int) -> Item:
    event = Event(name, (("a", 1),), (), start, end)
    return Item.of(MatchedEvent.of(key_of(name), event, ()))


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("before", (0, 1), (2, 3)),
        ("after", (2, 3), (0, 1)),
        ("meets", (0, 2), (2, 3)),
        ("overlaps", (0, 2), (1, 3)),
        ("finishes", (1, 3), (0, 3)),
        ("contains", (0, 9), (3, 4)),
        ("equals", (0, 9), (0, 9)),
        ("then", (0, 1), (0, 2)),
        ("and", (5, 5), (0, 2)),
    ],
)
def test_temporal_relations_are_checked_by_end_times(op: str, left: tuple[int, int], right: tuple[int, int]) -> None:
    assert fits(Pairing(op), item("l", *left), item("r", *right))
    if op not in ("and", "equals"):
        assert not fits(Pairing(op), item("r", *right), item("l", *left))


def test_a_flag_is_set_again_when_the_items_have_expired() -> None:
    cube, composite, first, second = Cube(), key_of("CE"), key_of("a"), key_of("b")
    cube.index(composite, (first, second), Pairing("and", within=10), Subscriber("fan", key_of("N")))
    assert list(cube.arrive(composite, first, item("x", 0, 0))) == []
    assert cube.vector(composite) == {"E1 and E2 within 10 microseconds": 1}
    assert len(cube.expire(composite, 11, grace=0)) == 1
    assert cube.vector(composite) == {"E1 and E2 within 10 microseconds": 2}


def test_all_subscribers_of_a_split_pattern_get_reports() -> None:
    world = Federation(12, seed=12)
    text = "{name}: {{kind = a}} as a and {{kind = b}} as b where a.room = b.room"
    world.subscribe("\n".join(text.format(name=name) for name in ("one", "two")))
    world.run(3 * SECOND)
    for kind in "ab":
        now = world.sim.now
        world.publish(Event(kind, (("kind", kind), ("room", 7)), (), now, now))
    world.run(3 * SECOND)
    assert sorted(name for name, _ in world.reports) == ["one", "two"]
