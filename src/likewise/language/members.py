"""The members of a pattern, their names in conditions, and references between subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from likewise.language.model import (
    Composite,
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

# Tuples, since a union type would be built anew for every node.
_LEAVES: Final = (Member, Reference, TimeEvent)
_SINGLE_PART: Final = (Negation, Selection, Repetition)


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
    """The direct parts of a pattern."""
    if isinstance(pattern, _LEAVES):
        return ()
    if isinstance(pattern, _SINGLE_PART):
        return (pattern.part,)
    if isinstance(pattern, Relation):
        return (pattern.left, pattern.right)
    return pattern.parts


def profiles_of(body: Profile | Composite | Pattern) -> Iterator[Profile]:
    """The profiles of a subscription or pattern, from left to right."""
    if isinstance(body, Profile):
        yield body
    else:
        root = body.root if isinstance(body, Composite) else body
        yield from (member.profile for member in members(root) if isinstance(member, Member))


def labels(pattern: Pattern) -> Iterator[str]:
    """The names of the members: the alias, or else the subscription it refers to."""
    for member in members(pattern):
        if member.alias is not None:
            yield member.alias
        elif isinstance(member, Reference):
            yield member.name


def references(subscription: Subscription) -> tuple[str, ...]:
    """The distinct names that a subscription's pattern refers to.

    >>> from likewise.language import parse_subscription
    >>> references(parse_subscription("alarm: smoke then not people then smoke"))
    ('smoke', 'people')
    """
    if isinstance(subscription.body, Profile):
        return ()
    named = [member.name for member in members(subscription.body.root) if isinstance(member, Reference)]
    return tuple(dict.fromkeys(named)) if named else ()


def circle(subscriptions: Iterable[Subscription]) -> tuple[str, ...]:
    """A cycle of references, beginning and ending with the same name; () if there is none.

    >>> from likewise.language import parse
    >>> circle(parse("a: b then {x= 1}\\nb: a or {x= 2}"))
    ('a', 'b', 'a')
    """
    below = {subscription.name: references(subscription) for subscription in subscriptions}
    visited: set[str] = set()
    for start in below:
        path, pending = list[str](), [iter((start,))]
        while pending:
            name = next(pending[-1], None)
            if name is None:
                pending.pop()
                if path:
                    visited.add(path.pop())
            elif name in path:
                return (*path[path.index(name) :], name)
            elif name in below and name not in visited:
                path.append(name)
                pending.append(iter(below[name]))
    return ()
