"""A running detector and a new list of patterns: what is new starts, what changed begins anew, what is gone stops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from likewise.composite.plan.catalogue import closure
from likewise.language import Composite, Subscription

if TYPE_CHECKING:
    from likewise.composite.composer import Composer


class Changes(NamedTuple):
    """The names of the patterns that were not left as they were."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        """Which ones, in words.

        >>> str(Changes(("a",), (), ("b", "c")))
        'added a; removed b, c'
        """
        return "; ".join(f"{what} {', '.join(names)}" for what, names in self._asdict().items() if names)


def reconcile(detector: Composer, subscriptions: Iterable[Subscription]) -> Changes:
    """Let a detector run these and no others; a pattern also changes with what it refers to.

    All are built before any is touched, so one that cannot work changes nothing.
    """
    listed = {one.name: one for one in subscriptions}
    wanted = {name: one for name, one in listed.items() if isinstance(one.body, Composite)} or listed
    running = set(detector.patterns)
    added = tuple(name for name in wanted if name not in running)
    changed = tuple(name for name in wanted if name in running and _differs(detector, wanted[name], listed))
    removed = tuple(name for name in detector.patterns if name not in wanted)
    for name in (*added, *changed):
        detector._plan(wanted[name], listed)
    for name in (*removed, *changed):
        detector.remove(name)
    for one in listed.values():
        detector.define(one)
    for name in (*added, *changed):
        detector.add(name, wanted[name].body, wanted[name].options)
    return Changes(added, changed, removed)


def _differs(detector: Composer, one: Subscription, listed: dict[str, Subscription]) -> bool:
    catalogue = detector._catalogue
    scope = {other.name: other for other in closure(one, listed)}
    return catalogue.running(one.name) != one or dict(catalogue.scope(one.name)) != scope
