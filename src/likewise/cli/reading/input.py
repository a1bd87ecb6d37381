"""What commands read: subscriptions and events, the good ones in spite of the bad, and the spaces they need."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from likewise.cli.output import counted, errors, output
from likewise.cli.reading.records import Records
from likewise.errors import InputError, LikewiseError
from likewise.files import decoded, read_whole

if TYPE_CHECKING:
    from likewise.events import BadRecord, Event
    from likewise.language import Subscription

_SHOWN = 10
_USAGE = 2


class Rejects:
    """Bad records: kept in a file of dead letters if one is given, else reported; `conclude` makes them count.

    Without such a file they are lost, so the command ends with exit code 2; the good ones are worked on all the same.
    Events that detection refuses for their time are counted by reason and reported once, at the end.
    """

    def __init__(self, dead_letter: Path | None = None) -> None:
        from likewise.events import DeadLetters

        self._path = dead_letter
        self._letters = None if dead_letter is None else DeadLetters(dead_letter)
        self._faults = 0
        self._refusals: Counter[str] = Counter()
        self.count = 0

    @property
    def keeps(self) -> bool:
        """Whether bad records are kept in a file."""
        return self._letters is not None

    def __call__(self, record: BadRecord) -> None:
        """Take one bad record."""
        self.count += 1
        if self._letters is not None:
            self._letters(record)
        else:
            self.fault(record.error())

    def refuse(self, record: BadRecord) -> None:
        """Take one event that is well written and comes at the wrong time."""
        self._refusals[record.reason] += 1
        if self._letters is not None:
            self(record)

    def fault(self, error: LikewiseError) -> None:
        """Tell what is wrong with one of the user's things."""
        self._faults += 1
        if self._faults <= _SHOWN:
            errors.print(f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)

    def conclude(self) -> None:
        """Say how many there were; exit code 2 if any was lost."""
        if self._letters is not None:
            self._letters.__exit__(None, None, None)
            if self.count:
                errors.print(f"{counted(self.count, 'bad record')} in {self._path}", markup=False, soft_wrap=True)
        if self._faults > _SHOWN:
            errors.print(f"… and {self._faults - _SHOWN:,} more", style="red")
        _report_refusals(self._refusals)
        lost = self._letters is None and (self.count or self._refusals)
        if lost:
            errors.print("hint: --dead-letters FILE keeps bad records, with their reasons")
        if self._faults or lost:
            raise typer.Exit(_USAGE)


def _report_refusals(refusals: Counter[str]) -> None:
    """Say how many events detection could not take, by reason, and what would help."""
    if not refusals:
        return
    told = ", ".join(f"{count:,} because {reason}" for reason, count in refusals.most_common())
    were = "was" if refusals.total() == 1 else "were"
    errors.print(f"{counted(refusals.total(), 'event')} {were} not taken: {told}", markup=False, soft_wrap=True)
    if any("late" in reason for reason in refusals):
        errors.print("hint: `--lateness 5m` waits for events that come late", markup=False)
    if any("no time" in reason for reason in refusals):
        errors.print('hint: patterns need events with a time, such as "time": "2026-01-01T10:00:00Z"', markup=False)


def read_subscriptions(source: str, rejects: Rejects) -> list[Subscription]:
    """The good subscriptions of a file (`-` is stdin); each bad one is told with its place."""
    from likewise.language import parse_lenient

    name = called(source)
    text = read_text(source)
    found, faults = parse_lenient(text, name)
    if not found and faults:
        raise faults[0]
    for fault in faults:
        rejects.fault(fault)
    if not found:
        raise InputError("no subscriptions in it", source=name, hint="write one, such as {type = parking}")
    return found


def called(source: str) -> str:
    """How a source is called in messages."""
    return "<stdin>" if source == "-" else source


def read_text(source: str | Path) -> str:
    """The UTF-8 text of a file (`-` is stdin)."""
    if str(source) != "-":
        return read_whole(source)
    return decoded(sys.stdin.buffer.read(), called("-"))


def event_batches(
    source: str, rejects: Rejects, *, records: Records | None = None, size: int | None = None
) -> Iterator[Sequence[Event]]:
    """The good events of a file in batches, with progress on long input; at most `size` in a batch."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} events"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task("events", total=None)
        for batch in _batches(source, rejects, records or Records()):
            for first in range(0, len(batch), size or len(batch)):
                yield batch[first : first + size] if size and size < len(batch) else batch
            progress.advance(task, len(batch))


def shows_progress() -> bool:
    """Whether progress can be seen and shares no line with output."""
    return errors.is_terminal and not output.is_terminal


def _batches(source: str, rejects: Rejects, records: Records) -> Iterator[Sequence[Event]]:
    from likewise.events import read_batches

    read = 0
    try:
        for batch in read_batches(source, on_error=rejects, allow_empty=True, **records.options()):
            read += len(batch)
            if batch:
                yield batch
    except InputError as error:
        # The events before the place where a file breaks off are worked on all the same.
        if not read:
            raise
        rejects.fault(error)
    if not read and not rejects.count:
        raise InputError(
            "no events in it", source=called(source), hint='an event is a line such as {"attributes": {…}}'
        )


def by_spaces(spaces: Iterable[str]) -> str:
    """By which spaces `~` was answered, since other spaces give other scores.

    >>> by_spaces(["/shelf/wordnet", "wikipedia"]), by_spaces([])
    (', by the spaces wordnet and wikipedia', '')
    """
    names = [Path(each).name for each in spaces]
    return f", by the space{'s' if len(names) > 1 else ''} {' and '.join(names)}" if names else ""


def spaces_for(interests: Iterable[Subscription], approach: str | None = None) -> list[str]:
    """The space on the shelf that knows most, if there is any `~` to answer and nobody chose another."""
    from likewise.language import Composite, Member, members
    from likewise.matching import is_approximate
    from likewise.semantics import Manifest, list_spaces

    bodies = [one.body for one in interests]
    profiles = [body for body in bodies if not isinstance(body, Composite)]
    patterns = [body for body in bodies if isinstance(body, Composite)]
    profiles += [leaf.profile for body in patterns for leaf in members(body.root) if isinstance(leaf, Member)]
    by_meaning = any(condition.approximate for body in patterns for condition in body.where)
    if approach == "exact" or not (by_meaning or any(map(is_approximate, profiles))):
        return []
    found = [(manifest.size, str(path)) for path, manifest in list_spaces() if isinstance(manifest, Manifest)]
    return [max(found)[1]] if found else []
