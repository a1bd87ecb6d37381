"""How subscriptions refer to each other by name."""

from __future__ import annotations

from collections.abc import Iterable

from likewise.language.members import members
from likewise.language.model import Profile, Reference, Subscription


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
