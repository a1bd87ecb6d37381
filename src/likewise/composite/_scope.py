"""ConsumptionScope: what the detections of one pattern took, and who still waits with it.

A pattern that is used by name consumes for itself: what it took is still there for the pattern that uses it, and what
that one takes changes nothing in what the name finds.
"""

from __future__ import annotations

from typing import Protocol

from likewise.composite._instance import Filled, Instance, Token


class Holder(Protocol):
    """Something that waits with events in it."""

    def __hash__(self) -> int: ...

    @property
    def standing(self) -> tuple[int, int]:
        """Which part it waits with, and since when: the order in which holders hear of a consumption."""
        ...

    def consume(self) -> None:
        """A detection took one of them."""
        ...


class InnerToken(Token):
    """An event as a pattern sees it that is used by name; `outer` is the same event for whoever uses the name."""

    __slots__ = ("outer",)

    def __init__(self, outer: Token, *, taken: bool = False) -> None:
        super().__init__(outer.event, outer.rank, outer.time, taken=taken)
        self.outer = outer
        if outer.asked is None:
            outer.asked = {}
        self.asked = outer.asked


class ConsumptionScope:
    """The tokens of one pattern, and who waits with them."""

    def __init__(self, *, unique: bool, outer: ConsumptionScope | None = None) -> None:
        self.unique = unique
        self._outer = outer
        self._last: InnerToken | None = None
        self._holders: dict[int, dict[Holder, None]] = {}

    def token(self, token: Token) -> Token:
        """The event of this step as it is seen here: one token for all roles."""
        if self._outer is None:
            return token
        outside = self._outer.token(token)
        if self._last is None or self._last.outer is not outside:
            self._last = InnerToken(outside)
        return self._last

    def keep(self, holder: Holder, roles: tuple[Filled, ...], *, free: bool) -> None:
        """Remember who waits with which events, so that a detection finds them."""
        if self.unique and not free:
            for filled in roles:
                self._holders.setdefault(filled.token.rank, {})[holder] = None

    def unkeep(self, holder: Holder, roles: tuple[Filled, ...]) -> None:
        """It waits no longer."""
        for filled in roles if self.unique else ():
            holders = self._holders.get(filled.token.rank)
            if holders is not None:
                holders.pop(holder, None)
                if not holders:
                    del self._holders[filled.token.rank]

    def consume(self, instance: Instance) -> None:
        """Its events take part in nothing else here."""
        taken = [filled.token for filled in instance.roles if filled.token.rank >= 0]
        for token in taken:
            token.taken = True
        holders = {holder: None for token in taken for holder in self._holders.get(token.rank, ())}
        for holder in sorted(holders, key=_standing) if len(holders) > 1 else holders:
            holder.consume()


def outside(instance: Instance) -> Instance:
    """The instance with the tokens of whoever uses the name."""
    return Instance(
        instance.node,
        time=instance.time,
        phase=instance.phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=instance.probability,
        roles=tuple([_filled(one) for one in instance.roles]),
        parts=tuple([outside(part) for part in instance.parts]),
    )


def _filled(filled: Filled) -> Filled:
    token = filled.token
    if not isinstance(token, InnerToken):
        return filled
    return Filled(filled.role, token.outer, filled.probability, filled.mapped)


def _standing(holder: Holder) -> tuple[int, int]:
    return holder.standing
