"""The events of a command: a file, or a pipe or growing file that is answered as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

import typer

from likewise.cli.ending import Ending
from likewise.cli.reading.input import Rejects, called, event_batches
from likewise.cli.reading.live import arriving, is_live, live_source
from likewise.cli.reading.records import Records
from likewise.errors import BuildError, InputError

if TYPE_CHECKING:
    from likewise.events import Event

INTERRUPTED = 130
BATCH = 1000
"""At most so many events of a live feed at once."""


class Feed:
    """Reads events in batches; what goes on without end is ended by Ctrl-C, and all that was found is kept."""

    def __init__(self, source: str, rejects: Rejects, *, follow: bool = False, records: Records | None = None) -> None:
        if follow and source == "-":
            raise BuildError("--follow takes a file", hint="a pipe is answered as it comes without it")
        self.source = source
        self.live = follow or is_live(source)
        self._rejects = rejects
        self._follow = follow
        self._records = records or Records()
        self._ending = Ending(say=b"")
        self._peeked: Iterator[Sequence[Event]] | None = None

    def batches(self, *, size: int | None = None) -> Iterator[Sequence[Event]]:
        """The good events; the bad ones are rejected."""
        if self._peeked is not None:
            yield from self._peeked
        elif not self.live:
            yield from event_batches(self.source, self._rejects, records=self._records, size=size)
        else:
            with self._ending.heeded():
                yield from arriving(self._events(), size=size or BATCH, stopped=self._stopped)

    def first(self, count: int, *, size: int | None = None) -> list[Event]:
        """The first events of a file, which come again in the batches; of what is live, none."""
        if self.live:
            return []
        batches = self.batches(size=size)
        kept: list[Sequence[Event]] = []
        while sum(map(len, kept)) < count and (batch := next(batches, None)) is not None:
            kept.append(batch)
        self._peeked = chain(kept, batches)
        return [event for batch in kept for event in batch][:count]

    def conclude(self) -> None:
        """The exit code of a command that was stopped, once all is written."""
        if self._ending.wanted:
            raise typer.Exit(INTERRUPTED)

    def _stopped(self) -> bool:
        return self._ending.wanted

    def _events(self) -> Iterator[Event]:
        from likewise.events import read_events

        stream: Any = live_source(self.source, follow=self._follow, stopped=self._stopped)
        read = 0
        # Ids of a stream without end are not remembered.
        with nullcontext() if self.source == "-" else stream:
            for event in read_events(
                stream,
                name=called(self.source),
                on_error=self._rejects,
                unique_ids=False,
                allow_empty=True,
                **self._records.options(),
            ):
                read += 1
                yield event
        if not (read or self._rejects.count or self._stopped()):
            raise InputError("no events in it", source=called(self.source), hint="it ended before the first event")
