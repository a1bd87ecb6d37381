"""Trials: a simulated federation with random composites and publications, and its completeness, delays and traffic.

As in the paper, each primitive subscription has one type constraint. So an entry node can read the topics of an event
without a matcher, which makes large federations possible.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from likewise.composite import Composer, Hit
from likewise.events import Event
from likewise.language import Composite as Pattern
from likewise.language import Conjunction, Member, Operator, Options, Predicate, Profile, Subscription
from likewise.overlay.cube.decompose import topic_of
from likewise.overlay.cube.items import Id, TopicHit
from likewise.overlay.node.catalogue import TopicCatalogue
from likewise.overlay.node.node import NodeSettings, OverlayNode
from likewise.overlay.ring.contacts import SECOND, RingSettings
from likewise.overlay.ring.ids import Key, key_of
from likewise.overlay.ring.tables import HALF, Peer
from likewise.overlay.simulation.world import Host, NetworkConditions, Simulation, static_ring

Progress = Callable[[str], None]
STEP = 10
"""Simulated seconds between two progress messages."""


@dataclass(frozen=True, slots=True)
class OverlayTrial:
    """The parameters of a trial; `compare` also runs one composer on the acknowledged events, to check completeness."""

    nodes: int = 100
    composites: int = 50
    members: int = 5
    topics: int = 200
    events: int = 1000
    within: int = 10 * SECOND
    seconds: int = 60
    churn: float = 0.0
    loss: float = 0.0
    copies: int = 2
    spread: bool = True
    rooms: int = 0
    compare: bool = False
    seed: int = 1


@lru_cache(maxsize=1 << 16)
def profile_of(topic: str) -> Profile:
    """The profile of a topic: one type constraint."""
    return Profile((Predicate("type", Operator.EQ, topic),))


@lru_cache(maxsize=1 << 16)
def topic_key(topic: str) -> Key:
    """The key of a topic."""
    return topic_of(profile_of(topic), Options()).key


def classify_by_type(events: Sequence[Event], _catalogue: TopicCatalogue) -> list[tuple[TopicHit, ...]]:
    """The topics of an event are its types."""
    return [
        tuple(TopicHit(topic_key(str(value))) for name, value in event.tuples if name == "type") for event in events
    ]


def conjunction(name: str, topics: Iterable[str], *, within: int | None, by: str = "") -> Subscription:
    """A conjunction of topics; `by` is an attribute whose value the members must share."""
    from likewise.language import Binding, Field

    members = [Member(profile_of(topic), f"m{number}") for number, topic in enumerate(topics)]
    where = tuple(
        Binding(Field(left.alias or "", by), Operator.EQ, Field(right.alias or "", by))
        for left, right in pairwise(members)
        if by
    )
    return Subscription(name, Pattern(Conjunction(tuple(members), within), where))


class TrialWorld:
    """A static ring with one catalogue for all nodes, which are created when they are first needed."""

    def __init__(
        self, count: int, *, seed: int, settings: NodeSettings, conditions: NetworkConditions | None = None
    ) -> None:
        self.random = random.Random(seed)
        self.settings = settings
        self.catalogue = TopicCatalogue(common=True)
        self.sim = Simulation(seed=seed, conditions=conditions)
        self.sim.after = self._collect
        self.reports = 0
        self.delays: list[int] = []
        self.times_reported: Counter[bytes] = Counter()
        self.acknowledged: set[Id] = set()
        self.published: dict[Id, Event] = {}
        self.subscriptions: list[Subscription] = []
        self.compare = False
        self.detected: set[tuple[str, frozenset[str]]] = set()
        self.ids = [key_of(f"node {number}") for number in range(count)]
        self._known = static_ring(self.ids, half=HALF)
        self._all = set(self.ids)
        self.sim.lookup = self._host
        if settings.ring.maintain:
            for key in self.ids:
                self.node(key)

    def _host(self, key: Key) -> Host | None:
        if key not in self._all:
            return None
        self.node(key)
        return self.sim.hosts[key]

    def node(self, key: Key) -> OverlayNode:
        """A node of the ring, created if it was not needed before."""
        host = self.sim.hosts.get(key)
        if host is None:
            node = OverlayNode(Peer(key), self.settings, classify=classify_by_type, catalogue=self.catalogue)
            node.ring.join_static(*self._known(key))
            self.sim.add(node)
            node.start(self.sim.now)
            self.sim.touch(key)
            return node
        assert isinstance(host.machine, OverlayNode)
        return host.machine

    def _collect(self, machine: Any) -> None:
        for delivery in machine.deliveries:
            self.reports += 1
            self.times_reported[delivery.parcel] += 1
            if self.compare:
                names = frozenset(event.id for event in delivery.report.events)
                self.detected.add((machine.subscriptions[delivery.subscription].name, names))
            self.delays.append(self.sim.now - delivery.report.time)
            machine.acknowledge(delivery)
        machine.deliveries.clear()
        self.acknowledged.update(machine.acknowledged)
        machine.acknowledged.clear()

    def call(self, key: Key, action: Callable[[OverlayNode], Any]) -> None:
        """Call a function of a node, and send the messages that follow."""
        node = self.node(key)
        action(node)
        self.sim.touch(key)

    def publish(self, key: Key, event: Event) -> Id:
        """Publish at a node; returns the id of the publication."""
        number = self.node(key).publish(self.sim.now, event)
        self.sim.touch(key)
        return number

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe at a random node."""
        self.call(self.random.choice(self.ids), lambda node: node.subscribe(self.sim.now, subscription))

    @property
    def nodes(self) -> list[OverlayNode]:
        """The nodes created so far."""
        return [host.machine for host in self.sim.hosts.values() if isinstance(host.machine, OverlayNode)]

    def join(self, number: int) -> None:
        """Add a new node, which joins through three random nodes."""
        me = Peer(key_of(f"new node {number}"))
        node = OverlayNode(me, self.settings, classify=classify_by_type, catalogue=self.catalogue)
        self.sim.add(node)
        self._all.add(me.id)
        self.ids.append(me.id)
        node.start(self.sim.now, [Peer(key) for key in self.random.sample(self.ids[:-1], 3)])
        self.sim.touch(me.id)

    def crash(self) -> None:
        """Crash a random node without subscribers."""
        free = [key for key in self.ids if key in self.sim.hosts and not self.node(key).subscriptions]
        if free:
            victim = self.random.choice(free)
            self.sim.crash(victim)
            self.ids.remove(victim)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage rarely: a large federation has millions of lasting objects to scan."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The result of a trial: figures, and the data of the charts."""

    figures: dict[str, float | int]
    delays: list[float]
    """Milliseconds from each report's last event to the report."""
    loads: list[int]
    """Events and members that each node handled as a rendezvous, in descending order."""
    messages: dict[str, int]
    """Messages by kind."""


@_few_collections()
def play_trial(trial: OverlayTrial, *, progress: Progress = lambda _: None) -> TrialOutcome:
    """Run a trial: subscribe, publish, and count."""
    maintained = bool(trial.churn or trial.loss)
    ring = RingSettings(heartbeat=SECOND, maintain=maintained)
    settings = NodeSettings(ring=ring, copies=trial.copies, spread=trial.spread)
    world = TrialWorld(trial.nodes, seed=trial.seed, settings=settings, conditions=NetworkConditions(loss=trial.loss))
    world.compare = trial.compare
    by = "room" if trial.rooms else ""
    topics = [f"topic {number}" for number in range(trial.topics)]
    for number in range(trial.composites):
        subscription = conjunction(f"c{number}", world.random.sample(topics, trial.members), within=trial.within, by=by)
        world.subscribe(subscription)
        world.subscriptions.append(subscription)
    world.sim.run(world.sim.now + 5 * SECOND)
    progress(f"{trial.composites} composites in place")
    before = Counter(world.sim.counts)
    start = world.sim.now
    for number in range(trial.events):
        world.sim.at(
            start + number * trial.seconds * SECOND // trial.events, _publication(world, trial, topics, number)
        )
    if trial.churn:
        changes = max(1, int(trial.nodes * trial.churn * trial.seconds / 60))
        for number in range(changes):
            moment = start + number * trial.seconds * SECOND // changes
            world.sim.at(moment, world.crash)
            world.sim.at(moment + SECOND // 2, partial(world.join, number))
    whole = trial.seconds + 20
    for second in (*range(STEP, whole, STEP), whole):
        world.sim.run(start + second * SECOND)
        progress(f"{second} of {whole} simulated seconds, {world.reports} reports")
    return _outcome(world, trial, world.sim.counts - before)


def _publication(world: TrialWorld, trial: OverlayTrial, topics: list[str], number: int) -> Callable[[], None]:
    def publish() -> None:
        tuples: tuple[tuple[str, Any], ...] = (("type", world.random.choice(topics)),)
        if trial.rooms:
            tuples = (*tuples, ("room", world.random.randrange(trial.rooms)))
        event = Event(f"e{number}", tuples, (), world.sim.now, world.sim.now)
        key = world.random.choice(world.ids)
        if key not in world.sim.hosts or world.sim.hosts[key].up:
            world.published[world.publish(key, event)] = event

    return publish


def _outcome(world: TrialWorld, trial: OverlayTrial, spent: Counter[str]) -> TrialOutcome:
    loads = sorted(
        (sum(led.rendezvous.handled for led in node.replication.led.values()) for node in world.nodes), reverse=True
    )
    loads += [0] * max(0, trial.nodes - len(loads))
    delays = sorted(delay / 1000 for delay in world.delays)
    figures: dict[str, float | int] = {
        "nodes": trial.nodes,
        "publications": trial.events,
        "acknowledged": len(world.acknowledged),
        "reports": world.reports,
        **(_compared(world) if trial.compare else {}),
        "reported twice": sum(count > 1 for count in world.times_reported.values()),
        "messages per publication": spent["messages"] / trial.events,
        "heartbeats per node and second": (spent["Ping"] + spent["Pong"]) / trial.nodes / (trial.seconds + 20),
        "median delay, ms": delays[len(delays) // 2] if delays else 0.0,
        "load (Gini)": gini(loads),
    }
    kinds = {name: count for name, count in spent.most_common() if name != "messages" and count}
    return TrialOutcome(figures, delays, loads, kinds)


def _compared(world: TrialWorld) -> dict[str, float | int]:
    """The number of detections that one composer finds in the acknowledged events, and the share that was reported."""
    composer = Composer(world.subscriptions, max_jump=None)
    numbers = {member.profile: number for number, member in composer.profiles.items()}
    events = [event for number, event in world.published.items() if number in world.acknowledged]
    hits = [
        Hit(event, numbers[profile])
        for event in sorted(events, key=lambda event: event.span[1])
        for name, value in event.tuples
        if name == "type" and (profile := profile_of(str(value))) in numbers
    ]
    expected = {
        (detection.pattern, frozenset(event.id for event in detection.members)) for detection in composer.take(hits)
    }
    reported = len(expected & world.detected)
    return {"expected": len(expected), "complete": reported / len(expected) if expected else 1.0}


def gini(loads: list[int]) -> float:
    """The Gini coefficient: 0 if all loads are equal, near 1 if one node has all.

    >>> gini([1, 1, 1, 1]), round(gini([0, 0, 0, 1]), 2)
    (0.0, 0.75)
    """
    total = sum(loads)
    if not total:
        return 0.0
    ranked = sum(rank * load for rank, load in enumerate(sorted(loads), 1))
    return 2 * ranked / (len(loads) * total) - (len(loads) + 1) / len(loads)
