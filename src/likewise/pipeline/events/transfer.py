"""How events get to the workers: read by the workers themselves, or sent by Spark as rows.

A frame straight from `read_events` or `events_from_columns` remembers how a worker makes its events (its
`EventOrigin`): of files that the worker reads itself, or of columns as Spark has them. This happens in the same step as
the work, so the events do not become Spark rows in between. Of any other frame, workers read the columns as they are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError
from likewise.events import Event, encode_line, instants
from likewise.pipeline.events.cells import Attribute, TupleReader, check_attribute, check_leaf, infinite_rows, zoned
from likewise.pipeline.events.frame import (
    ARROW_SCHEMA,
    ATTRIBUTES,
    BETWEEN,
    DIGITS,
    EVENT_COLUMNS,
    EVENTS_SCHEMA,
    FLAW,
    INFINITE_NUMBER,
    NO_ATTRIBUTES,
    NO_ID,
    TEXTS,
    column,
    decoded,
    events_of,
    folding,
    refuse_twin_fields,
    tidy,
    watermark_of,
    with_ids,
    with_metadata,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

COLUMNS: Final = ("id", "time", "end", "theme", "attributes")

Batches: TypeAlias = Iterable[pa.RecordBatch]
Step: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]
"""Processes the batches of a partition in a worker; it is pickled, so it must be small."""

_REMEMBERED: Final = "_likewise_origin"
_PEEK: Final = "_likewise_peek"


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """Rows that Spark reads, and the step that makes events of them in a worker; None if workers cannot.

    It is asked with the names of the columns to keep, which follow those of the events, and whether dead letters are
    wanted too.
    """

    rows: Callable[[Sequence[str], bool], tuple[DataFrame, Step] | None]


def remember(events: DataFrame, origin: EventOrigin) -> DataFrame:
    """The same frame with an origin; frames derived from it have none."""
    vars(events)[_REMEMBERED] = origin
    return events


def remember_peek(events: DataFrame, peek: Callable[[], DataFrame]) -> DataFrame:
    """The same stream with a function that reads its current events as a batch."""
    vars(events)[_PEEK] = peek
    return events


def peek_of(events: DataFrame) -> DataFrame | None:
    """The current events of a stream as a batch, if its source can be read so."""
    peek: Callable[[], DataFrame] | None = vars(events).get(_PEEK)
    return None if peek is None else peek()


def over_events(
    events: DataFrame,
    step: Step,
    schema: str | StructType,
    *,
    kept: Sequence[str] = (),
    timed: bool = False,
    letters: bool = False,
    name: str = "LikewiseStep",
) -> DataFrame:
    """The step over the events of a frame, in batches with the columns `id`, `time`, `end`, `theme`, `attributes`.

    `kept` names further columns, which come last. The step gets no bad records and, if `timed`, no events without a
    time. With `letters` it gets all rows, with the column `flaw`. `name` is that of the node in Spark's plan.
    """
    rows, read = event_rows(events, kept, letters=letters)
    return rows.mapInArrow(Chain(read, step, name, only_events=not letters, timed=timed), schema)


def event_rows(events: DataFrame, kept: Sequence[str] = (), *, letters: bool = False) -> tuple[DataFrame, Step]:
    """The rows of which workers make the events of a frame, and the step for it."""
    origin: EventOrigin | None = vars(events).get(_REMEMBERED)
    # Cached events need not be read again.
    found = None if origin is None or events.is_cached else origin.rows(kept, letters)
    return frame_rows(events, kept, letters) if found is None else found


@dataclass(frozen=True)
class Chain:
    """Reading and working in one step of one worker; `name` is shown in Spark's plan."""

    read: Step
    work: Step
    name: str
    only_events: bool = False
    timed: bool = False

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return self.work(batch for batch in self._read(batches) if batch.num_rows)

    def _read(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        read = self.read(batches)
        return (sound(batch, timed=self.timed) for batch in read) if self.only_events else read


@dataclass(frozen=True, slots=True)
class Decoded:
    """A step whose events Spark can take as rows."""

    step: Step

    @property
    def __name__(self) -> str:
        return "LikewiseEvents"

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return (decoded(batch) for batch in self.step(batches))


def sound(batch: pa.RecordBatch, *, timed: bool = False) -> pa.RecordBatch:
    """The rows of a batch that are events.

    >>> from likewise.events import BadRecord, Event
    >>> from likewise.pipeline.events.frame import batch_of
    >>> sound(batch_of([Event.of({"a": 1}, id="e")], [BadRecord("f", 1, "no", b"")])).column("id").to_pylist()
    ['e']
    """
    sizes = pc.fill_null(pc.list_value_length(batch.column("attributes")), 0)
    good = pc.greater(sizes, 0)
    if "flaw" in batch.schema.names:
        good = pc.and_(good, batch.column("flaw").is_null())
    if timed:
        good = pc.and_(good, batch.column("time").is_valid())
    return batch if pc.all(good).as_py() in (True, None) else batch.filter(good)


class SentColumns:
    """The columns that Spark sends to a worker: each once, found by its place."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._names: set[str] = set()
        self.columns: list[Column] = []

    def place(self, name: str, form: str, value: Column) -> int:
        """The place of a column or path in a form, such as `text`."""
        if (name, form) not in self._places:
            self._places[name, form] = len(self.columns)
            # Spark refuses two columns of one name, and dots and backticks in names.
            unique = re.sub("[.`]", "_", name)
            while unique.lower() in self._names:
                unique += "_"
            self._names.add(unique.lower())
            self.columns.append(value.alias(unique))
        return self._places[name, form]


# Frames that have the columns of events already, in some form.


def as_events(frame: DataFrame) -> DataFrame:
    """Any DataFrame with `id` and `attributes`, brought to the columns of events.

    `attributes` may be the array of structs, or a struct or map from names to values of any type, arrays included;
    `time`, `end`, `theme` and `flaw` may be missing. A row without any attribute gets a `flaw`. An event whose id is
    null or empty gets a digest of its content.
    """
    cells, types = _event_cells(frame)
    watermark = watermark_of(frame)
    if types["attributes"].simpleString() == _TUPLES and types["id"].typeName() == "string" and "flaw" in types:
        made = frame.select(*_own_columns(cells, watermark))
    else:
        rows, step = frame_rows(frame, letters=True)
        made = with_watermark(rows.mapInArrow(Decoded(step), EVENTS_SCHEMA), watermark)
    return remember(made, EventOrigin(partial(frame_rows, frame)))


def with_watermark(found: DataFrame, watermark: Mapping[str, int]) -> DataFrame:
    """Rows whose `time` has the watermark of their events; the Python step between has dropped that metadata."""
    from pyspark.sql import functions as F

    if not watermark:
        return found
    marked = with_metadata(F.col("time"), "time", watermark)
    return found.select(*(marked if name == "time" else column(name) for name in found.columns))


def frame_rows(frame: DataFrame, kept: Sequence[str] = (), letters: bool = False) -> tuple[DataFrame, Step]:
    """The columns of a frame that form events, as they are, and the step that makes events of them in a worker."""
    cells, types = _event_cells(frame)
    if "flaw" in cells and not letters:
        frame = frame.where(cells.pop("flaw").isNull())
    sent = SentColumns()
    for name, cell in cells.items():
        sent.place(name, "event", _sent(name, cell, types[name]))
    for name in kept:
        sent.place(name, "kept", column(name))
    return frame.select(*sent.columns), FrameStep(tuple(cells), tuple(kept))


_TUPLES: Final = ATTRIBUTES.replace(": ", ":").replace(", ", ",")
_MOMENTS: Final = ("timestamp", "timestamp_ntz", "date", "void")


def _event_cells(frame: DataFrame) -> tuple[dict[str, Column], dict[str, DataType]]:
    """The columns of events that a frame has, with their types; wrong ones are refused when the plan is built."""
    fold = folding(frame)
    spelt = {fold(name): name for name in frame.columns}
    missing = [name for name in ("id", "attributes") if name not in spelt]
    if missing:
        raise BuildError(
            f"the events have no column {', '.join(missing)}",
            hint="read them with read_events, or make them with events_from_columns",
        )
    types: dict[str, DataType] = {name: frame.schema[spelt[name]].dataType for name in EVENT_COLUMNS if name in spelt}
    _check_types(types)
    refuse_twin_fields(types["attributes"], "attributes", fold)
    return {name: column(spelt[name]) for name in types}, types


def _check_types(types: Mapping[str, DataType]) -> None:
    wrong = [("id", types["id"])] if types["id"].typeName() in NO_ID else []
    wrong += [
        (name, types[name]) for name in ("time", "end") if name in types and types[name].typeName() not in _MOMENTS
    ]
    if "flaw" in types and not _is_flaw(types["flaw"]):
        wrong.append(("flaw", types["flaw"]))
    if "theme" in types and not re.fullmatch(r"array<string( collate \w+)?>|void", types["theme"].simpleString()):
        wrong.append(("theme", types["theme"]))
    if wrong:
        name, kind = wrong[0]
        message = f"the column {name} is {kind.simpleString()}"
        raise BuildError(message, hint="events_from_columns(frame, RecordMapping(…)) makes events of any columns")
    _check_attributes(types["attributes"])


def _check_attributes(kind: DataType) -> None:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            check_attribute(kind, "attributes")
        case ArrayType(elementType=StructType() as entry) if {"name", "value"} <= set(entry.names):
            check_leaf(entry["name"].dataType, "attributes.name", "cannot name attributes")
            ready = "kind" in entry.names
            (check_leaf if ready else check_attribute)(entry["value"].dataType, "attributes.value")
        case MapType(keyType=key, valueType=inner):
            check_leaf(key, "attributes.key", "cannot name attributes")
            check_attribute(inner, "attributes")
        case _:
            hint = f"it must be {ATTRIBUTES}, or a struct or a map from names to values"
            raise BuildError(f"the column attributes is {kind.simpleString()}", hint=hint)


def _is_flaw(kind: DataType) -> bool:
    """Whether a column has the fields of `FLAW`, or is null throughout."""
    names = getattr(kind, "names", None)
    return kind.typeName() == "void" or names == ["source", "line", "reason", "record"]


def _sent(name: str, cell: Column, kind: DataType) -> Column:
    """A column in a type that a worker reads."""
    wanted = {"id": "string", "time": "timestamp_ltz", "end": "timestamp_ltz", "theme": "array<string>", "flaw": FLAW}
    return cell.cast(wanted[name]) if name in wanted else zoned(cell, kind)


def _own_columns(cells: Mapping[str, Column], watermark: Mapping[str, int]) -> list[Column]:
    """Columns that are those of events already: only ids may be missing."""
    from pyspark.sql import functions as F

    def null(kind: str) -> Column:
        return F.lit(None).cast(kind)

    key, attributes = cells["id"], cells["attributes"]
    moments = [cells[name].cast("timestamp_ltz") if name in cells else null("timestamp_ltz") for name in COLUMNS[1:3]]
    theme = cells["theme"].cast("array<string>") if "theme" in cells else null("array<string>")
    texts = [F.array_join(array, BETWEEN, "") for array in (theme, *(attributes.getField(part) for part in TEXTS))]
    content = F.concat_ws(BETWEEN, *(F.unix_micros(moment).cast("string") for moment in moments), *texts)
    # The digest that `with_ids` makes for the same event.
    digest = F.when(F.size(attributes) > 0, F.substring(F.sha1(content), 1, DIGITS))
    named = F.coalesce(F.nullif(key, F.lit("")), digest)
    start, flaw = with_metadata(moments[0], "time", watermark), cells["flaw"].cast(FLAW).alias("flaw")
    return [named.alias("id"), start, moments[1].alias("end"), theme.alias("theme"), attributes, flaw]


OWN: Final = "<frame>"
"""The source of flaws in the rows of a user's own frame."""


@dataclass(frozen=True, slots=True)
class FrameStep:
    """Makes events of the rows of a frame: the columns of events that are `present`, then those to keep."""

    present: tuple[str, ...]
    kept: tuple[str, ...] = ()

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return (self.read(batch) for batch in batches if batch.num_rows)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a batch."""
        cells = dict(zip(self.present, batch.columns, strict=False))
        ready = _are_tuples(cells["attributes"].type)
        cells["attributes"] = attributes = (tidy if ready else _read)(cells["attributes"])
        types = {field.name: field.type for field in ARROW_SCHEMA}
        columns = [cells[name] if name in cells else pa.nulls(batch.num_rows, types[name]) for name in EVENT_COLUMNS]
        columns[1:3] = (moment.cast(types["time"]) for moment in columns[1:3])
        columns[5] = _flaws(cells["id"], attributes, columns[5], numbers=not ready)
        kept = batch.columns[len(self.present) :]
        return with_ids(pa.RecordBatch.from_arrays([*columns, *kept], names=[*EVENT_COLUMNS, *self.kept]))


def _are_tuples(kind: pa.DataType) -> bool:
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return listed and set(TEXTS) <= {field.name for field in kind.value_type}


def _read(cells: pa.Array) -> pa.ListArray:
    reader = TupleReader()
    return reader.list_of([reader.read(cells, Attribute())], rows=len(cells))


def _flaws(ids: pa.Array, attributes: pa.ListArray, known: pa.Array, *, numbers: bool) -> pa.Array:
    """The flaws of rows, those that they have already included."""
    reasons = dict.fromkeys(infinite_rows(attributes).tolist() if numbers else (), INFINITE_NUMBER)
    reasons |= dict.fromkeys(np.flatnonzero(attributes.value_lengths().to_numpy() == 0).tolist(), NO_ATTRIBUTES)
    if not reasons:
        return known
    flaws = known.to_pylist()
    for row, reason in reasons.items():
        record = {} if (key := ids[row].as_py()) is None else {"id": key}
        letter = {"source": OWN, "line": None, "reason": reason, "record": msgspec.json.encode(record).decode()}
        flaws[row] = flaws[row] or letter
    return pa.array(flaws, ARROW_SCHEMA.field("flaw").type)


def dead_letters(events: DataFrame) -> DataFrame:
    """The records that are not events: source, line, reason and the record itself."""
    if "flaw" not in events.columns and {"pattern", "probability"} <= set(events.columns):
        raise BuildError("these detections have no dead letters", hint="ask for them: detect(…, dead_letters=True)")
    frame = events if "flaw" in events.columns and _is_flaw(events.schema["flaw"].dataType) else as_events(events)
    return frame.where("flaw is not null").select("flaw.*")


# Events that detection refuses: without a time, ending before they start, or far ahead of the clock. Each becomes a
# flaw, like a bad record, so that it is reported and never lost.


DETECTOR: Final = "<detector>"
"""The source of flaws that only detection finds."""
LETTER: Final = pa.schema(
    [("source", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("record", pa.string())]
)

NO_TIME: Final = "it has no time"

Flaw = dict[str, Any]


def sort_out(batch: pa.RecordBatch, *, max_ahead: int | None = None) -> tuple[pa.RecordBatch, list[Flaw]]:
    """The usable events of a batch, and the flaws of the others; `max_ahead` is in microseconds.

    >>> from likewise.events import Event
    >>> from likewise.pipeline.events.frame import batch_of
    >>> good, flaws = sort_out(batch_of([Event("a", (("x", 1),), (), 2, 2), Event("b", (("x", 1),), (), 2, 1)]))
    >>> good.column("id").to_pylist(), [flaw["reason"] for flaw in flaws]
    (['a'], ['it ends before it starts'])
    """
    there = pc.greater(pc.fill_null(pc.list_value_length(batch.column("attributes")), 0), 0)
    flaws: list[Flaw] = []
    if "flaw" in batch.schema.names:
        known = batch.column("flaw").is_valid()
        flaws += batch.column("flaw").filter(known).to_pylist()
        there = pc.and_(there, pc.invert(known))
    start, end = instants(batch.column("time")), instants(batch.column("end"))
    tests = {NO_TIME: start.is_null(), "it ends before it starts": pc.less(end, start)}
    if max_ahead is not None:
        latest = pc.coalesce(end, start)
        tests["its clock is too far ahead"] = pc.greater(latest, time.time_ns() // 1000 + max_ahead)
    for reason, answers in tests.items():
        bad = pc.and_(there, pc.fill_null(answers, False))
        if bad.true_count:
            flaws += (letter(record_of(event), reason) for event in events_of(batch.filter(bad)))
            there = pc.and_not(there, bad)
    return batch if there.true_count == batch.num_rows else batch.filter(there), flaws


def letter(record: str, reason: str) -> Flaw:
    """The flaw of an event that `record_of` has encoded."""
    return {"source": DETECTOR, "line": None, "reason": reason, "record": record}


def record_of(event: Event) -> str:
    """An event as a line of JSON."""
    return encode_line(event).decode().rstrip()


def refused(events: DataFrame, *, max_ahead: int | None = None) -> DataFrame:
    """The flaws of a batch job: of bad records, and of events without a usable time."""
    return over_events(events, LetterTask(max_ahead), LETTER_SCHEMA, letters=True, name="LikewiseRefused")


@dataclass(frozen=True, slots=True)
class LetterTask:
    """The flaws of a batch job, a row each."""

    max_ahead: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            _, flaws = sort_out(batch, max_ahead=self.max_ahead)
            if flaws:
                yield pa.RecordBatch.from_pylist(flaws, schema=LETTER)


LETTER_SCHEMA: Final = FLAW.removeprefix("struct<").removesuffix(">").replace(":", "")
