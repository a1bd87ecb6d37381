"""A pattern inside a pattern: what it consumes is its own affair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite._conditions import Relate
from likewise.composite._instance import Filled, Instance, Token
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._joint import Held, JointProcess
    from likewise.composite._plan import Node
    from likewise.composite._prefix import Prefix
    from likewise.composite._process import LeafProcess, Parent, Process
    from likewise.composite._run import Holder, Limits, Run, Stop
    from likewise.composite._sequence import SequenceProcess


class ScopedToken(Token):
    """An event as an inner pattern sees it: taken here, or taken outside."""

    __slots__ = ("_taken", "free", "outer")

    def __init__(self, outer: Token, *, free: bool, taken: bool = False) -> None:
        self.outer = outer
        self.free = free
        super().__init__(outer.event, outer.rank, outer.time, taken=taken)

    @property
    def taken(self) -> bool:
        """Below a negation nobody outside takes anything."""
        return self._taken or (not self.free and self.outer.taken)

    @taken.setter
    def taken(self, taken: bool) -> None:
        self._taken = taken

    @property
    def own(self) -> bool:
        """Whether it was taken here."""
        return self._taken


class Scope:
    """Stands for the run before the processes of an inner pattern; only tokens and consumption are its own."""

    def __init__(self, outer: Run | Scope, *, free: bool) -> None:
        self._outer = outer
        self._free = free
        self._token: ScopedToken | None = None
        self._holders: dict[int, dict[Holder, None]] = {}

    # its own

    def scoped(self, token: Token) -> Token:
        """The event of this step as it is seen here: one token for all roles."""
        outside = self._outer.scoped(token)
        if self._token is None or self._token.outer is not outside:
            self._token = ScopedToken(outside, free=self._free)
        return self._token

    def keep(self, holder: Holder, roles: tuple[Filled, ...], *, free: bool) -> None:
        """Remember who waits with which events, here and for those outside."""
        if not free:
            for filled in roles:
                self._holders.setdefault(filled.token.rank, {})[holder] = None
        self._outer.keep(holder, roles, free=free or self._free)

    def unkeep(self, holder: Holder, roles: tuple[Filled, ...]) -> None:
        """It waits no longer."""
        for filled in roles:
            holders = self._holders.get(filled.token.rank)
            if holders is not None:
                holders.pop(holder, None)
                if not holders:
                    del self._holders[filled.token.rank]
        self._outer.unkeep(holder, roles)

    def consume(self, instance: Instance) -> None:
        """Its events take part in nothing else here."""
        taken = [filled.token for filled in instance.roles if filled.token.rank >= 0]
        for token in taken:
            token.taken = True
        for token in taken:
            for holder in list(self._holders.get(token.rank, ())):
                holder.consume()

    # the run's

    @property
    def now(self) -> Instant:
        """The moment of this step."""
        return self._outer.now

    @property
    def phase(self) -> int:
        """Events, timers or terminators."""
        return self._outer.phase

    @property
    def clock(self) -> Instant:
        """All timers up to here have rung."""
        return self._outer.clock

    @property
    def relate(self) -> Relate | None:
        """Relatedness for conditions by meaning."""
        return self._outer.relate

    @property
    def limits(self) -> Limits:
        """Those of the whole pattern."""
        return self._outer.limits

    @property
    def dropped(self) -> int:
        """How many the limits cost."""
        return self._outer.dropped

    @dropped.setter
    def dropped(self, count: int) -> None:
        self._outer.dropped = count

    @property
    def held(self) -> int:
        """How many wait."""
        return self._outer.held

    @held.setter
    def held(self, count: int) -> None:
        self._outer.held = count

    def spawn(
        self,
        node: Node,
        *,
        parent: Parent,
        slot: Any,
        after: Instant,
        origin: Instant,
        fresh: bool = True,
        within: Run | Scope | None = None,
    ) -> Process:
        """A process that belongs here."""
        runner = self if within is None else within
        return self._outer.spawn(node, parent=parent, slot=slot, after=after, origin=origin, fresh=fresh, within=runner)

    def mark(self, process: Process) -> None:
        """A process has something to do in this step."""
        self._outer.mark(process)

    def ticket(self) -> int:
        """A number never used before."""
        return self._outer.ticket()

    def listen(self, leaf: LeafProcess) -> None:
        """Insert a profile into the primitive pool."""
        self._outer.listen(leaf)

    def unlisten(self, leaf: LeafProcess) -> None:
        """Take it out."""
        self._outer.unlisten(leaf)

    def wake(self, time: Instant, phase: int, process: Process, item: Any) -> None:
        """Insert a timer or a terminator into the temporal pool."""
        self._outer.wake(time, phase, process, item)

    def room(self, process: SequenceProcess | JointProcess) -> bool:
        """Whether one more may wait."""
        return self._outer.room(process)

    def let_go(self, count: int) -> None:
        """So many wait no longer."""
        self._outer.let_go(count)

    def stopped(self, node: Node, level: int, why: str, holder: Prefix | Held, instance: Instance | None) -> None:
        """A partial instance ended."""
        self._outer.stopped(node, level, why, holder, instance)

    def blocked(self, node: Node, by: Node, parts: tuple[Instance, ...], time: Instant) -> None:
        """Something happened that must not."""
        self._outer.blocked(node, by, parts, time)

    def note(self, stop: Stop) -> None:
        """Count why an instance ended."""
        self._outer.note(stop)


def outside(instance: Instance) -> Instance:
    """The instance with the tokens of those outside."""
    return Instance(
        instance.node,
        time=instance.time,
        phase=instance.phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=instance.probability,
        roles=tuple(_filled(one) for one in instance.roles),
        parts=tuple(outside(part) for part in instance.parts),
    )


def _filled(filled: Filled) -> Filled:
    token = filled.token
    if not isinstance(token, ScopedToken):
        return filled
    return Filled(filled.role, token.outer, filled.probability, filled.mapped)
