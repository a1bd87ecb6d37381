"""The events that a command reads: from a file, or live from a pipe or a growing file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import typer

from likewise.cli.ending import Ending
from likewise.cli.reading.input import Rejects, display_name, event_batches
from likewise.cli.reading.live import arriving, is_live, live_source
from likewise.cli.reading.records import Records
from likewise.errors import BuildError, InputError

if TYPE_CHECKING:
    from likewise.events import Event

INTERRUPTED = 130
BATCH = 1000
"""Largest batch of a live feed."""


class Feed:
    """Reads events in batches; Ctrl-C ends a live feed in order."""

    def __init__(self, source: str, rejects: Rejects, *, follow: bool = False, records: Records | None = None) -> None:
        if follow and source == "-":
            raise BuildError("--follow takes a file", hint="leave it out: a pipe is read as events arrive")
        self.source = source
        self.live = follow or is_live(source)
        self._rejects = rejects
        self._follow = follow
        self._records = records or Records()
        self._ending = Ending(message=b"")
        self._peeked: Iterator[Sequence[Event]] | None = None

    def batches(self, *, size: int | None = None) -> Iterator[Sequence[Event]]:
        """Batches of valid events; bad records go to the rejects."""
        if self._peeked is not None:
            yield from self._peeked
        elif not self.live:
            yield from event_batches(self.source, self._rejects, records=self._records, size=size)
        else:
            with self._ending.handling_signals():
                yield from arriving(self._events(), size=size or BATCH, stopped=self._stopped)

    def first(self, count: int, *, size: int | None = None) -> list[Event]:
        """The first events of a file, which `batches` still returns; none of a live feed."""
        if self.live:
            return []
        batches = self.batches(size=size)
        kept: list[Sequence[Event]] = []
        while sum(map(len, kept)) < count and (batch := next(batches, None)) is not None:
            kept.append(batch)
        self._peeked = chain(kept, batches)
        return list(islice(chain.from_iterable(kept), count))

    def conclude(self) -> None:
        """Exit with code 130 if Ctrl-C ended the feed."""
        if self._ending.requested:
            raise typer.Exit(INTERRUPTED)

    def _stopped(self) -> bool:
        return self._ending.requested

    def _events(self) -> Iterator[Event]:
        from likewise.events import read_events

        stream: Any = live_source(self.source, follow=self._follow, stopped=self._stopped)
        read = 0
        # An endless stream is not checked for duplicate ids: that would need ever more memory.
        with nullcontext() if self.source == "-" else stream:
            for event in read_events(
                stream,
                name=display_name(self.source),
                on_error=self._rejects,
                unique_ids=False,
                allow_empty=True,
                **self._records.options(),
            ):
                read += 1
                yield event
        if not (read or self._rejects.count or self._stopped()):
            raise InputError(
                "no events in it", source=display_name(self.source), hint="the input ended before the first event"
            )
