"""Where the events of a pattern meet: the rendezvous of 001, as keys of a shuffle.

A pattern whose members are all bound by equality (`a.room = b.room`) can be detected room by room, so its key
is the room. Any other pattern has one meeting place, named after itself. Spark routes by it, and so may any other
place that spreads a pattern over several nodes.
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
"""Keys of one pattern share this many states: enough to spread, few enough to keep each in one piece."""

_KEYED = (LeafNode, SequenceNode, JointNode, DisjunctionNode)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How one pattern's events are sent to their meeting places; `attribute` is by role, None if there is one place."""

    pattern: str
    attribute: dict[str, str] | None
    buckets: int
    clocked: bool

    @classmethod
    def of(cls, plan: Plan, *, buckets: int = BUCKETS, spread: bool = True) -> Rendezvous:
        """The route of a plan; all meet in one place if nothing is to be spread."""
        clocked = any(isinstance(node, SilenceNode | TimeNode) for node in plan.nodes)
        attribute = None if clocked or not spread else key_attributes(plan)
        return cls(plan.name, attribute, buckets if attribute is not None else 1, clocked)

    def place_of(self, value: Value) -> int:
        """The meeting place of all that has this value as its key."""
        return self.place(canonical(value))

    def place(self, value: Any) -> int:
        """The bucket of a canonical value."""
        return key_digest(value) % self.buckets

    @property
    def offset(self) -> int:
        """Where its places begin among the partitions of a job, so that patterns with one place do not share one."""
        return key_digest(self.pattern) % (1 << 31)

    def owns(self, place: int, events: Iterable[tuple[str, Event]]) -> bool:
        """Whether a detection belongs here: with several common keys, only the first place reports it."""
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
    """A number for a canonical value, the same in every process."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "little")


def key_attributes(plan: Plan) -> dict[str, str] | None:
    """For each role the attribute that all roles share by `=`; None if there is no such thing.

    Two attributes are tied when a condition sets them equal; a tie that reaches every member is a key.
    """
    roles = {node.role for node in plan.nodes if isinstance(node, LeafNode)}
    visible = roles - plan.root.node.hidden
    if not all(isinstance(node, _KEYED) or (isinstance(node, GateNode) and node.plain) for node in plan.nodes):
        return None
    # What must not happen joins nothing: the others must be tied without it.
    among = _tied(plan, visible)
    for group in _tied(plan, roles):
        attribute: dict[str, str] = {}
        for role, name in sorted(group):
            attribute.setdefault(role, name)
        joined = len(visible) == 1 or any(some <= group and visible <= {role for role, _ in some} for some in among)
        # An event that is consumed must be so wherever it waits: under one key.
        alone = plan.consumption is not Consumption.UNIQUE or len(set(attribute.values())) == 1
        if joined and alone and roles <= attribute.keys():
            return attribute
    return None


def _tied(plan: Plan, roles: Set[str]) -> list[set[tuple[str, str]]]:
    """Attributes of these roles that are equal by any chain of conditions between them."""
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
