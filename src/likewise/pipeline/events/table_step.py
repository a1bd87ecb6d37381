"""Makes events of the columns of a table, in a worker: attributes, ids, times and themes, and flaws of other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.events import NO_TIME, TimeRule, instants, read_times, to_instant
from likewise.pipeline.events.cells import BLANKS, Attribute, Flags, Numbers, TupleReader, infinite_rows
from likewise.pipeline.events.frame import ARROW_SCHEMA, EVENT_COLUMNS, INFINITE_NUMBER, NO_ATTRIBUTES
from likewise.pipeline.events.transfer import Batches

UNEVEN_ROW: Final = "the row has another number of cells"
_HALF_TIME: Final = "a part of the time is missing"


@dataclass(frozen=True, slots=True)
class MomentColumns:
    """The columns of a time, or of the parts of a joined one."""

    places: tuple[int, ...]
    rule: TimeRule

    def read(self, batch: pa.RecordBatch) -> Moments:
        """The times of a batch."""
        cells = batch.column(self.places[0])
        half: Flags = np.zeros(batch.num_rows, np.bool_)
        if len(self.places) > 1:
            texts = [pc.utf8_trim_whitespace(batch.column(place)) for place in self.places]
            texts = [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
            gone = np.array([text.is_null().to_numpy(zero_copy_only=False) for text in texts])
            cells = pc.binary_join_element_wise(*texts, " ")
            half = np.asarray(gone.any(axis=0) & ~gone.all(axis=0))
        kind = cells.type
        if pa.types.is_timestamp(kind):
            times = np.asarray(pc.fill_null(instants(cells), NO_TIME).to_numpy(zero_copy_only=False), np.int64)
            times = np.where((times != NO_TIME) & ((times < FIRST) | (times > LAST)), ODD, times)
        elif pa.types.is_integer(kind):
            times = _epochs(cells, self.rule.format)
        else:
            numbers = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            cells = pc.if_else(pc.is_nan(cells), None, cells) if pa.types.is_floating(kind) else cells
            texts = _number_texts(cells) if numbers else cells.cast(pa.string())
            times, flaws = read_times(texts, self.rule, field="time")
            times[list(flaws)] = ODD
        wrong = times == ODD
        return Moments(np.where(wrong, NO_TIME, times), wrong | half, half)


def _epochs(cells: pa.Array, unit: str | None) -> Numbers:
    """Integers since 1970 as times, `ODD` if out of range; without a unit, their size tells it.

    >>> _epochs(pa.array([5, 1_700_000_000_000, 1_700_000_000_000_000_123]), None).tolist()
    [5000000, 1700000000000000, 1700000000000000]
    """
    numbers = pc.fill_null(cells.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    sizes = np.where(numbers < 0, -(numbers + 1), numbers)
    units = np.searchsorted(_LARGEST, sizes, side="right") if unit is None else _UNITS.index(unit)
    scale = np.array([1_000_000, 1_000, 1, 1])[units]
    whole, rest = np.divmod(numbers, 1_000)
    # Half a microsecond goes to the even one.
    rounded = whole + ((rest > 500) | ((rest == 500) & (whole % 2 == 1)))
    fits = (numbers >= -(-FIRST // scale)) & (numbers <= LAST // scale)
    times = np.where(units == 3, rounded, np.where(fits, numbers * scale, ODD))
    return np.where(cells.is_valid().to_numpy(zero_copy_only=False), times, NO_TIME)


def _number_texts(cells: pa.Array) -> pa.StringArray:
    """Numbers as texts that are not taken for dates such as 20260101."""
    texts = cells.cast(pa.string())
    dotted = pc.binary_join_element_wise(texts, "", ".")
    return pc.if_else(pc.match_substring_regex(texts, r"^[-+]?\d+\z"), dotted, texts)


_UNITS: Final = ("s", "ms", "us", "ns")
_LARGEST: Final = np.array([10**11, 10**14, 10**17])
"""Without a given unit, an epoch time has the first of these units whose bound is greater."""


class Moments(NamedTuple):
    """Times, and which of them cannot be read, or lack a part."""

    times: Numbers
    wrong: Flags
    half: Flags

    @classmethod
    def of(cls, columns: Sequence[MomentColumns], batch: pa.RecordBatch) -> Moments:
        """Of several columns, the first with a value counts, even if that is not a time."""
        none = np.zeros(batch.num_rows, np.bool_)
        times, wrong, half = np.full(batch.num_rows, NO_TIME, np.int64), none, none
        for moments in (part.read(batch) for part in reversed(columns)):
            there = moments.wrong | (moments.times != NO_TIME)
            times, wrong = np.where(there, moments.times, times), np.where(there, moments.wrong, wrong)
            half = half | moments.half
        return cls(times, wrong, half)


@dataclass(frozen=True, slots=True)
class TableStep:
    """Makes events of the columns of a table: what is at which place in the batches that Spark sends."""

    attributes: tuple[tuple[int, Attribute], ...]
    constants: tuple[tuple[str, str], ...]
    ids: tuple[int, ...]
    digest: int | None
    """The place of the ids of rows whose table has no column for them."""
    times: Mapping[str, tuple[MomentColumns, ...]]
    theme: int | None
    tags: tuple[str, ...]
    broken: int | None
    """The place of the text of a row that could not be read."""
    source: int | None
    record: tuple[tuple[str, int], ...] | None
    """The columns of the record of a dead letter; without them, only events are made."""
    kept: tuple[tuple[str, int], ...]
    names: Mapping[str, str]
    """The columns of each role, as they are named in a dead letter."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return (self.read(batch) for batch in batches if batch.num_rows)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a batch, and flaws in place of the rows that are none."""
        rows, reader = batch.num_rows, TupleReader()
        parts = [reader.read(batch.column(place), attribute) for place, attribute in self.attributes]
        parts += [reader.constant(name, text, rows) for name, text in self.constants]
        attributes, ids = reader.list_of(parts, rows=rows), self._ids(batch)
        start, end = (Moments.of(self.times[role], batch) for role in ("time", "end"))
        reasons = self._reasons(batch, attributes, ids, start, end)
        ends = np.where(end.times == NO_TIME, start.times, end.times)
        moments = (pa.array(times, mask=times == NO_TIME).cast(_MOMENT) for times in (start.times, ends))
        flaws = pa.nulls(rows, ARROW_SCHEMA.field("flaw").type)
        columns = [ids, *moments, self._themes(batch), attributes]
        if reasons:
            # A null index makes a row without values.
            there = np.ones(rows, np.bool_)
            there[list(reasons)] = False
            order = pa.array(np.arange(rows), mask=~there)
            columns = [values.take(order) for values in columns]
            flaws = self._letters(batch, reasons)
        kept = [batch.column(place) for _, place in self.kept]
        names = [*EVENT_COLUMNS, *(name for name, _ in self.kept)]
        return pa.RecordBatch.from_arrays([*columns, flaws, *kept], names=names)

    def _ids(self, batch: pa.RecordBatch) -> pa.Array:
        texts = [batch.column(place).cast(pa.string()) for place in self.ids]
        if self.digest is not None:
            digests = batch.column(self.digest).cast(pa.string())
            return digests if self.source is None else pc.binary_join_element_wise(self._sources(batch), digests, ":")
        # Of several columns, the first with a value counts.
        return texts[0] if len(texts) == 1 else pc.coalesce(*(pc.if_else(pc.equal(t, ""), None, t) for t in texts))

    def _sources(self, batch: pa.RecordBatch) -> pa.Array:
        sources = "<table>" if self.source is None else batch.column(self.source).cast(pa.string())
        return pa.repeat(sources, batch.num_rows) if isinstance(sources, str) else sources

    def _themes(self, batch: pa.RecordBatch) -> pa.ListArray:
        if self.theme is None:
            offsets = np.arange(batch.num_rows + 1, dtype=np.int32) * len(self.tags)
            tags = pa.array(self.tags * batch.num_rows, pa.string())
            return pa.ListArray.from_arrays(pa.array(offsets), tags)
        cells = batch.column(self.theme)
        if not pa.types.is_list(cells.type):
            cells = pc.split_pattern(cells.cast(pa.string()), ",")
        owner = np.repeat(np.arange(len(cells)), pc.fill_null(pc.list_value_length(cells), 0))
        tags = pc.utf8_trim(cells.flatten().cast(pa.string()), characters=BLANKS)
        there = pc.fill_null(pc.not_equal(tags, ""), False)
        counts = np.bincount(owner[there.to_numpy(zero_copy_only=False)], minlength=len(cells))
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), tags.filter(there))

    def _reasons(
        self, batch: pa.RecordBatch, attributes: pa.ListArray, ids: pa.Array, start: Moments, end: Moments
    ) -> dict[int, str]:
        """Why rows are no events; the first reason that applies counts."""
        both = (start.times != NO_TIME) & (end.times != NO_TIME)
        tests: list[tuple[str, Any]] = [(NO_ATTRIBUTES, attributes.value_lengths().to_numpy() == 0)]
        if self.ids:
            tests.append((f"no {self.names['id']}", pc.equal(pc.fill_null(ids, ""), "")))
        tests.append((_HALF_TIME, start.half | end.half))
        tests += [(f"{self.names.get(role)} is not a time", m.wrong) for role, m in (("time", start), ("end", end))]
        tests.append(("the event ends before it starts", both & (end.times < start.times)))
        if self.broken is not None:
            tests.insert(0, (UNEVEN_ROW, batch.column(self.broken).is_valid()))
        reasons = dict.fromkeys(infinite_rows(attributes).tolist(), INFINITE_NUMBER)
        for reason, holds in reversed(tests):
            reasons |= dict.fromkeys(np.flatnonzero(holds).tolist(), reason)
        return reasons

    def _letters(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> pa.Array:
        """The flaws of all rows; null for events."""
        rows = sorted(reasons)
        if self.record is None:
            # Only whether there is one is asked.
            letters: dict[int, Any] = {row: {"reason": reasons[row]} for row in rows}
        else:
            bad = batch.take(pa.array(rows))
            records = record_texts({name: bad.column(place) for name, place in self.record})
            broken = [None] * len(rows) if self.broken is None else bad.column(self.broken).to_pylist()
            sources = self._sources(bad).to_pylist()
            letters = {
                row: {"source": source, "line": None, "reason": reasons[row], "record": whole or record}
                for row, source, whole, record in zip(rows, sources, broken, records, strict=True)
            }
        kind = ARROW_SCHEMA.field("flaw").type
        return pa.array([letters.get(row) for row in range(batch.num_rows)], kind)


_MOMENT: Final = pa.timestamp("us", tz="UTC")
FIRST, LAST = to_instant(datetime.min), to_instant(datetime.max)
"""Times are in the years 1 to 9999, as in one process."""
ODD: Final = NO_TIME + 1
"""Not a time."""


def record_texts(columns: Mapping[str, pa.Array]) -> list[str]:
    """Rows as JSON, without the cells that are null.

    >>> record_texts({"id": pa.array(["e"]), "gone": pa.nulls(1), "levels": pa.array([[1.5, float("inf")]])})
    ['{"id":"e","levels":[1.5,"Infinity"]}']
    """
    values = [[_plain(value, cells.type) for value in _values(cells)] for cells in columns.values()]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
    return [
        msgspec.json.encode({name: value for name, value in row.items() if value is not None}).decode() for row in rows
    ]


def _values(cells: pa.Array) -> list[Any]:
    try:
        return list(cells.to_pylist())
    except (ValueError, OverflowError):
        # A time that Python cannot represent.
        return [None if value is None else "out of range" for value in cells.is_valid().to_pylist()]


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(key): _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        fields = ((field.name, _plain(value[field.name], field.type)) for field in kind)
        return {name: item for name, item in fields if item is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    return value
