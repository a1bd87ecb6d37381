"""Columns of the input that go through matching and detection, beside the events.

They travel with the id of their event, as JSON after a mark, and are taken off at the end. So they need no place of
their own in workers, shuffles and state, and a detection has those of each of its members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from likewise.pipeline.events.frame import EVENT_COLUMNS, Keep, as_events, column, folding
from likewise.pipeline.events.table import kept_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MARK: Final = "\x1e\x1e"
"""Stands between an id and what is kept; JSON never has it."""
_KEPT: Final = "_likewise_kept"
_OPTIONS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns that go through, with their types."""

    schema: StructType

    def id(self, marked: Column) -> Column:
        """The id alone."""
        from pyspark.sql import functions as F

        tail = F.length(F.substring_index(marked, MARK, -1)) + F.lit(len(MARK))
        return F.substring(marked, F.lit(1), F.length(marked) - tail)

    def columns(self, marked: Column) -> list[Column]:
        """What was kept, as columns."""
        from pyspark.sql import functions as F

        row = F.from_json(F.substring_index(marked, MARK, -1), self.schema, _OPTIONS)
        return [row.getField(name).alias(name) for name in self.schema.names]


def keeping(events: DataFrame, keep: Keep, *, taken: Sequence[str]) -> tuple[DataFrame, Kept | None]:
    """Events whose ids carry the columns to keep, or the frame as it is; names of ours in the result are `taken`."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not keep:
        return events, None
    fold = folding(events)
    present = [name for name in events.columns if keep != "*" or fold(name) not in EVENT_COLUMNS]
    names = kept_columns(keep, present, taken=taken, fold=fold)
    if not names:
        return events, None
    schema = StructType([events.schema[name] for name in names])
    row = F.to_json(F.struct(*map(column, names)), _OPTIONS).alias(_KEPT)
    made = as_events(events, [row])
    marked = F.when(F.col("id").isNotNull(), F.concat("id", F.lit(MARK), _KEPT))
    return made.select(marked.alias("id"), *EVENT_COLUMNS[1:]), Kept(schema)


def unmarked(id: str) -> str:
    """The id of an event, without what it carries.

    >>> unmarked("e1" + MARK + '{"tenant": "x"}'), unmarked("e1")
    ('e1', 'e1')
    """
    return id.rpartition(MARK)[0] if MARK in id else id
