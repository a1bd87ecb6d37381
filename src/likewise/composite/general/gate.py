"""The gate: what a part lets through by a choice of duplicates, a threshold and a consumption of its own.

A name stands for what its pattern would detect if it ran from the moment at which the name becomes active, so there
is a gate where it is used. Where no other part waits (in `or`, `xor`, `not` and counts) a gate chooses among
duplicates: instance selection is "for each event" [003 sec 2.2].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite.general.choice import Chooser
from likewise.composite.general.instance import Instance
from likewise.composite.general.process import ConsumptionScope, Process, outside
from likewise.composite.plan.nodes import GateNode

if TYPE_CHECKING:
    from likewise.composite.state import Dump, Load


class GateProcess(Process):
    """One activation of a part with rules of its own."""

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
        # As for a whole pattern: what one step finds is chosen before any of it is consumed.
        for instance in [instance for _, instance in inbox if self._chosen(instance)]:
            if self._passes(instance):
                shown = outside(instance) if self.node.named else instance
                shown.probability *= self.factor(self.node.conditions, shown.roles)
                self.emit(shown)
        if len(self.chooser) > self.run.limits.instances:
            self.run.dropped += self.chooser.trim(self.run.limits.instances)

    def _chosen(self, instance: Instance) -> bool:
        hold = None if self.node.hold is None else instance.time + self.node.hold
        return self.chooser.admit(instance, hold)

    def _passes(self, instance: Instance) -> bool:
        """The threshold, then consumption."""
        if instance.probability < self.node.threshold:
            return False
        if self.node.unique:
            if instance.taken:
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
