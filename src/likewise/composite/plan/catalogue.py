"""What is known by name, and what each running pattern was built from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from likewise.language import Subscription, references

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
