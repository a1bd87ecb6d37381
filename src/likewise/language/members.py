"""The leaves of a pattern, and the names under which conditions speak of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from likewise.language.model import (
    Member,
    Negation,
    Pattern,
    Reference,
    Relation,
    Repetition,
    Selection,
    TimeEvent,
)

# As tuples: a union would be built anew for every node.
_LEAVES: Final = (Member, Reference, TimeEvent)
_ABOUT_ONE: Final = (Negation, Selection, Repetition)


def members(pattern: Pattern) -> Iterator[Member | Reference | TimeEvent]:
    """The members of a pattern from left to right."""
    pending: list[Pattern] = [pattern]
    while pending:
        node = pending.pop()
        if isinstance(node, _LEAVES):
            yield node
        else:
            pending.extend(reversed(parts(node)))


def parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below one."""
    if isinstance(pattern, _LEAVES):
        return ()
    if isinstance(pattern, _ABOUT_ONE):
        return (pattern.part,)
    if isinstance(pattern, Relation):
        return (pattern.left, pattern.right)
    return pattern.parts


def labels(pattern: Pattern) -> Iterator[str]:
    """The name of each member that has one: its alias, or else the subscription it refers to."""
    for member in members(pattern):
        if member.alias is not None:
            yield member.alias
        elif isinstance(member, Reference):
            yield member.name
