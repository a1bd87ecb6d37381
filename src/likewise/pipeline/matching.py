"""Matching on Spark: stateless, in Arrow batches, with the matcher that runs everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from likewise.errors import BuildError, named_options
from likewise.events import BatchColumns, EventColumns
from likewise.matching import EventScores, Match, Matcher
from likewise.pipeline.background import BackgroundChoice, given_background, informed
from likewise.pipeline.events.frame import Keep, column, watermark_of, written
from likewise.pipeline.events.keep import kept_fields
from likewise.pipeline.events.table import with_fields
from likewise.pipeline.events.transfer import Batches, over_events, with_watermark
from likewise.pipeline.options import Subscriptions, check_frame, glossary_text, interests
from likewise.recipe import Interests, Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAPPING: Final = (
    "array<struct<attribute: string, event_attribute: string, value: string, event_value: string, "
    "similarity: double, probability: double>>"
)
MATCHES_SCHEMA: Final = (
    f"event_id string, time timestamp_ltz, subscription string, score double, probability double, mapping {MAPPING}"
)
"""A row for each match; `mapping` has an entry for every predicate, `probability` is that of the mapping."""

MATCH_COLUMNS: Final = ("event_id", "time", "subscription", "score", "probability", "mapping")

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

SCORES_SCHEMA: Final = "event_id string, time timestamp_ltz, subscription array<int>, score array<float>"
"""A row for each event that matches: the result of workers if no explanation is wanted."""
ARROW_SCORES: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("subscription", pa.list_(pa.int32())),
        ("score", pa.list_(pa.float32())),
    ]
)


@named_options
def match(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    spaces: str | Path | Sequence[str | Path] = (),
    measure: str | None = None,
    approach: str | None = None,
    threshold: float | None = None,
    with_explanation: bool = True,
    keep: Keep = (),
    aggregation: str | None = None,
    top_k: int | None = None,
    distinct: bool | None = None,
    competitors: Any = None,
    background: BackgroundChoice = "stream",
    glossary: str | Path | None = None,
    temperature: float | None = None,
    attribute_weight: float | None = None,
    taxonomy: Any = None,
) -> DataFrame:
    """Every match of events and subscriptions, a row each; for batch and streaming DataFrames.

    Subscriptions are text, the path of a file, a list of texts, a mapping from names to texts, a DataFrame (columns
    `name`, `subscription`), or parsed ones. `spaces` are spaces by name or path: each worker maps them from that path.
    `with_explanation` adds the best mapping and its probability, which takes time for every match. `keep` names columns
    of the input that the result has too (`"*"`: all that are not part of the event). `glossary` is a file of
    abbreviations and synonyms. `background` is a sample of the stream: by default the first 256 events of a batch,
    which a small job reads when the plan is built; a streaming DataFrame has one only if it is given, and None switches
    it off. Other options are those of `Matcher`.
    """
    options = {
        "approach": approach,
        "threshold": threshold,
        "aggregation": aggregation,
        "top_k": top_k,
        "distinct": distinct,
        "competitors": competitors,
        "background": given_background(background),
        "temperature": temperature,
        "attribute_weight": attribute_weight,
        "taxonomy": taxonomy,
    }
    recipe = recipe_of(interests(subscriptions), spaces=spaces, measure=measure, glossary=glossary, **options)
    if not recipe.profiles:
        raise BuildError("there is no subscription to match", hint="such as {'hot': '{temp > 30}'}")
    check_frame(events)
    recipe = informed(recipe, events, background)
    return match_with(events, recipe, with_explanation=with_explanation, keep=keep)


def recipe_of(
    subscriptions: Interests,
    *,
    spaces: str | Path | Sequence[str | Path] = (),
    measure: str | None = None,
    glossary: str | Path | None = None,
    **options: Any,
) -> Recipe:
    """The recipe of a matcher, checked."""
    options["glossary"] = glossary_text(glossary, measure=measure)
    return _checked(Recipe.of(subscriptions, measure=measure, spaces=spaces, options=options))


def _checked(recipe: Recipe) -> Recipe:
    if recipe.patterns:
        raise BuildError(f"{recipe.patterns[0].name!r} is a pattern", hint="patterns are for detect")
    recipe.check()
    return recipe


def match_with(events: DataFrame, recipe: Recipe, *, with_explanation: bool = True, keep: Keep = ()) -> DataFrame:
    """As `match`, with a recipe."""
    recipe = _checked(recipe)
    fields = kept_fields(events, keep, taken=MATCH_COLUMNS)
    kept = fields.names
    # Only a mapping tells whether distinct tuples answer distinct predicates.
    explained = with_explanation or bool(dict(recipe.options).get("distinct"))
    task = MatchTask(recipe, len(kept)) if explained else ScoreTask(recipe, len(kept))
    schema = with_fields(MATCHES_SCHEMA if explained else SCORES_SCHEMA, fields)
    found = over_events(events, task, schema, kept=kept, name="LikewiseMatch")
    matches = with_watermark(found if explained else _rows_of(found, recipe, kept), watermark_of(events))
    if not matches.isStreaming:
        return matches
    from likewise.pipeline.detection.stream import watched

    # What counts or deduplicates them has state, too.
    return watched(matches)


def _rows_of(scored: DataFrame, recipe: Recipe, kept: Sequence[str]) -> DataFrame:
    """A row for each match from a row for each event. Names are added here, by Spark, rather than sent by workers."""
    from pyspark.sql import functions as F

    # As a subquery: Spark shows a literal in full, even thousands of names.
    listed = pa.table({"names": [[profile.name for profile in recipe.profiles]]})
    names = scored.sparkSession.createDataFrame(listed, "names array<string>").scalar()
    own = [column(name) for name in kept]
    place, number = "_likewise_place", "_likewise_number"
    each_match = scored.select("event_id", "time", "score", *own, F.posexplode("subscription").alias(place, number))
    kind = {name.name: name.dataType for name in _schema(MATCHES_SCHEMA)}
    return each_match.select(
        "event_id",
        "time",
        F.get(names, F.col(number)).alias("subscription"),
        F.get("score", F.col(place)).cast("double").alias("score"),
        *(F.lit(None).cast(kind[name]).alias(name) for name in ("probability", "mapping")),
        *own,
    )


def _schema(text: str) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(text)


@dataclass(frozen=True, slots=True)
class ScoreTask:
    """Scores the events of a partition inside a worker: a row for each event that matches, with lists of numbers."""

    recipe: Recipe
    kept: int = 0
    """The number of columns to keep: the last ones of each batch."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        matcher, columns = self.recipe.matcher(), BatchColumns()
        for batch in batches:
            yield score_rows(matcher, batch, columns.read(batch), kept=self.kept)


def score_rows(matcher: Matcher, batch: pa.RecordBatch, events: EventColumns, *, kept: int = 0) -> pa.RecordBatch:
    """The scores of one batch, by event. Handles count up from 0 in the order of subscriptions."""
    which, handles, scores = _ordered(matcher.score_batch(matcher.encode(events)))
    first = np.flatnonzero(np.diff(which, prepend=np.int32(-1)))
    starts = pa.array(np.append(first, len(which)).astype(np.int32))
    rows = pa.array(which[first])
    columns = [
        batch.column("id").take(rows).cast(pa.string()),
        batch.column("time").take(rows).cast(ARROW_SCORES.field("time").type),
        pa.ListArray.from_arrays(starts, pa.array(handles, pa.int32())),
        pa.ListArray.from_arrays(starts, pa.array(scores, pa.float32())),
    ]
    return _with_kept(columns, ARROW_SCORES, batch, rows, kept)


def _with_kept(
    columns: list[pa.Array], schema: pa.Schema, batch: pa.RecordBatch, rows: pa.Array, kept: int
) -> pa.RecordBatch:
    """A result with the kept columns of its events after its own."""
    first = batch.num_columns - kept
    own = pa.RecordBatch.from_arrays(columns, schema=schema)
    more = [values.take(rows) for values in batch.columns[first:]]
    names = [*schema.names, *batch.schema.names[first:]]
    return pa.RecordBatch.from_arrays([*own.columns, *more], names=names) if kept else own


def _ordered(found: EventScores) -> EventScores:
    """By event, then by subscription; mostly they are already."""
    place = found.event.astype(np.int64) << 32 | found.handle
    if (place[1:] > place[:-1]).all():
        return found
    order = np.argsort(place, kind="stable")
    return EventScores(found.event[order], found.handle[order], found.score[order])


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches the events of a partition inside a worker: a row for each match, with its best mapping."""

    recipe: Recipe
    kept: int = 0
    """The number of columns to keep: the last ones of each batch."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        matcher, columns = self.recipe.matcher(), BatchColumns()
        for batch in batches:
            yield match_rows(matcher, batch, columns.read(batch), kept=self.kept)


def match_rows(matcher: Matcher, batch: pa.RecordBatch, events: EventColumns, *, kept: int = 0) -> pa.RecordBatch:
    """The matches of one batch."""
    found = list(found_in(matcher, events))
    rows, matches = pa.array([row for row, _ in found], pa.int64()), [match for _, match in found]
    columns = [
        batch.column("id").take(rows).cast(pa.string()),
        batch.column("time").take(rows).cast(ARROW_MATCHES.field("time").type),
        pa.array([str(match.subscription) for match in matches], pa.string()),
        pa.array([match.score for match in matches], pa.float64()),
        pa.array([match.mapping.probability if match.mapping else None for match in matches], pa.float64()),
        pa.array([mapping_rows(match) for match in matches], ARROW_MATCHES.field("mapping").type),
    ]
    return _with_kept(columns, ARROW_MATCHES, batch, rows, kept)


def found_in(matcher: Matcher, events: EventColumns) -> Iterator[tuple[int, Match]]:
    """Every match of a batch with the row of its event; event objects are made only for rows that scored."""
    encoded = matcher.encode(events)
    return iter(matcher.matches_of(encoded, matcher.score_batch(encoded)))


def mapping_rows(match: Match) -> list[dict[str, object]]:
    """The best mapping as plain values, in the order of predicates."""
    if match.mapping is None:
        return []
    return [
        {
            "attribute": pair.predicate.attribute,
            "event_attribute": pair.tuple[0],
            "value": shown(pair.predicate.value),
            "event_value": written(pair.tuple[1])[0],
            "similarity": pair.similarity,
            "probability": pair.probability,
        }
        for pair in match.mapping.correspondences
    ]


def shown(value: Any) -> str:
    """The value of a predicate as text; a range as it is written in the language."""
    from likewise.language import Range

    if not isinstance(value, Range):
        return written(value)[0]
    low, high = "[" if value.low_closed else "(", "]" if value.high_closed else ")"
    return f"{low}{written(value.low)[0]}, {written(value.high)[0]}{high}"
