"""Reads subscriptions and events, skipping and reporting bad ones, and finds the spaces they need."""

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
    """Collects bad records: writes them to a file of dead letters if one is given, else reports them.

    Without such a file they are lost, so the command exits with code 2 after processing the valid ones.
    Events that detection refuses because of their time are counted by reason and reported once, at the end.
    """

    def __init__(self, dead_letter: Path | None = None) -> None:
        from likewise.events import DeadLetters

        self._path = dead_letter
        self._letters = None if dead_letter is None else DeadLetters(dead_letter)
        self._faults = 0
        self._refusals: Counter[str] = Counter()
        self.count = 0

    def __call__(self, record: BadRecord) -> None:
        """Add one bad record."""
        self.count += 1
        if self._letters is not None:
            self._letters(record)
        else:
            self.fault(record.error())

    def refuse(self, record: BadRecord) -> None:
        """Add one valid event that detection refuses because of its time."""
        self._refusals[record.reason] += 1
        if self._letters is not None:
            self(record)

    def fault(self, error: LikewiseError) -> None:
        """Print an error and remember it for the exit code; after ten errors only count."""
        self._faults += 1
        if self._faults <= _SHOWN:
            errors.print(f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)

    def conclude(self) -> None:
        """Print how many there were; exit with code 2 if any was lost."""
        if self._letters is not None:
            self._letters.__exit__(None, None, None)
            if self.count:
                errors.print(f"{counted(self.count, 'bad record')} in {self._path}", markup=False, soft_wrap=True)
        if self._faults > _SHOWN:
            errors.print(f"… and {self._faults - _SHOWN:,} more", style="red")
        _report_refusals(self._refusals)
        lost = self._letters is None and (self.count or self._refusals)
        if lost:
            errors.print("hint: --dead-letters FILE keeps bad records with their reasons")
        if self._faults or lost:
            raise typer.Exit(_USAGE)


def _report_refusals(refusals: Counter[str]) -> None:
    """Print how many events detection refused, by reason, with hints."""
    if not refusals:
        return
    reasons = ", ".join(f"{count:,} because {reason}" for reason, count in refusals.most_common())
    errors.print(f"{counted(refusals.total(), 'event')} refused: {reasons}", markup=False, soft_wrap=True)
    if any("late" in reason for reason in refusals):
        errors.print("hint: `--lateness 5m` accepts events that arrive up to 5 minutes late", markup=False)
    if any("no time" in reason for reason in refusals):
        errors.print(
            'hint: patterns need a time: name its field with --time FIELD, or write "time": "2026-01-01T10:00:00Z"',
            markup=False,
            soft_wrap=True,
        )


def read_subscriptions(source: str, rejects: Rejects) -> list[Subscription]:
    """The valid subscriptions of a file (`-` is stdin); bad ones are reported with line and column."""
    from likewise.language import parse_lenient

    name = display_name(source)
    text = read_text(source)
    subscriptions, mistakes = parse_lenient(text, name)
    if not subscriptions and mistakes:
        raise mistakes[0]
    for mistake in mistakes:
        rejects.fault(mistake)
    if not subscriptions:
        raise InputError("no subscriptions in it", source=name, hint="write one, such as {type = parking}")
    return subscriptions


def display_name(source: str) -> str:
    """The name of a source in messages."""
    return "<stdin>" if source == "-" else source


def read_text(source: str | Path) -> str:
    """The UTF-8 text of a file (`-` is stdin)."""
    if str(source) != "-":
        return read_whole(source)
    return decoded(sys.stdin.buffer.read(), display_name("-"))


def event_batches(
    source: str, rejects: Rejects, *, records: Records | None = None, size: int | None = None
) -> Iterator[Sequence[Event]]:
    """The valid events of a file in batches of at most `size`, with a progress bar on a terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} events"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task("events", total=None)
        for batch in _batches(source, rejects, records or Records()):
            for first in range(0, len(batch), size or len(batch)):
                yield batch[first : first + size] if size and size < len(batch) else batch
            progress.advance(task, len(batch))


def shows_progress() -> bool:
    """Whether stderr is a terminal and stdout is not, so that progress does not mix with output."""
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
        # The events before the broken place are still processed.
        if not read:
            raise
        rejects.fault(error)
    if not read and not rejects.count:
        raise InputError(
            "no events in it", source=display_name(source), hint='an event is a line such as {"attributes": {…}}'
        )


def by_spaces(spaces: Iterable[str]) -> str:
    """The end of a summary line that names the spaces used, since scores depend on them.

    >>> by_spaces(["/shelf/wordnet", "wikipedia"]), by_spaces([])
    (', using the spaces wordnet and wikipedia', '')
    """
    names = [Path(space).name for space in spaces]
    return f", using the space{'s' if len(names) > 1 else ''} {' and '.join(names)}" if names else ""


def spaces_for(interests: Iterable[Subscription], approach: str | None = None) -> list[str]:
    """The largest built space if any subscription uses `~`, else none."""
    from likewise.language import Composite, profiles_of
    from likewise.matching import is_approximate
    from likewise.semantics import Manifest, list_spaces

    bodies = [subscription.body for subscription in interests]
    conditions = [condition for body in bodies if isinstance(body, Composite) for condition in body.where]
    by_meaning = any(condition.approximate for condition in conditions)
    profiles = (profile for body in bodies for profile in profiles_of(body))
    if approach == "exact" or not (by_meaning or any(map(is_approximate, profiles))):
        return []
    built = [(manifest.size, str(path)) for path, manifest in list_spaces() if isinstance(manifest, Manifest)]
    return [max(built)[1]] if built else []
