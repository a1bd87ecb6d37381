"""Distinct terms of two tables as a table of pairs that are near enough, found on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from likewise.pipeline._join_near import CHUNK, Bar
from likewise.pipeline._join_tasks import PAIRS_SCHEMA, GridTask, PairTask
from likewise.pipeline._related import Meaning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL: Final = CHUNK
"""Distinct terms of the right side that may come to the driver and go with every task."""

TALL: Final = 8_000
"""Terms of the left side in a group, at least: the right side of a group is made ready anew for each."""


@dataclass(frozen=True)
class TermPairs:
    """Two columns of keys, with repetitions, and what is near enough between them."""

    left: DataFrame
    right: DataFrame
    meaning: Meaning
    bar: Bar

    @cached_property
    def small(self) -> tuple[str, ...] | None:
        """The distinct terms of the right side in order, if they are few; no more than that are ever fetched."""
        found = self.right.distinct().limit(SMALL + 1).toArrow().column(0).to_pylist()
        return tuple(sorted(found)) if len(found) <= SMALL else None

    def frame(self) -> DataFrame:
        """Pairs by columns `_left`, `_right` and `relatedness`.

        Where the right side is small, the best of a left term are the best of all; otherwise those of each group of
        right terms, and who wants the best of all has to choose among them.
        """
        return self._with_task(self.small) if self.small is not None else self._in_groups()

    def _with_task(self, terms: tuple[str, ...]) -> DataFrame:
        # Few terms are little data but much work: left alone, Spark would put them all into one partition.
        spread = self.left.distinct().repartition(self._partitions)
        return spread.mapInArrow(PairTask(self.meaning, terms, self.bar), PAIRS_SCHEMA)

    def _in_groups(self) -> DataFrame:
        """Every group of left terms meets every group of right terms once."""
        tall, wide = self._groups()
        cells = max(tall * wide, self._partitions)
        mine = _spread(self.left, own=tall, other=wide, cell=f"hash % {tall} * {wide} + each")
        theirs = _spread(self.right, own=wide, other=tall, cell=f"each * {wide} + hash % {wide}")
        sides = [side.repartition(cells, "_cell").groupBy("_cell") for side in (mine, theirs)]
        task = GridTask(self.meaning, self.bar)

        # Spark counts the parameters of what it is given, and would take a method's `self` for one.
        def meet(left: pa.Table, right: pa.Table) -> pa.Table:
            return task(left, right)

        return sides[0].cogroup(sides[1]).applyInArrow(meet, PAIRS_SCHEMA)

    def _groups(self) -> tuple[int, int]:
        from pyspark.sql import functions as F  # noqa: N812

        sizes = [side.agg(F.approx_count_distinct(side.columns[0])).collect()[0][0] for side in (self.left, self.right)]
        wide = max(1, ceil(sizes[1] / CHUNK))
        least, most = ceil(sizes[0] / CHUNK), ceil(sizes[0] / TALL)
        return max(1, least, min(most, ceil(self._partitions / wide))), wide

    @property
    def _partitions(self) -> int:
        return int(self.left.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)


def _spread(terms: DataFrame, *, own: int, other: int, cell: str) -> DataFrame:
    """Distinct terms, each as often as there are groups on the other side, with the number of the meeting place."""
    name = terms.columns[0]
    numbered = terms.distinct().selectExpr(f"pmod(xxhash64(`{name}`), {own}) as hash", f"`{name}`")
    each = numbered.selectExpr("*", f"explode(sequence(0, {other - 1})) as each")
    return each.selectExpr(f"cast({cell} as int) as _cell", f"`{name}`")
