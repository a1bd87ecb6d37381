"""Meaning in SQL: `related(a, b)` as a function, and a join of two tables by what their words mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError
from likewise.pipeline._worker import once, space_paths
from likewise.semantics import Measure, Space, measure, needs_space

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK: Final = 512
"""Terms of one side that are compared with all of the other in one go."""

_PAIRS = pa.schema([("_left", pa.string()), ("_right", pa.string()), ("relatedness", pa.float64())])
PAIRS_SCHEMA: Final = "_left string, _right string, relatedness double"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A measure by name, with its spaces by path, made once in every process."""

    name: str
    spaces: tuple[str, ...]

    @classmethod
    def of(cls, name: str, spaces: str | Path | Sequence[str | Path]) -> Meaning:
        """Checked here, so that a wrong name or path shows at once."""
        meaning = cls(name, tuple(space_paths(spaces)))
        if needs_space(name) and not meaning.spaces:
            raise BuildError(f"{name} needs a space", hint="give space=…, a name or a path")
        meaning.measure()
        return meaning

    def measure(self) -> Measure:
        """The measure, over spaces that are mapped from disk."""
        spaces = [once(("space", path), partial(Space.open, path)) for path in self.spaces]
        return once((self.name, self.spaces), lambda: measure(self.name, spaces=spaces))


def register_related(
    spark: SparkSession,
    *,
    space: str | Path | Sequence[str | Path] = (),
    measure: str = "esa",
    name: str = "related",
) -> None:
    """Make `related(a, b)` and `related(a, b, theme_a, theme_b)` known to Spark SQL; themes are arrays of tags."""
    from pyspark.sql.pandas.functions import arrow_udf

    meaning = Meaning.of(measure, space)

    def related_columns(*columns: pa.Array) -> pa.Array:
        if len(columns) not in (2, 4):
            raise BuildError("related takes two terms, and perhaps two themes", hint="related(a, b, theme_a, theme_b)")
        return related(meaning.measure(), *columns)

    # The stubs know only functions of a fixed number of columns.
    spark.udf.register(name, arrow_udf(related_columns, "double"))  # type: ignore[call-overload]


def related(
    measure: Measure, left: pa.Array, right: pa.Array, left_theme: pa.Array = None, right_theme: pa.Array = None
) -> pa.Array:
    """Relatedness of two columns, row by row; each distinct combination is asked for once, null where a term is.

    Rows with the same themes are answered by whole matrices over their distinct terms, a block at a time.
    """
    out = np.full(len(left), np.nan)
    for rows, themes in _by_theme(left_theme, right_theme, len(left)):
        a, b = (_dictionary(column.take(rows)) for column in (left, right))
        scores = _pairs(measure, a, b, themes)
        out[rows.to_numpy()] = scores
    return pc.if_else(pc.and_(left.is_valid(), right.is_valid()), pa.array(out), pa.scalar(None, pa.float64()))


def _by_theme(left: pa.Array, right: pa.Array, count: int) -> Iterator[tuple[pa.Array, tuple[list[str], list[str]]]]:
    if left is None or right is None:
        yield pa.array(np.arange(count)), ([], [])
        return
    sides = [column.to_pylist() for column in (left, right)]
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for row, (one, other) in enumerate(zip(*sides, strict=True)):
        groups.setdefault((tuple(one or ()), tuple(other or ())), []).append(row)
    for (one, other), rows in groups.items():
        yield pa.array(rows), (list(one), list(other))


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    return pc.dictionary_encode(pc.fill_null(column, ""))


def _pairs(
    measure: Measure, left: pa.DictionaryArray, right: pa.DictionaryArray, themes: tuple[list[str], list[str]]
) -> np.ndarray[Any, Any]:
    a, b = (np.asarray(column.indices) for column in (left, right))
    others = right.dictionary.to_pylist()
    terms = left.dictionary.to_pylist()
    out = np.zeros(len(a))
    for start in range(0, len(terms), BLOCK):
        rows = np.flatnonzero((a >= start) & (a < start + BLOCK))
        needed, place = np.unique(b[rows], return_inverse=True)
        block = measure.matrix(
            terms[start : start + BLOCK],
            [others[at] for at in needed],
            subscription_theme=themes[0],
            event_theme=themes[1],
        )
        out[rows] = block[a[rows] - start, place]
    return out


@dataclass(frozen=True, slots=True)
class PairTask:
    """All pairs of terms that are related enough: each batch of left terms against all right terms."""

    meaning: Meaning
    right: tuple[str, ...]
    threshold: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        measure = self.meaning.measure()
        for batch in batches:
            terms = batch.column(0).to_pylist()
            for start in range(0, len(terms), BLOCK):
                yield self._block(measure, terms[start : start + BLOCK])

    def _block(self, measure: Measure, terms: list[str]) -> pa.RecordBatch:
        scores = measure.matrix(terms, self.right)
        row, column = np.nonzero(scores >= np.float32(self.threshold))
        columns = [
            pa.array([terms[at] for at in row], pa.string()),
            pa.array([self.right[at] for at in column], pa.string()),
            pa.array(scores[row, column].astype(np.float64)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_PAIRS)


def join_by_meaning(
    left: DataFrame,
    right: DataFrame,
    *,
    on: str | tuple[str, str],
    threshold: float = 0.5,
    space: str | Path | Sequence[str | Path] = (),
    measure: str = "esa",
    how: str = "inner",
) -> DataFrame:
    """Join rows whose words mean nearly the same; adds `relatedness`.

    Only the distinct terms of both sides are compared, in blocks on the workers. The distinct terms of the
    right side, which should be the one with fewer, are brought to the driver; `on` names the column, or one for each
    side. Columns of the same name keep it on the left and get `_right` added on the right.
    """
    from pyspark.sql import functions as F  # noqa: N812

    mine, theirs = (on, on) if isinstance(on, str) else on
    for frame, name in ((left, mine), (right, theirs)):
        if name not in frame.columns:
            raise BuildError(f"there is no column {name!r} to join on", hint=f"there are {', '.join(frame.columns)}")
    if how not in ("inner", "left"):
        raise BuildError(f"a join by meaning cannot be {how!r}", hint="inner or left")
    distinct = right.select(F.col(theirs).alias("_right")).where("_right is not null").distinct()
    terms = tuple(sorted(distinct.toArrow().column(0).to_pylist()))
    task = PairTask(Meaning.of(measure, space), terms, threshold)
    pairs = left.select(F.col(mine).alias("_left")).where("_left is not null").distinct()
    related_pairs = pairs.mapInArrow(task, PAIRS_SCHEMA)
    renamed = right.select(
        *(F.col(name).alias(f"{name}_right" if name in left.columns else name) for name in right.columns),
        F.col(theirs).alias("_right"),
    )
    joined = left.join(related_pairs, left[mine] == related_pairs["_left"], how).join(renamed, "_right", how)
    return joined.drop("_left", "_right")
