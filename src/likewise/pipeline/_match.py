"""Matching on Spark: stateless, in Arrow batches, with the matcher that runs everywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.matching import Match, Matcher
from likewise.pipeline._arrow import encode
from likewise.pipeline._frame import events_of, packed, unpacked, written
from likewise.pipeline._worker import Interests, Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAPPING: Final = (
    "array<struct<attribute: string, event_attribute: string, value: string, event_value: string, "
    "similarity: double, probability: double>>"
)
MATCHES_SCHEMA: Final = (
    f"event_id string, time timestamp, subscription string, score double, probability double, mapping {MAPPING}"
)
"""A row for each match; `mapping` has an entry for every predicate, `probability` is that of the mapping."""

_CORRESPONDENCE = pa.struct(
    [
        ("attribute", pa.string()),
        ("event_attribute", pa.string()),
        ("value", pa.string()),
        ("event_value", pa.string()),
        ("similarity", pa.float64()),
        ("probability", pa.float64()),
    ]
)
ARROW_MATCHES: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("subscription", pa.string()),
        ("score", pa.float64()),
        ("probability", pa.float64()),
        ("mapping", pa.list_(_CORRESPONDENCE)),
    ]
)


def match(
    events: DataFrame,
    subscriptions: Interests,
    *,
    space: str | Path | Sequence[str | Path] = (),
    measure: str | None = None,
    approach: str | None = None,
    threshold: float | None = None,
    explain: bool = True,
    **options: Any,
) -> DataFrame:
    """Every match of events and subscriptions, a row each; batch and streaming DataFrames alike.

    `space` are spaces by name or path: each worker maps them from that path. `explain` adds the best mapping and
    its probability, which costs time for every match. Other options are those of `Matcher`.
    """
    recipe = Recipe.of(
        subscriptions,
        measure=measure,
        spaces=space,
        options={"approach": approach, "threshold": threshold, **options},
    )
    return match_with(events, recipe, explain=explain)


def match_with(events: DataFrame, recipe: Recipe, *, explain: bool = True) -> DataFrame:
    """The same, with everything said in a recipe."""
    if recipe.patterns:
        raise BuildError(f"{recipe.patterns[0].name!r} is a pattern", hint="patterns are for detect")
    recipe.check()
    # One tuple for one predicate is decided only when the mapping is made.
    explained = explain or bool(dict(recipe.options).get("distinct"))
    return packed(events).mapInArrow(MatchTask(recipe, explained), MATCHES_SCHEMA)


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches the batches of a partition inside a worker."""

    recipe: Recipe
    explain: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.recipe.matcher()
        names = pa.array([subscription.name for subscription in self.recipe.profiles], pa.string())
        for batch in batches:
            if batch.num_rows:
                yield match_rows(matcher, unpacked(batch), names, explain=self.explain)


def match_rows(matcher: Matcher, batch: pa.RecordBatch, names: pa.Array, *, explain: bool) -> pa.RecordBatch:
    """The matches of one batch. Handles count up from 0 in the order of subscriptions, so they index `names`."""
    found = matcher.score_batch(encode(matcher, batch))
    order = np.lexsort((found.handle, found.event))
    which, subscription = found.event[order], names.take(pa.array(found.handle[order]))
    score, probability = found.score[order].astype(np.float64), pa.nulls(len(which), pa.float64())
    mapping = pa.nulls(len(which), ARROW_MATCHES.field("mapping").type)
    if explain:
        matches = _matches(matcher, batch, which, subscription.to_pylist())
        kept = np.array([each is not None for each in matches], np.bool_)
        which, subscription = which[kept], subscription.filter(pa.array(kept))
        told = [each for each in matches if each is not None]
        score = np.array([each.score for each in told], np.float64)
        probability = pa.array([each.mapping.probability if each.mapping else None for each in told], pa.float64())
        mapping = pa.array([mapping_rows(each) for each in told], mapping.type)
    rows = pa.array(which)
    columns = [
        batch.column("id").take(rows).cast(pa.string()),
        batch.column("time").take(rows).cast(ARROW_MATCHES.field("time").type),
        subscription,
        pa.array(score),
        probability,
        mapping,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_MATCHES)


def _matches(
    matcher: Matcher, batch: pa.RecordBatch, which: NDArray[np.int32], names: Sequence[str]
) -> list[Match | None]:
    """The match of every pair that scored; events are made only for rows that matched.

    A pair has none where the matcher lets a tuple answer one predicate only and the second look refused it.
    """
    hit, place = np.unique(which, return_inverse=True)
    events = list(events_of(batch.take(pa.array(hit))))
    matches = [{each.subscription: each for each in row} for row in matcher.match_batch(events)]
    return [matches[at].get(name) for at, name in zip(place.tolist(), names, strict=True)]


def mapping_rows(match: Match) -> list[dict[str, object]]:
    """The best mapping as plain values, in the order of predicates."""
    if match.mapping is None:
        return []
    return [
        {
            "attribute": each.predicate.attribute,
            "event_attribute": each.tuple[0],
            "value": shown(each.predicate.value),
            "event_value": written(each.tuple[1])[0],
            "similarity": each.similarity,
            "probability": each.probability,
        }
        for each in match.mapping.correspondences
    ]


def shown(value: Any) -> str:
    """The value of a predicate as text; a range as it is written in the language."""
    from likewise.language import Range

    if not isinstance(value, Range):
        return written(value)[0]
    low, high = "[" if value.low_closed else "(", "]" if value.high_closed else ")"
    return f"{low}{written(value.low)[0]}, {written(value.high)[0]}{high}"
