"""What detection refuses: events without a time, that end before they start, or whose clock is far ahead.

Each becomes a flaw, as a record does that is no event, so that it can be told and is never lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError, ParseError
from likewise.events import Event, encode_line
from likewise.language import Negation, parse_pattern
from likewise.pipeline.events.frame import FLAW, as_events, events_of, instants, tidy
from likewise.pipeline.events.transfer import COLUMNS, Batches, Step, origin_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DETECTOR: Final = "<detector>"
"""The source of flaws that only detection finds."""
LETTER: Final = pa.schema(
    [("source", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("record", pa.string())]
)

Flaw = dict[str, Any]


def sort_out(batch: pa.RecordBatch, *, max_ahead: int | None = None) -> tuple[pa.RecordBatch, list[Flaw]]:
    """The events of a batch that can be put in time, and why the others cannot; `max_ahead` is in microseconds.

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
    tests = {"it has no time": start.is_null(), "it ends before it starts": pc.less(end, start)}
    if max_ahead is not None:
        latest = pc.coalesce(end, start)
        tests["its clock is too far ahead"] = pc.greater(latest, time.time_ns() // 1000 + max_ahead)
    for reason, answers in tests.items():
        bad = pc.and_(there, pc.fill_null(answers, False))
        if bad.true_count:
            flaws += (letter(event, reason) for event in events_of(batch.filter(bad)))
            there = pc.and_not(there, bad)
    return batch if there.true_count == batch.num_rows else batch.filter(there), flaws


def letter(event: Event, reason: str) -> Flaw:
    """The flaw of an event."""
    record = encode_line(event).decode().rstrip()
    return {"source": DETECTOR, "line": None, "reason": reason, "record": record}


def microseconds(duration: str | None) -> int | None:
    """A length of time as patterns write it, such as `1 day` or `90 seconds`.

    >>> microseconds("90 seconds"), microseconds("1 day")
    (90000000, 86400000000)
    """
    if duration is None:
        return None
    try:
        root = parse_pattern(f"not x for {duration}").root
    except ParseError:
        root = None
    if not isinstance(root, Negation) or root.within is None:
        raise BuildError(f"{duration!r} is not a length of time", hint="such as `90 seconds` or `1 day`")
    return root.within


def interval(duration: str) -> str:
    """A length of time as Spark writes it, from one as patterns write it; what only Spark understands stays.

    >>> interval("10s"), interval("0 seconds")
    ('10000 milliseconds', '0 milliseconds')
    """
    try:
        told = microseconds(duration)
    except BuildError:
        return duration
    return duration if told is None else f"{told // 1000} milliseconds"


def over_records(events: DataFrame, step: Step, schema: str) -> DataFrame:
    """A step over all rows of events, those with a flaw too, in batches with the columns of `EVENTS_SCHEMA`."""
    direct = origin_of(events)
    if direct is not None:
        rows, read = direct
        return rows.mapInArrow(Chain(read, step), schema)
    return as_events(events).mapInArrow(Chain(tidied, step), schema)


def refused(events: DataFrame, *, max_ahead: int | None = None) -> DataFrame:
    """What a batch job cannot detect with: records that are no events, and events that cannot be put in time."""
    return over_records(events, LetterTask(max_ahead), LETTER_SCHEMA)


@dataclass(frozen=True, slots=True)
class Chain:
    """One step after the other in the same worker."""

    first: Step
    then: Step

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return self.then(batch for batch in self.first(batches) if batch.num_rows)


def tidied(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Batches as Spark hands them over, with tuples as workers want them."""
    for batch in batches:
        columns = [tidy(batch.column(name)) if name == "attributes" else batch.column(name) for name in COLUMNS]
        yield pa.RecordBatch.from_arrays([*columns, batch.column("flaw")], names=[*COLUMNS, "flaw"])


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
