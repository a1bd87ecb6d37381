"""Prefixes: sequences of which the first steps are filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite._absence import Blockers
from likewise.composite._choice import Chooser
from likewise.composite._instance import Filled, Instance, roles_of
from likewise.composite._process import TERMINATORS, Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._sequence import SequenceProcess


class Prefix:
    """The first steps of a sequence, filled, waiting for the next."""

    __slots__ = (
        "absent",
        "alive",
        "child",
        "chooser",
        "deadline",
        "home",
        "keys",
        "level",
        "number",
        "owner",
        "parts",
        "plain",
        "probability",
        "roles",
        "spent",
        "until",
    )

    def __init__(
        self, owner: SequenceProcess, *, parts: tuple[Instance, ...], probability: float, deadline: Instant | None
    ) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.level = len(parts) - 1
        self.parts = parts
        self.roles: tuple[Filled, ...] = parts[0].roles if len(parts) == 1 else roles_of(parts)
        self.probability = probability
        self.deadline = deadline
        self.until: Instant | None = None
        self.alive = True
        self.spent = False
        self.child: Process | None = None
        self.chooser: Chooser | None = None
        self.home: Chooser | None = None
        self.keys: tuple[Any, ...] = ()
        self.plain = False
        self.absent: dict[int, Blockers] = {}

    @property
    def standing(self) -> tuple[int, int]:
        """How many steps it has, and its age."""
        return self.level, self.number

    def replace(self, time: Instant) -> None:
        """A later duplicate came: a next step of the same time may still join."""
        if self.alive and self.until is None:
            self.until = time
            self.owner.run.wake(time, TERMINATORS, self.owner, self)

    def consume(self) -> None:
        """One of the events was taken by a detection."""
        self.owner.drop(self, "consumed by a detection")
