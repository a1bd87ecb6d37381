"""Prefixes: sequences of which the first steps are filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite.general.absence import Blockers
from likewise.composite.general.choice import Chooser
from likewise.composite.general.instance import Filled, Instance, roles_of
from likewise.composite.general.process import TERMINATORS, Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.general.sequence import SequenceProcess


class Prefix:
    """The first steps of a sequence, filled, waiting for the next."""

    __slots__ = (
        "absent",
        "alive",
        "broken",
        "child",
        "chooser",
        "chosen",
        "deadline",
        "guarded",
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
        # Why it goes when the moment is over, if something broke it.
        self.broken: str | None = None
        # Of which part it takes the place among duplicates.
        self.chosen = parts[-1]
        self.child: Process | None = None
        self.chooser: Chooser | None = None
        self.home: Chooser | None = None
        self.keys: tuple[Any, ...] = ()
        self.plain = False
        # Where, and by which keys, it is found when something breaks it.
        self.guarded: list[tuple[dict[Any, dict[Prefix, None]], tuple[Any, ...]]] = []
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

    def breaks(self, time: Instant, why: str) -> None:
        """What must not happen did: a next step of the same time may still join."""
        if self.alive and self.until is None:
            self.broken = why
            self.replace(time)

    def give_up(self) -> None:
        """Make room for another."""
        self.owner.drop(self, "the limit was reached")

    def consume(self) -> None:
        """One of the events was taken by a detection."""
        self.owner.drop(self, "consumed by a detection")
