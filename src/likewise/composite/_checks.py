"""What patterns cannot mean: refused when built, not when run."""

from __future__ import annotations

from collections.abc import Sequence as List

from likewise.composite import _plan as plan
from likewise.composite.relations import NEEDS_DISTANCE, NEEDS_LENGTH_LEFT, NEEDS_LENGTH_RIGHT
from likewise.errors import BuildError
from likewise.language import Duplicates, Duration, Keep, Relation, TimeEvent

_DAY = 86_400_000_000


def check_length(length: Duration | None, what: str, *, least: int = 1) -> None:
    """A window must have a sensible length."""
    if length is not None and length < least:
        raise BuildError(f"the time of {what} must be at least {least} µs, not {length}", hint="give a longer time")


def check_keep(keep: Duplicates) -> None:
    """The n-th duplicate needs its n."""
    if keep.keep is Keep.NTH and (keep.nth is None or keep.nth < 1):
        raise BuildError(f"there is no duplicate number {keep.nth}", hint="duplicates count from 1")


def check_time(event: TimeEvent) -> None:
    """A time event is at a time of day or every so often."""
    if (event.at is None) == (event.every is None):
        raise BuildError("a time event is either `at` a time or `every` so often", hint="give one of them")
    if event.every is not None:
        check_length(event.every, "`every`")
    elif event.at is not None and not 0 <= event.at < _DAY:
        raise BuildError("there is no such time of day", hint="from 00:00 to 23:59:59")


def check_sequence(steps: List[plan.Step], guards: List[plan.Absence], within: Duration | None) -> bool:
    """Refuse sequences that cannot end; True if one is known only when its window is over."""
    if not steps or isinstance(steps[0], plan.Absence):
        raise BuildError("a sequence needs a part that happens", hint="use `not … for` a time on its own")
    for guard in guards:
        if within is None and guard.after in (-1, len(steps) - 1):
            raise BuildError("a negation at the edge of a sequence needs a window", hint="add `within` to the sequence")
    final = steps[-1]
    last = isinstance(final, plan.Part) and final.keep.keep is Keep.LAST
    if last and within is None:
        raise BuildError("the last of the final part is never known", hint="add `within` to the sequence")
    check_length(within, "a sequence", least=0)
    _check_room(steps, within)
    return last or any(guard.after == len(steps) - 1 for guard in guards)


def _check_room(steps: List[plan.Step], within: Duration | None) -> None:
    """Times must rise strictly, and silences take their time."""
    if within is None:
        return
    needed = sum(step.within or 0 for step in steps if isinstance(step, plan.Absence))
    needed += sum(isinstance(step, plan.Part) for step in steps[1:])
    if needed > within:
        raise BuildError(
            f"the steps need at least {needed} µs and the sequence allows {within}", hint="make `within` longer"
        )


def check_relation(relation: Relation, parts: tuple[plan.Part, plan.Part]) -> None:
    """Refuse relations that no two instances can have."""
    check_length(relation.within, "a relation", least=0)
    name = relation.relation.value
    if relation.within == 0 and relation.relation in NEEDS_DISTANCE:
        raise BuildError(f"nothing can stand in `{name}` within no time", hint="the two ends always differ")
    for part, needs in zip(parts, (NEEDS_LENGTH_LEFT, NEEDS_LENGTH_RIGHT), strict=True):
        if relation.relation in needs and isinstance(part.node, plan.TimeNode):
            raise BuildError(f"a moment cannot stand in `{name}` here", hint="that side needs a duration")
