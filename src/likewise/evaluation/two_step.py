"""The two-step method for trees of 003 [sec 3, 4], as reference and baseline.

First every event is matched with all profiles, even those that cannot contribute. Then the matches go to the composite
pool, where an operator keeps all matches of its parts and checks the complete list. The results are those of the single
step, with more work.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final

from likewise.composite import Detector
from likewise.composite.general import (
    PROCESSES,
    FilledRole,
    Instance,
    LeafProcess,
    Prefix,
    Process,
    Run,
    SequenceProcess,
)
from likewise.composite.plan import LeafNode, Part

_KEPT: Final = 1000


class TreeLeaf(LeafProcess):
    """A profile that stays in the pool while its pattern runs."""

    __slots__ = ()

    def unlisten(self) -> None:
        pass

    def close(self) -> None:
        super().unlisten()
        super().close()


class TreeSequence(SequenceProcess):
    """A parent node: all its leaves are active from the start, and each match is compared with all others."""

    __slots__ = ("seen",)

    def begin(self, *, fresh: bool) -> None:
        super().begin(fresh=fresh)
        self.seen: dict[int, deque[Instance]] = {}
        for k, step in enumerate(self.node.steps):
            if k and isinstance(step, Part) and isinstance(step.node, LeafNode):
                self.seen[k] = deque(maxlen=_KEPT)
                self._leaf(k, step.node)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for (k, _), instance in inbox:
            if k in self.seen:
                self._store(k, instance)
        super().handle(inbox)

    def _store(self, k: int, instance: Instance) -> None:
        """Keep a match of a part until the window has passed."""
        seen, within = self.seen[k], self.node.within
        seen.append(instance)
        while within is not None and seen[0].time < instance.time - within:
            seen.popleft()

    def awaits(self, slot: Any, roles: tuple[FilledRole, ...]) -> bool:  # noqa: ARG002 - not needed by this kind
        return True

    def _waiting(self, k: int, instance: Instance) -> tuple[list[Prefix], bool]:  # noqa: ARG002 - not needed by this kind
        return list(self.held[k - 1]), False

    def _activate(self, prefix: Prefix, *, fresh: bool = True) -> None:
        super()._activate(prefix, fresh=fresh)
        # A tree compares a new match on the left with all on the right; only later ones can follow it.
        for instance in self.seen.get(prefix.level + 1, ()):
            if instance.time > prefix.parts[-1].time:
                self._offer(prefix.level + 1, instance, prefix)


class TreeRun(Run):
    """A pattern whose parts stay in the pools."""

    processes: ClassVar[dict[str, type[Process]]] = PROCESSES | {"LeafNode": TreeLeaf, "SequenceNode": TreeSequence}


class TwoStepDetector(Detector):
    """The same detections as `Detector`, found in two steps."""

    _kind: ClassVar[type[Run]] = TreeRun

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"compiled": False} | options)
