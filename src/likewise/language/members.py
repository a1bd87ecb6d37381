"""The members of a pattern, the names under which conditions speak of them, and references between subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from likewise.language.model import (
    Member,
    Negation,
    Pattern,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Subscription,
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


def references(subscription: Subscription) -> tuple[str, ...]:
    """The names that a subscription's pattern refers to, each once.

    >>> from likewise.language import parse_subscription
    >>> references(parse_subscription("alarm: smoke then not people then smoke"))
    ('smoke', 'people')
    """
    if isinstance(subscription.body, Profile):
        return ()
    named = [one.name for one in members(subscription.body.root) if isinstance(one, Reference)]
    return tuple(dict.fromkeys(named)) if named else ()


def circle(subscriptions: Iterable[Subscription]) -> tuple[str, ...]:
    """Names that lead back to the first of them, () if no subscription rests on itself.

    >>> from likewise.language import parse
    >>> circle(parse("a: b then {x= 1}\\nb: a or {x= 2}"))
    ('a', 'b', 'a')
    """
    below = {one.name: references(one) for one in subscriptions}
    done: set[str] = set()
    for start in below:
        path, pending = list[str](), [iter((start,))]
        while pending:
            name = next(pending[-1], None)
            if name is None:
                pending.pop()
                if path:
                    done.add(path.pop())
            elif name in path:
                return (*path[path.index(name) :], name)
            elif name in below and name not in done:
                path.append(name)
                pending.append(iter(below[name]))
    return ()
