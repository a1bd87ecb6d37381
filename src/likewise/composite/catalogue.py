"""What is known by name, what each running pattern was built from, and how a new list of patterns takes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from likewise.language import Composite, Subscription, references

if TYPE_CHECKING:
    from likewise.composite.composer import Composer


_NOTHING: Final[Mapping[str, Subscription]] = MappingProxyType({})


class Catalogue:
    """Names may be defined anew or go away; a running pattern keeps the definitions that it was built from."""

    def __init__(self) -> None:
        self.named: dict[str, Subscription] = {}
        self._running: dict[str, Subscription] = {}
        self._scopes: dict[str, dict[str, Subscription]] = {}

    def define(self, subscription: Subscription) -> None:
        """Let patterns to come refer to it."""
        self.named[subscription.name] = subscription

    def run(self, subscription: Subscription) -> None:
        """It runs now, built from what is known at this moment."""
        self.resume(subscription, closure(subscription, self.named))
        self.define(subscription)

    def resume(self, subscription: Subscription, scope: Iterable[Subscription]) -> None:
        """It runs, built from these definitions."""
        self._running[subscription.name] = subscription
        kept = {one.name: one for one in scope}
        if kept:
            self._scopes[subscription.name] = kept

    def stop(self, name: str) -> None:
        """It runs no longer, and is no longer known."""
        running = self._running.pop(name)
        self._scopes.pop(name, None)
        if self.named.get(name) is running:
            del self.named[name]

    def running(self, name: str) -> Subscription:
        """A running pattern, as it was added."""
        return self._running[name]

    def scope(self, name: str) -> Mapping[str, Subscription]:
        """The definitions that a running pattern was built from."""
        return self._scopes.get(name, _NOTHING)

    @property
    def others(self) -> list[Subscription]:
        """What is known beside the running patterns."""
        return [one for one in self.named.values() if self._running.get(one.name) is not one]


def closure(subscription: Subscription, known: Mapping[str, Subscription]) -> list[Subscription]:
    """All that a subscription rests on, as far as it is known."""
    found: dict[str, Subscription] = {}
    pending = list(references(subscription))
    while pending:
        name = pending.pop()
        if name in known and name not in found:
            found[name] = known[name]
            pending += references(known[name])
    return list(found.values())


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
