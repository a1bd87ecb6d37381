"""Named definitions, the definitions each running pattern was built from, and updates to a list of patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from likewise.language import Composite, Subscription, references

if TYPE_CHECKING:
    from likewise.composite.composer import Composer


_NOTHING: Final[Mapping[str, Subscription]] = MappingProxyType({})


class Catalogue:
    """Definitions by name. A running pattern keeps the definitions it was built from, even if a name changes."""

    def __init__(self) -> None:
        self.named: dict[str, Subscription] = {}
        self._running: dict[str, Subscription] = {}
        self._scopes: dict[str, dict[str, Subscription]] = {}

    def define(self, subscription: Subscription) -> None:
        """Make a subscription available to patterns added later."""
        self.named[subscription.name] = subscription

    def run(self, subscription: Subscription) -> None:
        """Record a pattern as running, built from the current definitions."""
        self.resume(subscription, closure(subscription, self.named))
        self.define(subscription)

    def resume(self, subscription: Subscription, scope: Iterable[Subscription]) -> None:
        """Record a pattern as running, built from these definitions."""
        self._running[subscription.name] = subscription
        definitions = {definition.name: definition for definition in scope}
        if definitions:
            self._scopes[subscription.name] = definitions

    def stop(self, name: str) -> None:
        """Remove a running pattern, and its name if it still stands for that pattern."""
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
        """Known subscriptions that do not run themselves."""
        return [named for named in self.named.values() if self._running.get(named.name) is not named]


def closure(subscription: Subscription, known: Mapping[str, Subscription]) -> list[Subscription]:
    """All known definitions that a subscription refers to, directly or indirectly."""
    definitions: dict[str, Subscription] = {}
    pending = list(references(subscription))
    while pending:
        name = pending.pop()
        if name in known and name not in definitions:
            definitions[name] = known[name]
            pending += references(known[name])
    return list(definitions.values())


class Changes(NamedTuple):
    """The names of added, changed and removed patterns."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        """A summary for people.

        >>> str(Changes(("a",), (), ("b", "c")))
        'added a; removed b, c'
        """
        return "; ".join(f"{change} {', '.join(names)}" for change, names in self._asdict().items() if names)


def reconcile(detector: Composer, subscriptions: Iterable[Subscription]) -> Changes:
    """Make a detector run exactly these patterns; a pattern also changes with the definitions it uses.

    All plans are built before any pattern is touched, so an invalid one changes nothing.
    """
    listed = {subscription.name: subscription for subscription in subscriptions}
    wanted = {name: listed[name] for name in listed if isinstance(listed[name].body, Composite)} or listed
    running = set(detector.patterns)
    added = tuple(name for name in wanted if name not in running)
    changed = tuple(name for name in wanted if name in running and _differs(detector, wanted[name], listed))
    removed = tuple(name for name in detector.patterns if name not in wanted)
    for name in (*added, *changed):
        detector._plan(wanted[name], listed)
    for name in (*removed, *changed):
        detector.remove(name)
    for subscription in listed.values():
        detector.define(subscription)
    for name in (*added, *changed):
        detector.add(name, wanted[name].body, wanted[name].options)
    return Changes(added, changed, removed)


def _differs(detector: Composer, subscription: Subscription, listed: dict[str, Subscription]) -> bool:
    catalogue = detector._catalogue
    scope = {definition.name: definition for definition in closure(subscription, listed)}
    name = subscription.name
    return catalogue.running(name) != subscription or dict(catalogue.scope(name)) != scope
