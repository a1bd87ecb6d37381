"""A join by meaning of two Arrow tables, in this process: what `join_by_meaning` gives, without Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import BuildError, named_options
from likewise.pipeline.joins.join import how_of, new_names
from likewise.pipeline.joins.rivals import margins, scoring
from likewise.pipeline.joins.rivals import one_to_one as settle
from likewise.pipeline.joins.sql import ARROW_WHY, reasons
from likewise.semantics import Measure
from likewise.semantics.nearest import CHUNK, Bar, Pairs, near_pairs

Rows = NDArray[np.int64]


@named_options
def join_tables(
    left: pa.Table,
    right: pa.Table,
    *,
    on: tuple[str, str],
    measure: Measure,
    threshold: float | None = None,
    best: int | None = None,
    how: str = "inner",
    with_explanation: bool = False,
    with_margin: bool = False,
    one_to_one: bool = False,
    score: str = "relatedness",
    suffix: str = "_right",
) -> pa.Table:
    """Rows of two tables whose words mean nearly the same, in the order of the left; arguments of `join_by_meaning`."""
    how, bar = how_of(how), Bar.of(threshold, best)
    (mine, a), (theirs, b) = (_terms(table, name) for table, name in zip((left, right), on, strict=True))
    if one_to_one and best is not None:
        raise BuildError("one_to_one chooses the partners", hint="leave out best, give a threshold")
    scored = scoring(measure, rivals=len(theirs) <= CHUNK)
    pairs = near_pairs(scored, mine, theirs, bar)
    if one_to_one:
        pairs = settle(pairs)
    if how in ("left_semi", "left_anti"):
        found = np.isin(np.arange(left.num_rows), _spread(a, pairs.left)[0])
        return left.filter(pa.array(found if how == "left_semi" else ~found))
    added = [score, *(["margin"] if with_margin else []), *(["why"] if with_explanation else [])]
    renamed = new_names(left.schema.names, right.schema.names, suffix=suffix, added=added)
    joined = _joined(a, b, pairs, how=how)
    columns = {name: left[name].take(joined.left) for name in left.schema.names}
    columns |= {renamed[name]: right[name].take(joined.right) for name in right.schema.names}
    columns[score] = pa.array(pairs.relatedness.astype(np.float64)).take(joined.pair)
    if with_margin:
        sure = margins(pairs, near_pairs(scored, mine, theirs, Bar(0.0, 2)))
        columns["margin"] = pa.array(sure).take(joined.pair)
    if with_explanation:
        why = [reasons(measure, theirs[j], mine[i]) for i, j in zip(pairs.left, pairs.right, strict=True)]
        columns["why"] = pa.array(why, ARROW_WHY).take(joined.pair)
    return pa.table(columns)


class _Joined(NamedTuple):
    """Rows of the result: the row of each side and the pair of terms that joined them, null where there is none."""

    left: pa.Array
    right: pa.Array
    pair: pa.Array


def _joined(a: Rows, b: Rows, pairs: Pairs, *, how: str) -> _Joined:
    """Every row of each side beside every row of the other whose terms make a pair; `a` and `b` are term numbers."""
    at, pair = _spread(a, pairs.left)
    order = np.argsort(b, kind="stable")
    index, place = _spread(pairs.right[pair], b[order])
    rows, others, used = at[index], order[place], pair[index]
    lonely = _missing(rows, len(a)) if how in ("left", "full") else rows[:0]
    unasked = _missing(others, len(b)) if how in ("right", "full") else rows[:0]
    nothing = [None] * (len(lonely) + len(unasked))
    return _Joined(
        pa.array([*rows, *lonely, *nothing[: len(unasked)]], pa.int64()),
        pa.array([*others, *nothing[: len(lonely)], *unasked], pa.int64()),
        pa.array([*used, *nothing], pa.int64()),
    )


def _terms(table: pa.Table, name: str) -> tuple[list[str], Rows]:
    """The distinct terms of a column in order, and the number of each row's; -1 for null."""
    if name not in table.schema.names:
        known = ", ".join(table.schema.names)
        raise BuildError(f"there is no column {name!r} to join on", hint=f"there are {known}")
    column = table[name].combine_chunks()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise BuildError(f"the column {name!r} is {column.type}, not text", hint="words are joined, not numbers")
    terms = sorted(pc.unique(column.drop_null()).to_pylist())
    places = pc.fill_null(pc.index_in(column, pa.array(terms, column.type)), -1)
    return terms, np.asarray(places, np.int64)


def _spread(wanted: Rows, there: Rows) -> tuple[Rows, Rows]:
    """Each place of `wanted` beside each place of the same number in `there`, which is in order.

    >>> [part.tolist() for part in _spread(np.array([1, -1, 0]), np.array([0, 1, 1]))]
    [[0, 0, 2], [1, 2, 0]]
    """
    start, end = (np.searchsorted(there, wanted, side=side) for side in ("left", "right"))
    sizes = np.where(wanted >= 0, end - start, 0)
    index = np.repeat(np.arange(len(wanted)), sizes)
    offset = np.arange(len(index)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return index, np.repeat(start, sizes) + offset


def _missing(places: Rows, count: int) -> Rows:
    return np.setdiff1d(np.arange(count), places)
