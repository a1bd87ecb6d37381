"""Distinct terms of two tables as a table of pairs that are near enough, found on the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError
from likewise.pipeline.joins.rivals import margins_of, scoring
from likewise.pipeline.joins.sql import ARROW_WHY, Meaning, reasons
from likewise.pipeline.session import local_cores
from likewise.semantics import Measure
from likewise.semantics.nearest import CHUNK, Bar, NearestTerms, split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The tasks of workers: from Arrow batches of keys to pairs of keys.


PAIRS_SCHEMA: Final = "_left string, _right string, relatedness double"
MARGINS_SCHEMA: Final = f"{PAIRS_SCHEMA}, margin double"
SCORE: Final = "_likewise_score"
NEAR: Final = f"array<struct<_likewise_near: string, {SCORE}: double>>"
_PAIRS = pa.schema([("_left", pa.string()), ("_right", pa.string()), ("relatedness", pa.float64())])
TWO_BEST: Final = Bar(0.0, 2)

KEPT_TERMS: Final = 100_000
"""Terms of a stream whose neighbours a worker remembers."""

_last: list[tuple[tuple[str, Bar, bool], NearestTerms]] = []


def ready(meaning: Meaning, right: Sequence[str], bar: Bar, *, rivals: bool) -> NearestTerms:
    """A prepared right side; the last one of this process is cached, because the next tasks need it again."""
    key = (meaning.key, bar, rivals)
    if not (_last and _last[0][0] == key and _last[0][1].right == tuple(right)):
        _last.clear()
        _last.append((key, NearestTerms(scoring(meaning.measure(), rivals=rivals), right, bar)))
    return _last[0][1]


@dataclass(frozen=True)
class PairTask:
    """Compares batches of left keys with the right side that the task contains; for `mapInArrow`."""

    meaning: Meaning
    right: tuple[str, ...]
    bar: Bar
    margin: bool = False
    rivals: bool = True

    @property
    def __name__(self) -> str:
        return "LikewiseJoin"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        near = ready(self.meaning, self.right, self.bar, rivals=self.rivals)
        bar = replace(TWO_BEST, themed=self.bar.themed)
        measure = scoring(self.meaning.measure(), rivals=self.rivals)
        two_best = NearestTerms(measure, self.right, bar) if self.margin else None
        for batch in batches:
            yield from _table(batch.column(0), pa.array(self.right, pa.string()), near, two_best).to_batches()


@dataclass(frozen=True, slots=True)
class GridTask:
    """Compares a group of left keys with a group of right keys; for `cogroup`."""

    meaning: Meaning
    bar: Bar

    def __call__(self, left: pa.Table, right: pa.Table) -> pa.Table:
        mine, theirs = (table.column(table.num_columns - 1).combine_chunks() for table in (left, right))
        if not len(mine) or not len(theirs):
            return _PAIRS.empty_table()
        theirs = theirs.take(pc.sort_indices(theirs))
        return _table(mine, theirs, ready(self.meaning, theirs.to_pylist(), self.bar, rivals=False))


def _table(left: pa.Array, right: pa.Array, near: NearestTerms, two_best: NearestTerms | None = None) -> pa.Table:
    terms = left.to_pylist()
    found = near.pairs(terms)
    columns = [
        left.take(pa.array(found.left)).cast(pa.string()),
        right.take(pa.array(found.right)).cast(pa.string()),
        pa.array(found.relatedness.astype(np.float64)),
    ]
    table = pa.Table.from_arrays(columns, schema=_PAIRS)
    if two_best is None:
        return table
    return table.append_column("margin", pa.array(margins_of(two_best, found, terms)))


@dataclass(frozen=True, slots=True)
class NearColumn:
    """For each key of a column, the list of related right keys; also for streams, which cannot be grouped."""

    meaning: Meaning
    right: tuple[str, ...]
    bar: Bar
    rivals: bool = True

    def __call__(self, column: pa.Array) -> pa.Array:
        near = ready(self.meaning, self.right, self.bar, rivals=self.rivals)
        coded = pc.dictionary_encode(column)
        terms = coded.dictionary.to_pylist()
        self._look_up(near, terms)
        found = [near.kept[term] for term in terms]
        bounds = np.concatenate([[0], np.cumsum([len(places) for places, _ in found])]).astype(np.int32)
        places = np.concatenate([np.empty(0, np.int64), *(places for places, _ in found)])
        scores = np.concatenate([np.empty(0, np.float32), *(scores for _, scores in found)])
        columns = [pa.array(self.right, pa.string()).take(pa.array(places)), pa.array(scores.astype(np.float64))]
        pairs = pa.StructArray.from_arrays(columns, names=["_likewise_near", SCORE])
        return pa.ListArray.from_arrays(pa.array(bounds), pairs).take(coded.indices)

    def _look_up(self, near: NearestTerms, terms: list[str]) -> None:
        if len(near.kept) > KEPT_TERMS:
            near.kept.clear()
        new = [term for term in terms if term not in near.kept]
        found = near.pairs(new)
        bounds = np.searchsorted(found.left, np.arange(len(new) + 1)).tolist()
        for term, start, end in zip(new, bounds[:-1], bounds[1:], strict=True):
            near.kept[term] = found.right[start:end].copy(), found.relatedness[start:end].copy()


@dataclass(frozen=True, slots=True)
class WhyTask:
    """Adds the strongest reasons to every pair; for `mapInArrow`."""

    meaning: Meaning
    themed: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        measure = self.meaning.measure()
        for batch in batches:
            explanations = [
                self._reasons(measure, *pair)
                for pair in zip(*(batch.column(at).to_pylist() for at in range(2)), strict=True)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(explanations, ARROW_WHY)], names=[*batch.schema.names, "why"]
            )

    def _reasons(self, measure: Measure, left: str, right: str) -> list[dict[str, object]]:
        (a, mine), (b, theirs) = (split(key, self.themed) for key in (left, right))
        return reasons(measure, b, a, themes=(theirs, mine))


CONNECT_TASKS: Final = 8
SMALL: Final = CHUNK
"""Distinct terms of the right side, at most, that are collected on the driver and sent with every task."""

LITTLE: Final = 64 << 20
"""Bytes of rows, at most, that are redistributed over all cores."""

TALL: Final = 8_000
"""Terms of the left side in a group, at least: the right side of a group is prepared anew for each."""


@dataclass(frozen=True)
class TermPairs:
    """Two columns of keys, with repetitions, and the related pairs among them."""

    left: DataFrame
    right: DataFrame
    meaning: Meaning
    bar: Bar
    margin: bool = False
    rivals: bool = True

    @property
    def small(self) -> tuple[str, ...] | None:
        """The sorted distinct terms of the right side if there are at most `SMALL`, else None."""
        return self._fetched[0]

    @property
    def few_rows(self) -> bool:
        """Whether the right side has few rows, not only few terms, so that it can be broadcast."""
        return self._fetched[1]

    @cached_property
    def _fetched(self) -> tuple[tuple[str, ...] | None, bool]:
        for rows in (self.right, self.right.distinct()):
            found = rows.limit(SMALL + 1).toArrow().column(0).to_pylist()
            if len(found) <= SMALL:
                return tuple(sorted(set(found))), rows is self.right
        return None, False

    def frame(self) -> DataFrame:
        """Pairs by columns `_left`, `_right` and `relatedness`.

        If the right side is small, `best` is applied to all its terms. Otherwise it is applied to each group of right
        terms, and the caller has to choose among the results.
        """
        if self.small is not None:
            return self._with_task(self.small)
        if self.margin:
            raise BuildError(
                f"the right side has more than {SMALL:,} distinct terms, too many for margins",
                hint="best=2 gives the two best with their scores",
            )
        return self._in_groups()

    def _with_task(self, terms: tuple[str, ...]) -> DataFrame:
        # Few terms are little data but much work: by default, Spark would coalesce them into one partition.
        spread = self.left.distinct().repartition(self._partitions)
        task = PairTask(self.meaning, terms, self.bar, self.margin, self.rivals)
        return spread.mapInArrow(task, MARGINS_SCHEMA if self.margin else PAIRS_SCHEMA)

    def spread_out(self, rows: DataFrame) -> DataFrame:
        """Distribute few rows over all cores: a small file is little data, but its terms may be much work."""
        plan: Any = getattr(rows, "_jdf", None)
        if plan is None:
            return rows
        size = int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
        return rows.repartition(self._partitions) if size < LITTLE else rows

    def _in_groups(self) -> DataFrame:
        """Every group of left terms meets every group of right terms once."""
        tall, wide = self._groups()
        cells = max(tall * wide, self._partitions)
        mine = _spread(self.left, own=tall, other=wide, cell=f"hash % {tall} * {wide} + other")
        theirs = _spread(self.right, own=wide, other=tall, cell=f"other * {wide} + hash % {wide}")
        sides = [side.repartition(cells, "_cell").groupBy("_cell") for side in (mine, theirs)]
        task = GridTask(self.meaning, self.bar)

        # Spark counts the parameters of the function, and would count a method's `self` too.
        def meet(left: pa.Table, right: pa.Table) -> pa.Table:
            return task(left, right)

        return sides[0].cogroup(sides[1]).applyInArrow(meet, PAIRS_SCHEMA)

    def _groups(self) -> tuple[int, int]:
        from pyspark.sql import functions as F

        sizes = [side.agg(F.approx_count_distinct(side.columns[0])).collect()[0][0] for side in (self.left, self.right)]
        wide = max(1, ceil(sizes[1] / CHUNK))
        least, most = ceil(sizes[0] / CHUNK), ceil(sizes[0] / TALL)
        return max(1, least, min(most, ceil(self._partitions / wide))), wide

    @property
    def _partitions(self) -> int:
        """The number of cores, because more tasks would only start more workers. Spark Connect hides the number."""
        most = int(self.left.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
        context: Any = getattr(self.left.sparkSession, "_sc", None)
        if context is not None:
            return min(most, int(context.defaultParallelism))
        return min(most, local_cores(self.left.sparkSession.conf.get("spark.master", None)) or CONNECT_TASKS)


def _spread(terms: DataFrame, *, own: int, other: int, cell: str) -> DataFrame:
    """Distinct terms, each as often as there are groups on the other side, with the number of the meeting place."""
    name = terms.columns[0]
    numbered = terms.distinct().selectExpr(f"pmod(xxhash64(`{name}`), {own}) as hash", f"`{name}`")
    repeated = numbered.selectExpr("*", f"explode(sequence(0, {other - 1})) as other")
    return repeated.selectExpr(f"cast({cell} as int) as _cell", f"`{name}`")
