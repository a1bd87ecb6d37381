"""Meaning in SQL: `related(a, b)` as a function, `why_related(a, b)` for its reasons."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import BuildError, named_options
from likewise.events import TupleTable, theme_numbers
from likewise.pipeline.options import glossary_text, workers_run_this_python
from likewise.recipe import once, space_paths
from likewise.semantics import Competitors, Glossary, Measure, Space, measure, needs_space
from likewise.semantics.nearest import Theme

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Themes: TypeAlias = tuple[Theme, Theme]
Codes: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float32]
Spaces: TypeAlias = str | Path | Sequence[str | Path]

KEPT_PAIRS: Final = 2_000_000
"""Pairs that a worker caches for each pair of themes (12 bytes each)."""

KEPT_TERMS: Final = 500_000
"""Terms that a worker caches by number."""

KEPT_THEMES: Final = 64
"""Pairs of themes for which a worker caches pairs."""

WHY: Final = "array<struct<concept: string, weight: double>>"
ARROW_WHY: Final = pa.list_(pa.struct([("concept", pa.string()), ("weight", pa.float64())]))
REASONS: Final = 3
"""The number of reasons, at most."""


@dataclass(frozen=True)
class Meaning:
    """A measure by name, with its spaces by path and its options, made once in every process.

    A glossary is its text: it goes to the workers with the rest.
    """

    name: str
    spaces: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, name: str, spaces: Spaces, **options: Any) -> Meaning:
        """Checked here, so that a wrong name, path or option is reported at once."""
        options = {name: value for name, value in options.items() if value is not None}
        for terms in ("competitors", "background"):
            if options.get(terms) is not None and not isinstance(options[terms], Competitors):
                options[terms] = Competitors.of(options[terms])
        meaning = cls(name, tuple(space_paths(spaces)), tuple(sorted(options.items())))
        if needs_space(name) and not meaning.spaces:
            raise BuildError(f"{name} needs a space", hint="give spaces=…, a name or a path")
        meaning.measure()
        return meaning

    @cached_property
    def key(self) -> str:
        """Identifies a meaning, in any process."""
        return hashlib.sha256(pickle.dumps((self.name, self.spaces, self.options))).hexdigest()

    def measure(self) -> Measure:
        """The measure, over spaces that are mapped from disk."""
        return once(("measure", self.key), self._make)

    def _make(self) -> Measure:
        spaces = [once(("space", path), partial(Space.open, path)) for path in self.spaces]
        options = dict(self.options)
        if isinstance(options.get("glossary"), str):
            options["glossary"] = Glossary.from_text(options["glossary"])
        return measure(self.name, spaces=spaces, **options)


@named_options
def register_related(
    spark: SparkSession,
    *,
    spaces: Spaces = (),
    measure: str = "evidence",
    name: str = "related",
    competitors: Any = None,
    background: Any = None,
    glossary: str | Path | None = None,
    temperature: float | None = None,
    measure_options: Mapping[str, Any] | None = None,
) -> None:
    """Register `related(a, b)` and `related(a, b, theme_a, theme_b)` in Spark SQL, and `why_related` likewise.

    Themes are arrays of tags; without them, the whole space counts. Wrong arguments fail when a query is analysed.
    `glossary` is a file of abbreviations and synonyms, which is read here. `competitors`, `background`, `temperature`
    and `measure_options` go to the measure. The reasons are the strongest concepts that both terms share, an array of
    struct (concept, weight).
    """
    from pyspark.sql.pandas.functions import arrow_udf

    workers_run_this_python(spark)
    options = {"competitors": competitors, "background": background, "temperature": temperature}
    words = glossary_text(glossary, measure=measure)
    meaning = Meaning.of(measure, spaces, **{"glossary": words, **options, **(measure_options or {})})

    def related_columns(a: pa.Array, b: pa.Array, theme_a: pa.Array, theme_b: pa.Array) -> pa.Array:
        return related(meaning.measure(), a, b, theme_a, theme_b, known=once(("pairs", meaning.key), Known))

    def why_columns(a: pa.Array, b: pa.Array, theme_a: pa.Array, theme_b: pa.Array) -> pa.Array:
        return why(meaning.measure(), a, b, theme_a, theme_b)

    for called, function, kind in ((name, related_columns, "double"), (f"why_{name}", why_columns, WHY)):
        # When it analyses a query, Spark counts the arguments of SQL functions, but not those of Python functions.
        inner = f"likewise_{called}"
        spark.udf.register(inner, arrow_udf(function, kind))  # type: ignore[call-overload]  # its stubs miss plain functions
        spark.sql(
            f"create or replace temporary function {_quoted(called)}(a string, b string, "
            "theme_a array<string> default null, theme_b array<string> default null) "
            f"returns {kind} return {_quoted(inner)}(a, b, theme_a, theme_b)"
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Known:
    """A cache of scores, so that a column costs by its distinct pairs, not by its rows.

    A pair is one integer, made of the numbers of its terms; scores are found by binary search.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._by_theme: OrderedDict[Themes, tuple[Codes, Scores]] = OrderedDict()

    def numbers(self, terms: Sequence[str]) -> Codes:
        """A number for each term, the same at every call until `trim`."""
        numbers = self._numbers
        return np.fromiter((numbers.setdefault(term, len(numbers)) for term in terms), np.int64, len(terms))

    def scores(self, measure: Measure, codes: Codes, themes: Themes) -> Scores:
        """The scores of distinct pairs; only new pairs are computed."""
        known, scores = self._by_theme.setdefault(themes, (np.empty(0, np.int64), np.empty(0, np.float32)))
        self._by_theme.move_to_end(themes)
        at = np.searchsorted(known, codes)
        new = np.ones(len(codes), np.bool_)
        inside = at < len(known)
        new[inside] = known[at[inside]] != codes[inside]
        out = np.zeros(len(codes), np.float32)
        out[~new] = scores[at[~new]]
        if new.any():
            out[new] = self._ask(measure, codes[new], themes)
            self._add(codes[new], out[new], themes)
        return out

    def trim(self) -> None:
        """Drop entries beyond the limits."""
        while len(self._by_theme) > KEPT_THEMES:
            self._by_theme.popitem(last=False)
        if len(self._numbers) > KEPT_TERMS:
            self._numbers.clear()
            self._by_theme.clear()

    def _ask(self, measure: Measure, codes: Codes, themes: Themes) -> Scores:
        terms = list(self._numbers)
        left, right = ([terms[at] for at in side.tolist()] for side in (codes >> 32, codes & 0xFFFFFFFF))
        return measure.pairwise(left, right, subscription_theme=themes[0], event_theme=themes[1])

    def _add(self, codes: Codes, scores: Scores, themes: Themes) -> None:
        known, old = self._by_theme[themes]
        # Beyond the limit, only the new pairs stay.
        if len(known) + len(codes) <= KEPT_PAIRS:
            codes, scores = np.concatenate([known, codes]), np.concatenate([old, scores])
        order = np.argsort(codes, kind="stable")
        self._by_theme[themes] = codes[order], scores[order]


def related(
    measure: Measure,
    left: pa.Array,
    right: pa.Array,
    left_theme: pa.Array = None,
    right_theme: pa.Array = None,
    *,
    known: Known | None = None,
) -> pa.Array:
    """Relatedness of two columns, row by row, null where a term is; each distinct pair is computed once."""
    known = Known() if known is None else known
    both = pc.and_(left.is_valid(), right.is_valid())
    a, b = (_numbered(pc.if_else(both, column.cast(pa.string()), ""), known) for column in (left, right))
    codes = (a << 32) | b
    out = np.zeros(len(left))
    for rows, themes in _by_theme(left_theme, right_theme, len(left)):
        distinct = pa.array(codes[rows]).dictionary_encode()
        scores = known.scores(measure, np.asarray(distinct.dictionary), themes)
        out[rows] = scores[np.asarray(distinct.indices)]
    known.trim()
    return pc.if_else(both, pa.array(out), pa.scalar(None, pa.float64()))


def _numbered(column: pa.Array, known: Known) -> Codes:
    coded = pc.dictionary_encode(column)
    return np.asarray(known.numbers(coded.dictionary.to_pylist())[np.asarray(coded.indices)], np.int64)


def why(
    measure: Measure, left: pa.Array, right: pa.Array, left_theme: pa.Array = None, right_theme: pa.Array = None
) -> pa.Array:
    """The strongest shared concepts of each row's terms; null where a term is."""
    out: list[list[dict[str, Any]] | None] = [None] * len(left)
    pairs = list(zip(left.to_pylist(), right.to_pylist(), strict=True))
    for at, themes in _by_theme(left_theme, right_theme, len(left)):
        known_reasons: dict[Any, list[dict[str, Any]]] = {}
        for row in np.arange(len(left))[at].tolist():
            pair = pairs[row]
            if None not in pair:
                if pair not in known_reasons:
                    known_reasons[pair] = reasons(measure, *pair, themes=themes)
                out[row] = known_reasons[pair]
    return pa.array(out, ARROW_WHY)


def reasons(
    measure: Measure, left: str, right: str, *, themes: Themes = ((), ()), limit: int = REASONS
) -> list[dict[str, Any]]:
    """The strongest shared concepts of two terms."""
    found = measure.reason(left, right, subscription_theme=themes[0], event_theme=themes[1], limit=limit)
    return [{"concept": shared.concept, "weight": shared.weight} for shared in found]


def _by_theme(left: pa.Array, right: pa.Array, count: int) -> list[tuple[Any, Themes]]:
    """Groups of rows with the same themes."""
    if left is None or right is None:
        return [(slice(None), ((), ()))]
    (mine, a), (theirs, b) = (_distinct_themes(column) for column in (left, right))
    found, rows = np.unique(a * len(theirs) + b, return_inverse=True)
    if len(found) == 1:
        return [(slice(None), (_sorted(mine[a[0]]), _sorted(theirs[b[0]])))] if count else []
    return [
        (np.flatnonzero(rows == at), (_sorted(mine[number // len(theirs)]), _sorted(theirs[number % len(theirs)])))
        for at, number in enumerate(found.tolist())
    ]


def _distinct_themes(column: pa.ListArray) -> tuple[list[tuple[str, ...]], Codes]:
    """Distinct themes, and the number of each row's theme among them."""
    table = TupleTable()
    codes = theme_numbers(column, table)
    return table.themes, codes.astype(np.int64)


def _sorted(theme: Sequence[str]) -> Theme:
    return tuple(sorted(set(theme)))
