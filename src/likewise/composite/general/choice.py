"""Event instance selection: which duplicates wait for the rest, or pass [003 sec 2.2, table 2].

A gate is a part with its own choice of duplicates, threshold and consumption. A name stands for what its pattern would
detect if it ran from the moment the name becomes active, so each use of a name has a gate. Where no other part waits
(in `or`, `xor`, `not`, counts) a gate chooses among duplicates: instance selection is "for each event" [003 sec 2.2].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from likewise.composite.general.process import ConsumptionScope, Process, outside
from likewise.composite.instance import Instance
from likewise.composite.plan.conditions import key_of
from likewise.composite.plan.nodes import GateNode, Part
from likewise.events import Instant
from likewise.language import Keep

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class Replaceable(Protocol):
    """An incomplete instance that a later duplicate may replace."""

    def replace(self, time: Instant) -> None:
        """React to a later duplicate: stop waiting after `time`."""
        ...


class _Entry:
    __slots__ = ("count", "held", "hold", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.held: Instance | None = None
        self.hold: Instant | None = None
        self.waiting: Replaceable | None = None


def chooser_for(part: Part) -> Chooser | None:
    """A chooser, or None if all duplicates are kept."""
    return None if part.keep.keep is Keep.ALL else Chooser(part)


class Chooser:
    """The duplicates of one part in one context, by the values that distinguish them."""

    __slots__ = ("_entries", "_part", "takes_all")

    def __init__(self, part: Part) -> None:
        self._part = part
        self._entries: dict[Any, _Entry] = {}
        # Whether it admits every instance.
        self.takes_all = part.keep.keep is Keep.ALL or part.keep.keep is Keep.LAST

    def admit(self, instance: Instance, hold: Instant | None) -> bool:
        """Whether to keep this instance; if so, it is held until `hold`."""
        if self.takes_all:
            return True
        keep, key = self._part.keep, self._key(instance)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if entry.held is not None:
            over = entry.hold is not None and instance.time > entry.hold
            if not over and (self._part.node.free or not entry.held.consumed):
                return False
            entry.held, entry.count = None, 0
        entry.count += 1
        if entry.count < (keep.nth or 1):
            return False
        entry.held, entry.hold = instance, hold
        return True

    def waits(self, instance: Instance, waiting: Replaceable) -> None:
        """Register the waiting item of an instance; with `last` it replaces the one before."""
        if self._part.keep.keep is not Keep.LAST:
            return
        entry = self._entries.setdefault(self._key(instance), _Entry())
        if entry.waiting is not None:
            entry.waiting.replace(instance.time)
        entry.waiting = waiting

    def block(self, key: Any, instance: Instance, hold: Instant | None) -> None:
        """Mark an instance with this key as held."""
        entry = self._entries[key] = _Entry()
        entry.count, entry.held, entry.hold = 1, instance, hold

    def release(self, instance: Instance, waiting: object) -> None:
        """Forget the entry of an instance that no longer waits."""
        if self._part.keep.keep is Keep.ALL:
            return
        key = self._key(instance)
        entry = self._entries.get(key)
        if entry is not None and (entry.held is instance or entry.waiting is waiting):
            del self._entries[key]

    def _key(self, instance: Instance) -> Any:
        return key_of(instance.roles, self._part.key) if self._part.key else ()

    def __len__(self) -> int:
        return len(self._entries)

    def trim(self, limit: int) -> int:
        """Forget the oldest entries beyond a limit; returns their number."""
        over = max(0, len(self._entries) - limit)
        for key in list(self._entries)[:over]:
            del self._entries[key]
        return over

    def dump(self, dump: Dump) -> Any:
        """Counts and held instances; waiting items are dumped by their owner, in the same order."""
        return [
            [key, entry.count, dump.instance(entry.held), entry.hold, dump.waiting(entry.waiting)]
            for key, entry in self._entries.items()
        ]

    def load(self, state: Any, load: Load) -> None:
        """Load a dumped state."""
        for key, count, held, hold, waiting in state:
            entry = self._entries[load.key(key)] = _Entry()
            entry.count, entry.held, entry.hold = count, load.instance(held), hold
            entry.waiting = load.waiting(waiting)


class GateProcess(Process):
    """One activation of a part with its own rules."""

    __slots__ = ("child", "chooser", "inner")

    node: GateNode

    def begin(self, *, fresh: bool) -> None:
        self.chooser = Chooser(self.node.part)
        self.inner = self.consumption
        if self.node.named:
            self.inner = ConsumptionScope(unique=self.node.unique, outer=self.consumption)
        self.child = self.run.spawn(
            self.node.part.node,
            parent=self,
            slot=0,
            after=self.after,
            origin=self.origin,
            consumption=self.inner,
            fresh=fresh,
        )

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        # Choose among the instances of one step before any is consumed, as for a whole pattern.
        for instance in [instance for _, instance in inbox if self._chosen(instance)]:
            if self._passes(instance):
                visible = outside(instance) if self.node.named else instance
                visible.probability *= self.factor(self.node.conditions, visible.roles)
                self.emit(visible)
        if len(self.chooser) > self.run.limits.instances:
            self.run.dropped += self.chooser.trim(self.run.limits.instances)

    def _chosen(self, instance: Instance) -> bool:
        hold = None if self.node.hold is None else instance.time + self.node.hold
        return self.chooser.admit(instance, hold)

    def _passes(self, instance: Instance) -> bool:
        """Check the threshold, then consumption."""
        if instance.probability < self.node.threshold:
            return False
        if self.node.unique:
            if instance.consumed:
                return False
            self.inner.consume(instance)
        return True

    def close(self) -> None:
        super().close()
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        return [self.child.dump(dump), self.chooser.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        child, chooser = state
        self.child.load(child, load)
        self.chooser.load(chooser, load)
