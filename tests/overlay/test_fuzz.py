"""Malformed, repeated, forged and outdated messages of every type are refused, and the node keeps running."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from federation import Federation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.events import Event
from likewise.overlay import Peer, key_of
from likewise.overlay.cube.decompose import Compound, Pairing, ProfileTopic
from likewise.overlay.cube.items import Item, MatchedEvent, Report, TopicHit, id_of
from likewise.overlay.cube.plane import Subscriber
from likewise.overlay.node import wire as w
from likewise.overlay.ring import messages as m
from likewise.overlay.ring.contacts import SECOND

KEY, ID, PEER = key_of("key"), id_of("id"), Peer(key_of("peer"), "127.0.0.1:1")
ITEM = Item.of(MatchedEvent.of(ID, Event("e", (("kind", "a"),), (), 1, 2), (TopicHit(KEY, 0.5, (("kind", 0, 1.0),)),)))
TOPIC = ProfileTopic("p: {kind = a}")
FAN = Subscriber("fan", KEY, 3, "p: {kind = a} and {kind = b}\n", 1, 2)
WHOLE = Compound((TOPIC, ProfileTopic("p: {kind = b}")), Pairing("and", 5), FAN.source)
INTEREST = w.Interest(WHOLE, FAN)
OFFER = w.Offer(KEY, ITEM, "tx", (INTEREST,))
EPOCH = (2, KEY)
STATE = w.StoreState((INTEREST,), (("fan", 1),), (OFFER,), (ID,), (w.Checkpoint("fan", b"state", 3, (ID,)),))
REPORT = Report(ID, 2, 1, 2, 0.5, ("a",), (b'{"id":"e","attributes":{"a":1}}',))

SAMPLES: list[Any] = [
    m.Ping(1, (PEER,), 7),
    m.Pong(1, (PEER,), 7),
    m.TableRows((PEER,)),
    m.Welcome((PEER,), (PEER,)),
    m.Announce((PEER,)),
    m.Farewell((PEER,)),
    m.AskLeaves(),
    m.Leaves((PEER,)),
    m.Suspect(PEER),
    m.HopAck((1, 2)),
    m.Route(KEY, 1, PEER, m.Join(PEER), 2),
    m.Route(KEY, 1, PEER, w.Parcel(ID, INTEREST, KEY, EPOCH), 2),
    m.Route(KEY, 1, PEER, w.Parcel(ID, w.EndInterest(TOPIC, FAN)), 2),
    m.Route(KEY, 1, PEER, w.Parcel(ID, OFFER), 2),
    m.Route(KEY, 1, PEER, w.Parcel(ID, w.ReportNotice("fan", REPORT)), 2),
    m.Route(KEY, 1, PEER, w.StateTransfer(KEY, EPOCH, 3, STATE, True), 2),
    w.ParcelReceipt((ID,)),
    w.Refusal(ID, KEY, EPOCH),
    w.Replicate(KEY, EPOCH, 1, OFFER),
    w.Replicate(KEY, EPOCH, 1, w.Trim((ID,))),
    w.ReplicateAck(KEY, EPOCH, -1),
    w.StateTransfer(KEY, EPOCH, 3, STATE),
    w.Fenced(KEY, EPOCH),
    w.TopicUpdate((w.CatalogueEntry(TOPIC, 1, True, (INTEREST,)),), KEY, 2, True),
    w.TopicUpdateAck(2),
    w.TopicRequest((1, 2, 3)),
]


def test_every_message_type_has_a_sample() -> None:
    assert set(get_args(w.Message)) == {type(sample) for sample in SAMPLES}


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_messages_survive_their_encoding(message: Any) -> None:
    assert w.decode(w.encode(message)) == message


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_changed_bytes_are_refused_or_well_formed(message: Any, data: st.DataObject) -> None:
    raw = bytearray(w.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        made = w.decode(cut)
    except InputError:
        return
    assert w.decode(w.encode(made)) == made


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(SAMPLES), st.integers(1, 3)), min_size=1, max_size=25), st.integers(0, 9))
def test_a_node_survives_any_messages(sent: list[tuple[Any, int]], seed: int) -> None:
    """Unexpected messages in any order, some repeated, raise no exception."""
    world = Federation(4, seed=seed)
    node, sender = world.nodes[0], world.nodes[1].me
    for message, times in sent:
        for _ in range(times):
            if type(message) is m.Farewell:
                continue
            node.receive(world.sim.now, sender, message)
            world.sim.touch(node.me.id)
    world.run(3 * SECOND)
    assert node.ring.joined


def test_a_repeated_publication_is_reported_once() -> None:
    world = Federation(6, seed=3)
    world.subscribe("p: {kind = a}", at=world.nodes[2])
    world.run(3 * SECOND)
    now = world.sim.now
    for _ in range(3):
        world.nodes[4].publish(now, Event("e", (("kind", "a"),), (), now, now), id=id_of("once"))
        world.sim.touch(world.nodes[4].me.id)
        world.run(2 * SECOND)
    assert len(world.reports) == 1


def test_a_rendezvous_of_an_earlier_epoch_cannot_report() -> None:
    world = Federation(6, seed=4)
    [(node, name)] = world.subscribe("p: {kind = a}", at=world.nodes[2])
    world.run(3 * SECOND)
    source = node.subscriptions[name].tree.key

    def send_report(number: int, epoch: int) -> None:
        report = Report(id_of(str(number)), 1, 1, 1, 1.0, ("p",), REPORT.raw)
        parcel = w.Parcel(id_of("parcel", str(number)), w.ReportNotice(name, report), source, (epoch, KEY))
        world.nodes[0].ring.route(world.sim.now, node.me.id, parcel)
        world.sim.touch(world.nodes[0].me.id)
        world.run(SECOND)

    send_report(1, 9)
    send_report(2, 8)
    assert [report.id for _, report in world.reports] == [id_of("1")]
    assert node.counts["fenced"] >= 1


def test_a_full_outbox_refuses_publications() -> None:
    from dataclasses import replace

    from likewise.errors import BuildError

    world = Federation(3, seed=5)
    world.subscribe("p: {kind = a}")
    world.run(3 * SECOND)
    node = world.nodes[0]
    node.settings = replace(node.settings, outbox=5)

    def fill() -> None:
        for number in range(50):
            now = world.sim.now
            node.publish(now, Event(f"e{number}", (("kind", "a"),), (), now, now))

    with pytest.raises(BuildError, match="too many"):
        fill()
