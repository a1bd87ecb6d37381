"""Simulated federations for tests, with the reports of each subscription."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from likewise.events import Event
from likewise.language import Composite, Subscription, parse, parse_subscription
from likewise.overlay import NetworkConditions, Peer, RingSettings, Simulation, key_of
from likewise.overlay.cube.items import Report, TopicHit
from likewise.overlay.node.catalogue import MatchingClassifier, TopicCatalogue
from likewise.overlay.node.node import NodeSettings, OverlayNode
from likewise.overlay.ring.contacts import SECOND
from likewise.overlay.simulation.world import static_ring


class Federation:
    """Nodes in a simulation; a `static` federation is a complete ring without heartbeats."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        conditions: NetworkConditions | None = None,
        static: bool = True,
        settings: NodeSettings | None = None,
        wire: Any = None,
        classify: Any = None,
        **options: Any,
    ) -> None:
        self.random = random.Random(seed)
        self.sim = Simulation(seed=seed, conditions=conditions, wire=wire)
        self.sim.after = self._collect
        self.reports: list[tuple[str, Report]] = []
        self.acknowledged: set[bytes] = set()
        self.settings = settings or NodeSettings(ring=RingSettings(heartbeat=SECOND // 2, maintain=not static))
        self.options = options
        # Nodes with equal catalogues give equal matches, so they can share a matcher.
        self.classify = classify or MatchingClassifier()
        self.nodes: list[OverlayNode] = []
        self.publications: dict[str, bytes] = {}
        known = static_ring([key_of(f"node {n}") for n in range(count)], half=8) if static else None
        for _ in range(count):
            self.join(static=known)
            if not static:
                self.run(50_000)
        self.run(0 if static else 3 * SECOND)

    def _collect(self, machine: Any) -> None:
        for delivery in machine.deliveries:
            self.reports.append((machine.subscriptions[delivery.subscription].name, delivery.report))
            machine.acknowledge(delivery)
        machine.deliveries.clear()
        self.acknowledged.update(machine.acknowledged)
        machine.acknowledged.clear()

    def join(self, *, static: Any = None) -> OverlayNode:
        me = Peer(key_of(f"node {len(self.nodes)}"))
        node = OverlayNode(me, self.settings, classify=self.classify, **self.options)
        bootstrap = [ready.me for ready in self.living if ready.ring.joined]
        self.sim.add(node)
        if static is not None:
            node.ring.join_static(*static(me.id))
            node.start(self.sim.now)
        else:
            node.start(self.sim.now, self.random.sample(bootstrap, min(3, len(bootstrap))))
        self.sim.touch(me.id)
        self.nodes.append(node)
        return node

    @property
    def living(self) -> list[OverlayNode]:
        return [machine for machine in self.sim.living if isinstance(machine, OverlayNode) and not machine.ring.left]

    def run(self, time: int) -> None:
        self.sim.run(self.sim.now + time)

    def subscribe(
        self, text: str | Sequence[Subscription], *, at: OverlayNode | None = None
    ) -> list[tuple[OverlayNode, str]]:
        subscriptions = parse(text) if isinstance(text, str) else list(text)
        known = {subscription.name: subscription for subscription in subscriptions}
        out = []
        for subscription in subscriptions:
            node = at or self.random.choice(self.living)
            out.append((node, node.subscribe(self.sim.now, subscription, known=known)))
            self.sim.touch(node.me.id)
        return out

    def publish(self, event: Event, *, at: OverlayNode | None = None) -> None:
        node = at or self.random.choice(self.living)
        self.publications[event.id] = node.publish(self.sim.now, event)
        self.sim.touch(node.me.id)

    def play(self, events: Sequence[Event], *, wait: int = 20 * SECOND) -> None:
        """Publish each event at its time, at random nodes, and wait."""
        for event in events:
            self.sim.at(max(event.span[1], self.sim.now), lambda event=event: self.publish(event))
        self.sim.run((events[-1].span[1] if events else self.sim.now) + wait)

    def reported(self) -> Counter[tuple[Any, ...]]:
        return Counter((name, *report.signature) for name, report in self.reports)

    def root(self, name: str) -> OverlayNode:
        """The node nearest to the key of a name."""
        from likewise.overlay.ring.ids import nearness, number_of

        key = number_of(key_of(name))
        return min(self.living, key=lambda node: nearness(node.me.number, key))


class TableClassifier:
    """Matches with a function of profile and event."""

    def __init__(self, match: Any) -> None:
        self.match = match

    def __call__(self, events: Sequence[Event], catalogue: TopicCatalogue) -> list[tuple[TopicHit, ...]]:
        return [self._hits(event, catalogue) for event in events]

    def _hits(self, event: Event, catalogue: TopicCatalogue) -> tuple[TopicHit, ...]:
        scores = [(key_of(text), self.match(parse_subscription(text).body, event)) for text in catalogue.by_text]
        return tuple(TopicHit(key, score) for key, score in sorted(scores) if score)


def scaled(value: Any, factor: int) -> Any:
    """A pattern with all its times multiplied by a factor."""
    if isinstance(value, tuple):
        return tuple(scaled(item, factor) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for field in fields(value):
        inner = getattr(value, field.name)
        if field.name in ("within", "every", "at") and isinstance(inner, int):
            changes[field.name] = inner * factor
        else:
            changes[field.name] = scaled(inner, factor)
    return replace(value, **changes)


def moved(event: Event, *, factor: int, by: int) -> Event:
    """An event at another time."""
    start, end = event.span
    return Event(event.id, event.tuples, event.theme, start * factor + by, end * factor + by)


def signature(notification: Any) -> tuple[Any, ...]:
    """The signature of a notification, in the form of an overlay report's."""
    if notification.detection is not None:
        return (notification.subscription, *notification.detection.signature[1:])
    start, end = notification.event.span
    member = (("p", notification.event.id, start, end),)
    return (notification.subscription, end, start, end, member, round(notification.score, 9))


def is_composite(subscription: Subscription) -> bool:
    return isinstance(subscription.body, Composite)
