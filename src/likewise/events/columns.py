"""Events in columns: arrays for whole batches, and an `Event` object only on access.

The distinct tuples of a source are numbered once; an event is then a short row of numbers. The matcher and the
detector use their own numbers: `Renumbering` translates each distinct tuple once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.events.event import Event, Instant, Value
from likewise.events.instants import NO_TIME

Codes: TypeAlias = NDArray[np.int32]
Offsets: TypeAlias = NDArray[np.int64]


def default_id(source: str, number: int) -> str:
    """The default id of an event: the file name without folders, and the line number."""
    return f"{os.path.basename(source) or source}:{number}"


class TupleTable:
    """The distinct tuples and themes of a source by their numbers."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, Value]] = []
        self.themes: list[tuple[str, ...]] = [()]
        self._numbers: dict[tuple[str, type, Value], int] = {}
        self._theme_numbers: dict[tuple[str, ...], int] = {(): 0}

    def number(self, name: str, value: Value) -> int:
        """The number of a tuple; values of different types differ, even if Python considers them equal.

        >>> table = TupleTable()
        >>> table.number("a", 1), table.number("a", True), table.number("a", 1.0), table.number("a", 1)
        (0, 1, 2, 0)
        """
        key = (name, type(value), value)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.append(name, value)
        return number

    def append(self, name: str, value: Value) -> int:
        """Add a tuple under a new number, without checking for duplicates."""
        self.pairs.append((name, value))
        return len(self.pairs) - 1

    def theme_number(self, theme: tuple[str, ...]) -> int:
        """The number of a theme; 0 is the empty theme."""
        number = self._theme_numbers.get(theme)
        if number is None:
            number = self._theme_numbers[theme] = len(self.themes)
            self.themes.append(theme)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class EventColumns(Sequence[Event]):
    """A batch of events; the tuples of event i are `codes[offsets[i]:offsets[i + 1]]` in the table.

    >>> columns = EventColumns.of_events([Event.of({"type": "parking", "slot": [1, 2]}, id="e1")])
    >>> columns.codes.tolist(), columns.offsets.tolist(), columns[0].attributes
    ([0, 1, 2], [0, 3], {'type': ['parking'], 'slot': [1, 2]})
    """

    table: TupleTable
    codes: Codes
    offsets: Offsets
    themes: Codes
    ids: pa.StringArray
    """Null where an event has no id; its default id is then source and line."""
    starts: Offsets
    ends: Offsets
    source: str = "<events>"
    lines: Offsets | None = None

    @classmethod
    def of_events(cls, events: Iterable[Event], table: TupleTable | None = None) -> EventColumns:
        """Columns from event objects."""
        table = TupleTable() if table is None else table
        listed = list(events)
        codes = [table.number(name, value) for event in listed for name, value in event.tuples]
        sizes = [len(event.tuples) for event in listed]
        begins = [NO_TIME if event.start is None else event.start for event in listed]
        closes = [begin if event.end is None else event.end for begin, event in zip(begins, listed, strict=True)]
        return cls(
            table,
            np.array(codes, np.int32),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            np.array([table.theme_number(event.theme) for event in listed], np.int32),
            pa.array([event.id for event in listed], pa.string()),
            np.array(begins, np.int64),
            np.array(closes, np.int64),
        )

    @classmethod
    def joined(cls, first: EventColumns, second: EventColumns, order: NDArray[np.int64]) -> EventColumns:
        """Join two batches over one table into one, with the events in the given order."""
        combined = cls(
            first.table,
            np.concatenate((first.codes, second.codes)),
            np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1])),
            np.concatenate((first.themes, second.themes)),
            pa.concat_arrays([first.ids, second.ids]),
            np.concatenate((first.starts, second.starts)),
            np.concatenate((first.ends, second.ends)),
            first.source,
            None if first.lines is None or second.lines is None else np.concatenate((first.lines, second.lines)),
        )
        return combined.take(order)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> EventColumns: ...

    def __getitem__(self, place: int | slice) -> Event | EventColumns:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            return self._between(first, max(first, last)) if step == 1 else self.take(np.arange(first, last, step))
        at = range(len(self))[place]
        pairs = self.table.pairs
        tuples = tuple([pairs[code] for code in self.codes[self.offsets[at] : self.offsets[at + 1]].tolist()])
        start, end = int(self.starts[at]), int(self.ends[at])
        theme = self.table.themes[self.themes[at]]
        if start == NO_TIME:
            return Event(self.id_of(at), tuples, theme)
        return Event(self.id_of(at), tuples, theme, start, end)

    def __iter__(self) -> Iterator[Event]:
        pairs, themes = self.table.pairs, self.table.themes
        flat = [pairs[code] for code in self.codes.tolist()]
        bounds = self.offsets.tolist()
        rows = zip(self.ids.to_pylist(), self.themes.tolist(), self.starts.tolist(), self.ends.tolist(), strict=True)
        for at, (key, theme, start, end) in enumerate(rows):
            tuples = tuple(flat[bounds[at] : bounds[at + 1]])
            name = self.id_of(at) if key is None else key
            if start == NO_TIME:
                yield Event(name, tuples, themes[theme])
            else:
                yield Event(name, tuples, themes[theme], start, end)

    def id_of(self, at: int) -> str:
        """The id of one event."""
        key = self.ids[at].as_py()
        if key is None:
            return default_id(self.source, at + 1 if self.lines is None else int(self.lines[at]))
        return str(key)

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Which events have a time."""
        return np.not_equal(self.starts, NO_TIME)

    def stamped(self, clock: Callable[[], Instant]) -> EventColumns:
        """The same events; those without a time get the current time."""
        timed = self.timed
        if timed.all():
            return self
        now = clock()
        return replace(self, starts=np.where(timed, self.starts, now), ends=np.where(timed, self.ends, now))

    def take(self, rows: NDArray[np.int64]) -> EventColumns:
        """The events at these rows, in this order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        places = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return EventColumns(
            self.table,
            self.codes[places],
            offsets,
            self.themes[rows],
            self.ids.take(pa.array(rows)),
            self.starts[rows],
            self.ends[rows],
            self.source,
            None if self.lines is None else self.lines[rows],
        )

    def some(self, rows: NDArray[np.int64]) -> dict[int, Event]:
        """The events at these rows as objects, by row."""
        places = np.unique(rows)
        return dict(zip(places.tolist(), self.take(places), strict=True))

    def _between(self, first: int, last: int) -> EventColumns:
        low, high = self.offsets[first], self.offsets[last]
        return EventColumns(
            self.table,
            self.codes[low:high],
            self.offsets[first : last + 1] - low,
            self.themes[first:last],
            self.ids.slice(first, last - first),
            self.starts[first:last],
            self.ends[first:last],
            self.source,
            None if self.lines is None else self.lines[first:last],
        )


class Renumbering:
    """Translates tuple or theme numbers of a table to another numbering; each distinct one is computed once."""

    def __init__(self) -> None:
        self._table: TupleTable | None = None
        self._known = np.full(1024, -1, np.int32)

    def __call__(self, table: TupleTable, codes: Codes, number: Callable[[int], int]) -> Codes:
        """Translate codes; `number` computes the translation of a new code.

        >>> table = TupleTable()
        >>> codes = np.array([table.number("a", "x"), table.number("a", "y"), 0], np.int32)
        >>> Renumbering()(table, codes, lambda code: 7 + code).tolist()
        [7, 8, 7]
        """
        if table is not self._table:
            self._table = table
            self._known.fill(-1)
        if len(codes) and (highest := int(codes.max())) >= len(self._known):
            room = np.full(max(highest + 1, 2 * len(self._known)), -1, np.int32)
            room[: len(self._known)] = self._known
            self._known = room
        translated = self._known[codes]
        unknown = translated < 0
        if unknown.any():
            new = np.unique(codes[unknown])
            self._known[new] = np.fromiter(map(number, new.tolist()), np.int32, count=len(new))
            translated = self._known[codes]
        return translated


_start_of, _end_of = attrgetter("start"), attrgetter("end")


def times_of(events: Sequence[Event]) -> tuple[Offsets, Offsets] | None:
    """Starts and ends of events; None if one of them has no time."""
    if isinstance(events, EventColumns):
        return (events.starts, events.ends) if events.timed.all() else None
    try:
        starts = np.fromiter(map(_start_of, events), np.int64, count=len(events))
        ends = np.fromiter(map(_end_of, events), np.int64, count=len(events))
    except (TypeError, OverflowError):
        return None
    return starts, ends
