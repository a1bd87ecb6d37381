"""Routing keys: where the events of a pattern meet (the rendezvous of 001), for shuffles.

If all members are joined by equality (`a.room = b.room`), a pattern can be detected for each room separately: the room
is its key. Any other pattern has a single meeting place, named after itself. Spark routes by these keys, and so can
anything that spreads a pattern over several nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from likewise.composite.plan.conditions import ConditionSide
from likewise.composite.plan.nodes import (
    DisjunctionNode,
    GateNode,
    JointNode,
    LeafNode,
    Plan,
    SequenceNode,
    SilenceNode,
    TimeNode,
)
from likewise.events import Event, Value, normalise
from likewise.language import Consumption
from likewise.matching import canonical

BUCKETS: Final = 32
"""The number of places that the keys of one pattern share: enough to spread the load."""

_KEYED = (LeafNode, SequenceNode, JointNode, DisjunctionNode)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How one pattern's events are routed; `attribute` is by role, or None if there is a single place."""

    pattern: str
    attribute: dict[str, str] | None
    buckets: int
    clocked: bool

    @classmethod
    def of(cls, plan: Plan, *, buckets: int = BUCKETS, spread: bool = True) -> Rendezvous:
        """The route of a plan; a single place without `spread`."""
        clocked = any(isinstance(node, SilenceNode | TimeNode) for node in plan.nodes)
        attribute = None if clocked or not spread else key_attributes(plan)
        return cls(plan.name, attribute, buckets if attribute is not None else 1, clocked)

    def place_of(self, value: Value) -> int:
        """The place of events with this key value."""
        return self.place(canonical(value))

    def place(self, value: Any) -> int:
        """The place of a canonical value."""
        return key_digest(value) % self.buckets

    @property
    def offset(self) -> int:
        """An offset among a job's partitions, so that patterns with one place do not share a partition."""
        return key_digest(self.pattern) % (1 << 31)

    def owns(self, place: int, events: Iterable[tuple[str, Event]]) -> bool:
        """Whether this place reports a detection: if events share several keys, only the first place does."""
        if self.attribute is None or self.buckets == 1:
            return True
        sets = [
            {self.place(value) for value in _own_values(event, self.attribute[role])}
            for role, event in events
            if role in self.attribute
        ]
        known = [places for places in sets if places]
        common = set.intersection(*known) if known else set()
        return not common or place == min(common)


@lru_cache(maxsize=1 << 16)
def key_digest(value: Any) -> int:
    """A hash of a canonical value that is the same in every process."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "little")


def key_attributes(plan: Plan) -> dict[str, str] | None:
    """For each role, the attribute by which all roles are joined; None if there is none.

    Two attributes are tied if a condition sets them equal; a tie that includes every member is a key.
    """
    roles = {node.role for node in plan.nodes if isinstance(node, LeafNode)}
    visible = roles - plan.root.node.hidden
    if not all(isinstance(node, _KEYED) or (isinstance(node, GateNode) and node.plain) for node in plan.nodes):
        return None
    # A negated member joins nothing: the others must be tied without it.
    among = _tied(plan, visible)
    for group in _tied(plan, roles):
        attribute: dict[str, str] = {}
        for role, name in sorted(group):
            attribute.setdefault(role, name)
        joined = len(visible) == 1 or any(tie <= group and visible <= {role for role, _ in tie} for tie in among)
        # A consumed event must be consumed everywhere it waits, so it may have one key only.
        single = plan.consumption is not Consumption.UNIQUE or len(set(attribute.values())) == 1
        if joined and single and roles <= attribute.keys():
            return attribute
    return None


def _tied(plan: Plan, roles: Set[str]) -> list[set[tuple[str, str]]]:
    """Groups of attributes of these roles that are equal by a chain of conditions."""
    groups: list[set[tuple[str, str]]] = []
    for condition in plan.conditions:
        if condition.joins and isinstance(condition.right, ConditionSide) and condition.roles <= roles:
            new = {
                (role, normalise(side.attribute)) for side in (condition.left, condition.right) for role in side.roles
            }
            touching = [group for group in groups if group & new]
            groups = [group for group in groups if not group & new] + [new.union(*touching)]
    return groups


def _own_values(event: Event, attribute: str) -> Iterator[Any]:
    return (canonical(value) for name, value in event.tuples if normalise(name) == attribute)
