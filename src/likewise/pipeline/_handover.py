"""How events get to the workers: straight from where they are read, or as rows that Spark hands over.

A frame that comes right from `read_events` remembers how a worker can read its events itself (its `Origin`). What
works on such events then reads, decodes and goes on in one step of one worker, and no event becomes a row of Spark's in
between. Whoever filters or joins the events has made another frame, which is handed over packed as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from likewise.pipeline._packing import packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches: TypeAlias = Iterable[pa.RecordBatch]
Step: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What a worker does with the batches of a partition; it is sent to workers, so it must be small."""

_REMEMBERED: Final = "_likewise_origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """Rows that Spark reads, and the step that makes events of them in a worker; `rows` may find it cannot be done."""

    rows: Callable[[], tuple[DataFrame, Step] | None]


def remember(events: DataFrame, origin: Origin) -> DataFrame:
    """The same frame, which knows where its events come from. What is made from it does not."""
    vars(events)[_REMEMBERED] = origin
    return events


def over_events(events: DataFrame, step: Step, schema: str, *, timed: bool = False) -> DataFrame:
    """The step over the events of a frame, in batches with the columns `id`, `time`, `end`, `theme`, `attributes`.

    Records that are no events do not reach it, nor, if `timed`, events without a time.
    """
    direct = origin_of(events)
    if direct is not None:
        rows, read = direct
        return rows.mapInArrow(Whole(read, step, timed), schema)
    frame = packed(events)
    return (frame.where("time is not null") if timed else frame).mapInArrow(Whole(unpack, step, False), schema)


def origin_of(events: DataFrame) -> tuple[DataFrame, Step] | None:
    """The rows from which workers can make the events themselves, and how; nothing if they cannot."""
    origin: Origin | None = vars(events).get(_REMEMBERED)
    # What is held in memory need not be read again.
    return None if origin is None or events.is_cached else origin.rows()


@dataclass(frozen=True, slots=True)
class Whole:
    """Reading and working in one."""

    read: Step
    work: Step
    timed: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return self.work(good for batch in self.read(batches) if (good := sound(batch, timed=self.timed)).num_rows)


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The step for packed events."""
    return (unpacked(batch) for batch in batches if batch.num_rows)


def sound(batch: pa.RecordBatch, *, timed: bool = False) -> pa.RecordBatch:
    """The rows of a batch that are events.

    >>> from likewise.events import BadRecord, Event
    >>> from likewise.pipeline._frame import batch_of
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
