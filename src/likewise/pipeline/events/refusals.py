"""Events that detection refuses: without a time, ending before they start, or far ahead of the clock.

Each becomes a flaw, like a bad record, so that it is reported and never lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from likewise.events import Event, encode_line, instants
from likewise.pipeline.events.frame import FLAW, events_of
from likewise.pipeline.events.transfer import over_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
