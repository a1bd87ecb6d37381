"""Reads JSON lines into columns: a compiled loop for usual lines, the slower reader for the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.events.columns import EventColumns, TupleTable
from likewise.events.event import Event, Value
from likewise.events.formats.byte_table import ByteTable
from likewise.events.formats.json_kernel import GOOD, LOCAL_END, LOCAL_START, ODD, LineArrays, scan_lines
from likewise.events.formats.jsonl import decode_batch, decode_one, parse_json
from likewise.events.forms import RecordForm
from likewise.events.instants import NO_TIME, from_local
from likewise.events.records import Flaw, RecordIntake
from likewise.events.values import parse_text

CAPACITY: Final = 200_000
"""The most distinct members; then the table starts anew, so that an endless stream cannot fill the memory."""

_Scalar = str | bool | int | float
_decode_members = msgspec.json.Decoder(list[dict[str, _Scalar]]).decode
_UNUSUAL = (msgspec.MsgspecError, ValueError, RecursionError)
_BAD: Final = -1
_LONG: Final = 65_536
_HUGE: Final = 2**63
_WORD: Final = 2**64 - 1


class _Members:
    """The distinct members of objects, and the tuples they stand for."""

    def __init__(self, form: RecordForm) -> None:
        self.bytes = ByteTable()
        self.themes = ByteTable()
        self.table = TupleTable()
        self._form = form
        self.first = np.zeros(1024, np.int32)
        self.count = np.zeros(1024, np.int32)
        """The number of tuples of each member; -1 if the member is invalid."""
        self.theme_codes = np.array([self.table.theme_number(form.tags)], np.int32)
        self.plain = True
        """Whether every member has exactly one tuple."""
        self._known = self._known_themes = 0
        self.constants = [self.table.append(name, value) for name, value in form.constants]

    def learn(self) -> None:
        """Decode the new members and themes of the last block."""
        if self._known < len(self.bytes):
            self._learn_members(self.bytes.texts(self._known))
        for raw in self.themes.texts(self._known_themes):
            self.theme_codes = np.append(self.theme_codes, np.int32(self._theme(raw)))
        self._known, self._known_themes = len(self.bytes), len(self.themes)

    def _learn_members(self, raws: list[bytes]) -> None:
        room = len(self.first)
        if self._known + len(raws) > room:
            more = np.zeros(max(self._known + len(raws), 2 * room) - room, np.int32)
            self.first, self.count = np.append(self.first, more), np.append(self.count, more)
        place = self._known
        for raw, member in zip(raws, self._decoded(raws), strict=True):
            self.first[place] = len(self.table.pairs)
            pairs = self._pairs(raw, member)
            if pairs is not None:
                self.table.pairs.extend(pairs)
            self.count[place] = _BAD if pairs is None else len(pairs)
            self.plain = self.plain and pairs is not None and len(pairs) == 1
            place += 1

    def _decoded(self, raws: list[bytes]) -> list[dict[str, _Scalar]] | list[None]:
        """Decode all members at once if they are scalars, as usual."""
        try:
            decoded = _decode_members(b"[{" + b"},{".join(raws) + b"}]")
        except _UNUSUAL:
            return [None] * len(raws)
        return decoded if len(decoded) == len(raws) else [None] * len(raws)

    def _pairs(self, raw: bytes, member: dict[str, _Scalar] | None) -> list[tuple[str, Value]] | None:
        if member is not None and not self._form.flat and len(raw) < _LONG:
            ((name, value),) = member.items()
            if type(value) is not int or -_HUGE <= value < _HUGE:
                return [(name, parse_text(value) if type(value) is str else value)]
        try:
            ((name, value),) = _parse_object(b"{" + raw + b"}").items()
            return list(self._form.tuples(name, value))
        except InputError:
            return None

    def _theme(self, raw: bytes) -> int:
        try:
            return self.table.theme_number(self._form.theme(parse_json(raw)))
        except InputError:
            return _BAD


def _parse_object(data: bytes) -> dict[str, Any]:
    value = parse_json(data)
    if not isinstance(value, dict) or len(value) != 1:
        raise InputError("not a single member")
    return value


class JsonColumns:
    """Reads blocks of JSON lines of one source into columns.

    >>> from likewise.events.forms import EventForm
    >>> reader = JsonColumns(EventForm(), RecordIntake("x.jsonl"))
    >>> [columns] = reader.read(b'{"attributes": {"slot": [1, 2]}}\\n{"id": "b", "attributes": {"slot": 1}}\\n', 1)
    >>> [(event.id, event.attributes) for event in columns]
    [('x.jsonl:1', {'slot': [1, 2]}), ('b', {'slot': [1]})]
    """

    def __init__(self, form: RecordForm, intake: RecordIntake) -> None:
        self._form = form
        self._intake = intake
        self._start_anew()

    def _start_anew(self) -> None:
        """Reset all tables, for the current fields of the form."""
        fields = self._form.fields
        assert fields is not None
        names = [name.encode() for names in fields for name in names]
        self._fields = fields
        self._names = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._bounds = np.cumsum([0, *map(len, names)]).astype(np.int64)
        self._roles = np.repeat(np.arange(len(fields)), [len(names) for names in fields])
        self._members = _Members(self._form)
        self._name_hashes = np.zeros(0, np.uint64)

    def read(self, block: bytes, first: int) -> Iterator[EventColumns]:
        """Yield the events of complete lines; the first has the number `first`."""
        if len(self._members.bytes) > CAPACITY or self._fields != self._form.fields:
            self._start_anew()
        columns, flaws = self._scan(block, first)
        while self._grows(columns, block, first) or self._fields != self._form.fields:
            if self._form.fields is None:
                return self._by_hand(block, first)
            self._start_anew()
            columns, flaws = self._scan(block, first)
        return self._intake.admit(columns, flaws, lambda line: _line(block, line - first))

    def _grows(self, columns: EventColumns, block: bytes, first: int) -> bool:
        """Whether a line without a time has a time field that was not known."""
        timeless = np.flatnonzero(columns.starts == NO_TIME) if self._form.growing else np.zeros(0, np.int64)
        if not len(timeless):
            return False
        assert columns.lines is not None
        _, firsts = np.unique(self._shapes(columns)[timeless], return_index=True)
        lines = block.split(b"\n")
        return any(self._form.grows(_value(lines[at - first])) for at in columns.lines[timeless[firsts]].tolist())

    def _shapes(self, columns: EventColumns) -> NDArray[np.uint64]:
        """A hash of the attribute names of each event."""
        new = columns.table.pairs[len(self._name_hashes) :]
        hashes = np.array([hash(name) & _WORD for name, _ in new], np.uint64)
        self._name_hashes = np.append(self._name_hashes, hashes)
        return np.add.reduceat(self._name_hashes[columns.codes], columns.offsets[:-1])

    def _by_hand(self, block: bytes, first: int) -> Iterator[EventColumns]:
        """Read a block whose form the compiled loop no longer supports."""
        lines = block.removesuffix(b"\n").split(b"\n")
        events = list(decode_batch(lines, first, self._intake, self._form))
        yield replace(EventColumns.of_events(events), source=self._intake.source)

    def _scan(self, block: bytes, first: int) -> tuple[EventColumns, list[Flaw]]:
        data = np.frombuffer(block, np.uint8)
        out, codes = LineArrays.of_size(block.count(b"\n") + 1), np.empty(block.count(b":"), np.int32)
        members = self._members
        members.bytes.reserve(len(codes), len(block))
        members.themes.reserve(len(out.state), len(block))
        args = (self._names, self._bounds, self._roles, self._form.flat, members.bytes.arrays, members.themes.arrays)
        count = scan_lines(data, *args, codes, out)
        if not _is_utf8(block):
            # The slower reader finds the invalid line.
            out.state[:count][out.state[:count] == GOOD] = ODD
            out.used[:] = 0
        members.learn()
        good = np.flatnonzero(out.state[:count] == GOOD)
        columns, valid = self._columns(data, out, codes, good)
        if not valid.all():
            out.state[good[~valid]] = ODD
            columns = columns.take(np.flatnonzero(valid))
        columns = replace(columns, lines=good[valid] + first)
        odd = np.flatnonzero(out.state[:count] == ODD)
        return self._with_odd(columns, block, odd, out, first) if len(odd) else (columns, [])

    def _columns(
        self, data: NDArray[np.uint8], out: LineArrays, codes: NDArray[np.int32], good: NDArray[np.int64]
    ) -> tuple[EventColumns, NDArray[np.bool_]]:
        """The events of the scanned lines, and which of them are valid after decoding."""
        members = self._members
        ends_at = out.used[good]
        offsets = np.concatenate((np.zeros(1, np.int64), ends_at))
        entries = codes[: offsets[-1]]
        valid = np.ones(len(good), np.bool_)
        if members.plain:
            tuples = members.first[entries]
        else:
            tuples, offsets = self._expanded(entries, offsets, valid)
        start, end = self._times(out, good)
        themes = members.theme_codes[out.theme[good]]
        valid &= (themes >= 0) & ((end == NO_TIME) | ((start != NO_TIME) & (end >= start)))
        if members.constants:
            tuples, offsets = _with_constants(tuples, offsets, members.constants)
        ids = _gathered(data, out.id_at[good], out.id_size[good])
        columns = EventColumns(
            members.table,
            tuples,
            offsets,
            themes,
            ids,
            start,
            np.where(end == NO_TIME, start, end),
            self._intake.source,
        )
        return columns, valid

    def _expanded(
        self, entries: NDArray[np.int32], offsets: NDArray[np.int64], valid: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The tuples of entries with several or no tuples each; marks rows with a bad entry or no tuple as invalid."""
        counts = self._members.count[entries]
        sizes = np.maximum(counts, 0)
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        tuples = (np.repeat(self._members.first[entries], sizes) + within).astype(np.int32)
        moved = bounds[offsets].astype(np.int64)
        bad = np.concatenate(([0], np.cumsum(counts < 0)))[offsets]
        valid &= (np.diff(bad) == 0) & (np.diff(moved) > 0)
        return tuples, moved

    def _times(self, out: LineArrays, good: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start, end = out.start[good], out.end[good]
        if self._form.rule.zone is not UTC:
            for moments, bit in ((start, LOCAL_START), (end, LOCAL_END)):
                local = np.flatnonzero(out.local[good] & bit)
                moments[local] = from_local(moments[local], self._form.rule.zone)
        return start, end

    def _with_odd(
        self, columns: EventColumns, block: bytes, odd: NDArray[np.int64], out: LineArrays, first: int
    ) -> tuple[EventColumns, list[Flaw]]:
        """Insert the events of unusual lines at their places."""
        events: list[Event] = []
        lines: list[int] = []
        flaws: list[Flaw] = []
        for at in odd.tolist():
            raw = block[out.begins[at] : out.ends[at]]
            try:
                event = decode_one(raw, first + at, self._intake.source, self._form)
            except InputError as flaw:
                flaws.append(Flaw(first + at, flaw, raw))
                continue
            if event is not None:
                events.append(event)
                lines.append(first + at)
        if not events:
            return columns, flaws
        others = replace(
            EventColumns.of_events(events, self._members.table), source=columns.source, lines=np.array(lines, np.int64)
        )
        assert columns.lines is not None
        order = np.argsort(np.concatenate((columns.lines, lines)), kind="stable")
        return EventColumns.joined(columns, others, order), flaws


def _value(line: bytes) -> object:
    try:
        return parse_json(line)
    except InputError:
        return None


def _line(block: bytes, at: int) -> bytes:
    return block.split(b"\n", at + 1)[at]


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_constants(
    tuples: NDArray[np.int32], offsets: NDArray[np.int64], constants: list[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Append the constant tuples to those of each event."""
    count = len(offsets) - 1
    places = np.repeat(offsets[1:], len(constants))
    return np.insert(tuples, places, constants * count), offsets + np.arange(count + 1) * len(constants)


@njit(cache=True, nogil=True)
def _gather(data: Any, begins: Any, offsets: Any, out: Any) -> None:
    for row in range(begins.size):
        size = offsets[row + 1] - offsets[row]
        for place in range(size):
            out[offsets[row] + place] = data[begins[row] + place]


def _gathered(data: NDArray[np.uint8], begins: NDArray[np.int64], sizes: NDArray[np.int32]) -> pa.StringArray:
    """Copy texts from the data; null where one is empty."""
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    out = np.empty(int(offsets[-1]), np.uint8)
    _gather(data, begins, offsets, out)
    present = sizes > 0
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(out), valid)
