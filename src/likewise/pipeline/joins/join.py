"""A join of two tables by what their words mean.

Only distinct terms are compared, on the workers; rows are then joined by Spark's own joins over the pairs found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from likewise.errors import BuildError, named_options
from likewise.pipeline.events.frame import column, folding
from likewise.pipeline.joins.pairs import NEAR, SCORE, SMALL, NearColumn, TermPairs, WhyTask
from likewise.pipeline.joins.rivals import one_to_one
from likewise.pipeline.joins.sql import WHY, Meaning, Spaces
from likewise.pipeline.options import check_frame, glossary_text
from likewise.semantics.nearest import TAG, Bar, Pairs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# The columns that a join by meaning compares, and the names of its result: checked before anything runs.


Names: TypeAlias = str | tuple[str, str] | Mapping[str, str] | Sequence[str | tuple[str, str]]
"""A column of both sides, or one of each (left, right); a mapping or a list where there are several."""

HOW = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "outer": "full",
    "full": "full",
    "fullouter": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}


def pairs_of(names: Names) -> tuple[tuple[str, str], ...]:
    """Columns by pairs, left and right.

    >>> pairs_of("device"), pairs_of(("device", "name"))
    ((('device', 'device'),), (('device', 'name'),))
    >>> pairs_of(["device", ("room", "place")]) == pairs_of({"device": "device", "room": "place"})
    True
    """
    if isinstance(names, str):
        return ((names, names),)
    if isinstance(names, Mapping):
        return tuple(names.items())
    if isinstance(names, tuple) and len(names) == 2 and all(isinstance(name, str) for name in names):
        return ((str(names[0]), str(names[1])),)
    return tuple((name, name) if isinstance(name, str) else (name[0], name[1]) for name in names)


def how_of(how: str) -> str:
    """Spark's name of a kind of join.

    >>> how_of("left_outer"), how_of("FULL"), how_of("anti")
    ('left', 'full', 'left_anti')
    """
    found = HOW.get(how.lower().replace("_", ""))
    if found is None:
        raise BuildError(
            f"a join by meaning cannot be {how!r}", hint="one of inner, left, right, full, left_semi, left_anti"
        )
    return found


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One table, with columns added for the keys that it is joined by."""

    frame: DataFrame
    on: tuple[str, ...]
    equal: tuple[str, ...]
    theme: str | None
    letter: str

    @classmethod
    def of(cls, frame: DataFrame, on: Sequence[str], equal: Sequence[str], theme: str | None, letter: str) -> JoinSide:
        """A side with names as the table spells them; they are compared as Spark compares them."""
        fold = folding(frame)
        present = frame.columns
        if len({fold(name) for name in present}) < len(present):
            raise BuildError(
                "a table has two columns of the same name", hint=f"rename one: there are {', '.join(present)}"
            )

        def spelt(name: str) -> str:
            found = [other for other in present if fold(other) == fold(name)]
            if found:
                return found[0]
            near = get_close_matches(name, present, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(present)}"
            raise BuildError(f"there is no column {name!r} to join on", hint=hint)

        return cls(
            frame, tuple(map(spelt, on)), tuple(map(spelt, equal)), None if theme is None else spelt(theme), letter
        )

    @property
    def keys(self) -> list[str]:
        """The names of the added keys by meaning."""
        return [f"_likewise_{self.letter}{at}" for at in range(len(self.on))]

    @property
    def same(self) -> list[str]:
        """The names of the added keys that must be equal; alike on both sides."""
        return [f"_likewise_same{at}" for at in range(len(self.equal))]

    def check(self) -> None:
        """Every column holds text where it must."""
        types = dict(self.frame.dtypes)
        for name in self.on:
            if re.split(r"[( ]", types[name])[0] not in ("string", "char", "varchar"):
                raise BuildError(
                    f"the column {name!r} is {types[name]}, not text", hint=f"cast it: F.col('{name}').cast('string')"
                )
        if self.theme and types[self.theme] not in ("string", "array<string>"):
            raise BuildError(f"the column {self.theme!r} is no theme", hint="a theme is a tag or an array of tags")

    def keyed(self, rename: Mapping[str, str] | None = None) -> DataFrame:
        """The table with its keys, and with other names for its own columns where they are given."""
        rename = rename or {}
        own = [column(name).alias(rename.get(name, name)) for name in self.frame.columns]
        keys = [self._key(name).alias(key) for name, key in zip(self.on, self.keys, strict=True)]
        same = [column(name).alias(key) for name, key in zip(self.equal, self.same, strict=True)]
        return self.frame.select(*own, *keys, *same)

    def _key(self, name: str) -> Column:
        from pyspark.sql import functions as F

        text = column(name).cast("string")  # without its collation: pairs are joined by the very text
        if self.theme is None:
            return text
        theme = column(self.theme)
        tags = F.array(theme) if dict(self.frame.dtypes)[self.theme] == "string" else theme
        ordered = F.array_sort(F.array_distinct(F.array_compact(F.coalesce(tags, F.array()))))
        return F.when(text.isNotNull(), F.concat_ws(TAG, F.translate(text, TAG, " "), ordered))


def new_names(
    left: Sequence[str],
    right: Sequence[str],
    *,
    suffix: str,
    added: Iterable[str],
    fold: Callable[[str], str] = str.lower,
) -> dict[str, str]:
    """The names of the right side's columns in the result, distinct from those of the left.

    >>> new_names(["id", "word"], ["ID", "term"], suffix="_right", added=["relatedness"])
    {'ID': 'ID_right', 'term': 'term'}
    """
    taken = {fold(name) for name in left}
    renamed = {name: f"{name}{suffix}" if fold(name) in taken else name for name in right}
    for name in (*renamed.values(), *added):
        if not name:
            raise BuildError("a column of the result has no name", hint="choose another score")
        if fold(name) in taken:
            raise BuildError(
                f"the result would have two columns {name!r}",
                hint="choose another suffix or score, or rename a column",
            )
        taken.add(fold(name))
    return renamed


# Names that no table of a user has.
LIST, RANK = "_likewise_list", "_likewise_rank"


@named_options
def join_by_meaning(
    left: DataFrame,
    right: DataFrame,
    *,
    on: Names,
    threshold: float | None = None,
    best: int | None = None,
    spaces: Spaces = (),
    measure: str = "evidence",
    how: str = "inner",
    equal: Names = (),
    themes: str | tuple[str, str] | None = None,
    with_explanation: bool = False,
    with_margin: bool = False,
    one_to_one: bool = False,
    score: str = "relatedness",
    suffix: str = "_right",
    competitors: Any = None,
    background: Any = None,
    glossary: str | Path | None = None,
    temperature: float | None = None,
    measure_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Join rows with terms of nearly the same meaning; adds the column `relatedness`.

    With `evidence`, relatedness is a probability, which is lower if another term of the right fits better.

    `on` is a column of both sides, a pair (left, right), or several as a list or mapping: then each pair must reach
    the `threshold`, and `relatedness` is their geometric mean. Columns of `equal` must also be equal. `best` keeps that
    many nearest terms of the right for each term of the left. The threshold is 0.5 by default; with `best`, any
    relatedness above 0 counts. The right side has the general term and the left the specific one: a `fan` on the right
    takes a `ceiling fan`. `how` is inner, left, right, full, left_semi or left_anti; null joins nothing.

    `with_explanation` adds `why`, the strongest reasons for the score. `with_margin` adds `margin`, the score minus
    that of the best other partner. `one_to_one` gives each term at most one partner, so that the sum of scores is
    greatest. Columns of the right that the left has too get the `suffix`.

    `themes` are columns with the tags of each row, for measures that use them. `glossary` is a file of abbreviations
    and synonyms for `evidence`; the driver reads it. `competitors`, `background`, `temperature` and `measure_options`
    are options of the measure.

    The left may be a stream. If the right has at most 20,000 distinct terms, they are collected on the driver; a stream
    needs this. Otherwise both sides are compared in groups.
    """
    pairs, same = pairs_of(on), pairs_of(equal)
    tags = (None, None) if themes is None else pairs_of(themes)[0]
    for side in (left, right):
        check_frame(side)
    mine = JoinSide.of(left, [a for a, _ in pairs], [a for a, _ in same], tags[0], "left")
    theirs = JoinSide.of(right, [b for _, b in pairs], [b for _, b in same], tags[1], "right")
    bar = Bar.of(threshold, best, themed=themes is not None)
    options = {"competitors": competitors, "background": background, "temperature": temperature}
    words = glossary_text(glossary, measure=measure)
    meaning = Meaning.of(measure, spaces, **{"glossary": words, **options, **(measure_options or {})})
    join = MeaningJoin(mine, theirs, meaning, bar, how_of(how), with_explanation, with_margin, one_to_one)
    join.check()
    more = [*(["margin"] if with_margin else ()), *(["why"] if with_explanation else ())]
    added = [] if join.half else [score, *more]
    renamed = {}
    if not join.half:
        renamed = new_names(left.columns, right.columns, suffix=suffix, added=added, fold=folding(left))
    found = join.streamed(renamed) if left.isStreaming else join.joined(renamed)
    if join.half:
        return found.select(*map(column, left.columns))
    own = [column(name) for name in (*left.columns, *renamed.values())]
    return found.select(*own, column(SCORE).alias(score), *more)


@dataclass(frozen=True)
class MeaningJoin:
    """The two sides of a join, the measure and threshold, and the options of the result."""

    left: JoinSide
    right: JoinSide
    meaning: Meaning
    bar: Bar
    how: str
    explain: bool
    margin: bool = False
    one_to_one: bool = False

    @property
    def half(self) -> bool:
        """Whether the result has only rows of the left side."""
        return self.how in ("left_semi", "left_anti")

    @property
    def simple(self) -> bool:
        """Whether there is one column only, so that workers can choose the best."""
        return len(self.left.on) == 1 and not self.left.equal

    def check(self) -> None:
        """Refuse combinations that cannot work, before any task runs."""
        if not self.left.on:
            raise BuildError("a join by meaning needs a column to go by", hint="on='device' or on=('device', 'name')")
        for side in (self.left, self.right):
            side.check()
        if self.explain and (len(self.left.on) > 1 or self.half):
            raise BuildError(
                "reasons are given for one column, in a join that keeps both sides", hint="with_explanation=False"
            )
        self._check_settling()
        if self.right.frame.isStreaming:
            raise BuildError(
                "the right side of a join by meaning cannot be a stream", hint="put the stream on the left"
            )
        if self.left.frame.isStreaming:
            self._check_stream()

    def _check_settling(self) -> None:
        if not (self.margin or self.one_to_one):
            return
        option = "one_to_one" if self.one_to_one else "with_margin"
        if not self.simple or self.left.frame.isStreaming:
            raise BuildError(
                f"{option} is for a batch joined by one column alone", hint="leave out equal and other columns"
            )
        if self.margin and self.half:
            raise BuildError("a join that keeps only the left side has no margins", hint="with_margin=False")
        if self.one_to_one and self.bar.best is not None:
            raise BuildError("one_to_one chooses the partners", hint="leave out best, give a threshold")

    def _check_stream(self) -> None:
        if not self.simple and (len(self.left.on) > 1 or self.how != "inner" or self.bar.best is not None):
            raise BuildError(
                "a stream is joined by one column of meaning",
                hint="with equal=… only how='inner' and no best=…; more in foreachBatch",
            )
        if self.how in ("right", "full"):
            raise BuildError(
                f"a stream cannot be joined {self.how}: it has no end to wait for",
                hint="inner, left, left_semi or left_anti",
            )
        if self.explain:
            raise BuildError("reasons are not given in a stream", hint="why_related(…) of register_related gives them")

    def joined(self, renamed: dict[str, str]) -> DataFrame:
        """The rows of both sides over the pairs of their terms."""
        if self._single_scan:
            return self.streamed(renamed)
        pairs = self._pairs()
        left = self.left.keyed()
        keys = [*self.left.keys, *self.left.same]
        if self.half:
            return left.join(pairs.select(*keys).distinct(), keys, self.how)
        first = {"inner": "inner", "left": "left", "right": "inner", "full": "full"}[self.how]
        right = self.right.keyed(renamed)
        return left.join(pairs, keys, first).join(right, [*self.right.keys, *self.right.same], self.how)

    @property
    def _single_scan(self) -> bool:
        """Whether each row of the left can get its list of near terms by itself, so that the left is read only once."""
        alone = self.simple or (len(self.left.on) == 1 and self.how == "inner" and self.bar.best is None)
        settled = self.margin or self.one_to_one or self.explain
        return alone and not settled and self._near[0].small is not None

    def streamed(self, renamed: dict[str, str]) -> DataFrame:
        """Row by row: each row gets its list of near terms. This works for streams, whose terms are never complete."""
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.functions import arrow_udf

        terms = self._near[0].small
        if terms is None:
            raise BuildError(
                f"the right side has more than {SMALL:,} distinct terms, too many for a stream",
                hint="filter it, or join each micro-batch in foreachBatch",
            )
        task = NearColumn(self.meaning, terms, self._near[0].bar, self.simple)

        def LikewiseJoin(column: pa.Array) -> pa.Array:  # noqa: N802 - its name in Spark's plan
            return task(column)

        near = arrow_udf(LikewiseJoin, NEAR)  # type: ignore[call-overload]  # its stubs miss plain functions
        left = self.left.keyed()
        if not left.isStreaming:
            left = self._near[0].spread_out(left)
        listed = left.withColumn(LIST, near(F.col(self.left.keys[0])))
        if self.half:
            found = F.coalesce(F.size(LIST), F.lit(0)) > 0
            return listed.where(found if self.how == "left_semi" else ~found)
        # From `inline`, Spark would infer that lists are not empty, and compute each list twice to filter by that.
        pairs = listed.selectExpr(*(f"`{name}`" for name in map(_quoted, left.columns)), f"inline_outer({LIST})")
        pairs = pairs.withColumnsRenamed({"_likewise_near": self.right.keys[0]})
        right = self.right.keyed(renamed)
        if self._near[0].few_rows:
            right = F.broadcast(right)
        return pairs.join(right, [*self.right.keys, *self.right.same], self.how)

    @cached_property
    def _near(self) -> list[TermPairs]:
        """The terms of each column of `on`; workers keep only the best if there is one column only."""
        bar = self.bar if self.simple else replace(self.bar, best=None)
        columns = [
            [side.keyed().select(key).where(f"{key} is not null") for key in side.keys]
            for side in (self.left, self.right)
        ]
        both = zip(*columns, strict=True)
        return [TermPairs(mine, theirs, self.meaning, bar, self.margin, self.simple) for mine, theirs in both]

    def _pairs(self) -> DataFrame:
        """Pairs of keys with their score, and `why` if asked for: a row for each distinct combination."""
        from pyspark.sql import functions as F

        found = self._near[0].frame()
        if self.simple:
            names = [self.left.keys[0], self.right.keys[0], SCORE, *(["margin"] if self.margin else ())]
            whole = self._best(found.toDF(*names))
            if self.one_to_one:
                whole = _settled(whole)
            return self._why(whole) if self.explain else whole
        mine, theirs = (_combinations(side) for side in (self.left, self.right))
        found = found.toDF(self.left.keys[0], self.right.keys[0], f"{SCORE}0")
        found = mine.join(found, self.left.keys[0]).join(theirs, [self.right.keys[0], *self.left.same])
        for at in range(1, len(self.left.on)):
            keys = [self.left.keys[at], self.right.keys[at]]
            found = found.join(self._near[at].frame().toDF(*keys, f"{SCORE}{at}"), keys)
        count = len(self.left.on)
        mean = F.expr("pow(" + " * ".join(f"{SCORE}{at}" for at in range(count)) + f", 1.0 / {count})")
        whole = self._best(found.withColumn(SCORE, mean if count > 1 else F.col(f"{SCORE}0")))
        whole = whole.drop(*(f"{SCORE}{at}" for at in range(count)))
        return self._why(whole) if self.explain else whole

    def _best(self, pairs: DataFrame) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        if self.bar.best is None or (self.simple and self._near[0].small is not None):
            return pairs
        very_same = F.lit(True)
        for mine, theirs in zip(self.left.keys, self.right.keys, strict=True):
            very_same = very_same & (F.col(mine) == F.col(theirs))
        order = [F.col(SCORE).desc(), very_same.desc(), *map(F.col, self.right.keys)]
        window = Window.partitionBy(*self.left.keys, *self.left.same).orderBy(*order)
        ranked = pairs.withColumn(RANK, F.row_number().over(window))
        return ranked.where(F.col(RANK) <= self.bar.best).drop(RANK)

    def _why(self, pairs: DataFrame) -> DataFrame:
        """Explanations take longest, so they are computed last, and once for each pair."""
        keys = [self.left.keys[0], self.right.keys[0]]
        task = WhyTask(self.meaning, self.bar.themed)
        reasons = pairs.select(*keys).distinct().mapInArrow(task, f"{keys[0]} string, {keys[1]} string, why {WHY}")
        return pairs.join(reasons, keys)


def _settled(pairs: DataFrame) -> DataFrame:
    """The best assignment of pairs, computed on the driver."""
    table = pairs.toArrow()
    codes = [table.column(at).combine_chunks().dictionary_encode().indices for at in (0, 1)]
    left, right = (np.asarray(column.to_numpy(zero_copy_only=False), np.int64) for column in codes)
    # Pairs in the order of terms, so that every run gives the same assignment.
    order = np.lexsort((right, left))
    scores = table.column(2).to_numpy().astype(np.float32)
    chosen = one_to_one(Pairs(left[order], right[order], scores[order]))
    wanted = {(a, b) for a, b in zip(chosen.left.tolist(), chosen.right.tolist(), strict=True)}
    kept = [at for at, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True)) if pair in wanted]
    return pairs.sparkSession.createDataFrame(table.take(pa.array(kept, pa.int64())), schema=pairs.schema)


def _combinations(side: JoinSide) -> DataFrame:
    keys = [*side.keys, *side.same]
    return side.keyed().select(*keys).dropna("any").distinct()


def _quoted(name: str) -> str:
    return name.replace("`", "``")
