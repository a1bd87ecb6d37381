"""How events get to the workers: read by the workers themselves, or sent by Spark as rows.

A frame straight from `read_events` remembers how a worker can read its events itself (its `EventOrigin`). Such events
are read, decoded and processed in one step of one worker, without becoming Spark rows in between. A frame that was
filtered or joined has no origin: Spark sends its events as packed rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.pipeline.events.frame import ARROW_SCHEMA, as_events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# Packing of events that Spark sends to a worker.


SEPARATOR: Final = "\uffff"
"""Separates packed texts. It is not a character, so hardly any text has it; events with it are sent unpacked."""

PARTS: Final = ("name", "value", "kind")
COLUMNS: Final = ("id", "time", "end", "theme", "attributes")


def packed(events: DataFrame) -> DataFrame:
    """Events for a worker: names, values and kinds joined to one text each, which Spark sends several times faster than
    arrays of structs. Bad records are dropped."""
    from pyspark.sql import functions as F

    def joined(column: str) -> Column:
        return F.array_join(column, SEPARATOR, "")

    good = as_events(events).where("flaw is null and size(attributes) > 0")
    parts = [joined(f"attributes.{part}").alias(part) for part in PARTS]
    # As a text: a struct with arrays, even one that is always null, makes sending eight times as slow.
    whole = F.to_json(F.struct(F.col("theme").alias("theme"), F.col("attributes").alias("attributes")))
    return good.select(
        "id", "time", "end", joined("theme").alias("theme"), *parts, F.when(_torn(), whole).alias("whole")
    )


def _torn() -> Column:
    """Whether a text of the event contains the separator."""
    from pyspark.sql import functions as F

    # Searching the concatenated texts is much cheaper than counting separators.
    texts = [F.array_join(column, "") for column in ("attributes.name", "attributes.value", "attributes.kind", "theme")]
    return F.contains(F.concat_ws("", *texts), F.lit(SEPARATOR))


def unpacked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of events from packed ones."""
    odd = batch.column("whole").is_valid()
    if not pc.any(odd).as_py():
        return _split(batch)
    both = pa.Table.from_batches([_split(batch.filter(pc.invert(odd))), _whole(batch.filter(odd))]).combine_chunks()
    order = np.argsort(np.argsort(odd.to_numpy(zero_copy_only=False), kind="stable"), kind="stable")
    (rows,) = both.take(pa.array(order)).to_batches()
    return rows


def _split(batch: pa.RecordBatch) -> pa.RecordBatch:
    names, values, kinds = (pc.split_pattern(batch.column(part), SEPARATOR) for part in PARTS)
    theme = batch.column("theme")
    tags = pc.split_pattern(pc.if_else(pc.equal(theme, ""), pa.scalar(None, theme.type), theme), SEPARATOR)
    kind = ARROW_SCHEMA.field("attributes").type
    tuples = pa.StructArray.from_arrays(
        [column.flatten().cast(pa.string()) for column in (names, values, kinds)], fields=list(kind.value_type)
    )
    attributes = pa.ListArray.from_arrays(names.offsets, tuples, type=kind)
    return _columns(batch, tags, attributes)


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    records = [msgspec.json.decode(text) for text in batch.column("whole").to_pylist()]
    theme, attributes = (
        pa.array([row.get(name) for row in records], ARROW_SCHEMA.field(name).type) for name in ("theme", "attributes")
    )
    return _columns(batch, theme, attributes)


def _columns(batch: pa.RecordBatch, theme: pa.Array, attributes: pa.Array) -> pa.RecordBatch:
    types = (ARROW_SCHEMA.field(name).type for name in ("theme", "attributes"))
    lists = [column.cast(kind) for column, kind in zip((theme, attributes), types, strict=True)]
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in COLUMNS[:3]), *lists], names=list(COLUMNS))


Batches: TypeAlias = Iterable[pa.RecordBatch]
Step: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]
"""Processes the batches of a partition in a worker; it is pickled, so it must be small."""

_REMEMBERED: Final = "_likewise_origin"
_PEEK: Final = "_likewise_peek"


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """Rows that Spark reads, and the step that makes events of them in a worker; None if workers cannot read them."""

    rows: Callable[[], tuple[DataFrame, Step] | None]


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
    events: DataFrame, step: Step, schema: str, *, timed: bool = False, name: str = "LikewiseStep"
) -> DataFrame:
    """The step over the events of a frame, in batches with the columns `id`, `time`, `end`, `theme`, `attributes`.

    It gets no bad records and, if `timed`, no events without a time. `name` is that of the node in Spark's plan.
    """
    direct = origin_of(events)
    if direct is not None:
        rows, read = direct
        return rows.mapInArrow(Chain(read, step, name, only_events=True, timed=timed), schema)
    frame = packed(events)
    return (frame.where("time is not null") if timed else frame).mapInArrow(Chain(unpack, step, name), schema)


def origin_of(events: DataFrame) -> tuple[DataFrame, Step] | None:
    """The rows from which workers can read the events themselves, and the step for it; None if they cannot."""
    origin: EventOrigin | None = vars(events).get(_REMEMBERED)
    # Cached events need not be read again.
    return None if origin is None or events.is_cached else origin.rows()


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


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The step for packed events."""
    return (unpacked(batch) for batch in batches if batch.num_rows)


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
