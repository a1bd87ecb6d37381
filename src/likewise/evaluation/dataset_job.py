"""The thematic data set as a Spark job: events by the tens of millions, with their truth [000 sec 5.2].

Event number i is a pure function of the recipe and i, so any worker can make any event, a lost partition is made
again the same, and the set grows by counting on. What differs from the set in memory: expansions are drawn anew for
every event, so large sets say the same thing in the same words more than once, as streams do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from likewise.evaluation.expansion import slots
from likewise.evaluation.seeds import Tuples
from likewise.evaluation.thematic_dataset import ThematicDataset
from likewise.events import Event
from likewise.language import Predicate
from likewise.pipeline import EVENTS_SCHEMA
from likewise.pipeline._frame import ARROW_SCHEMA, batch_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MADE_SCHEMA: Final = f"{EVENTS_SCHEMA}, origin int, relevant array<string>"
"""An event, the seed that it says in other words, and the subscriptions that it is relevant to."""

FIRST: Final = 1_600_000_000_000_000
STEP: Final = 100_000
_ROWS: Final = 5_000
_MADE = pa.schema([*ARROW_SCHEMA, ("origin", pa.int32()), ("relevant", pa.list_(pa.string()))])


def expand_on_spark(spark: SparkSession, data: ThematicDataset, count: int, *, theme: Iterable[str] = ()) -> DataFrame:
    """So many events expanded from the seeds of a data set, a tenth of a second apart."""
    task = ExpandTask.of(data, theme=tuple(theme))
    return spark.range(count).mapInArrow(task, MADE_SCHEMA)


def truth_of(made: DataFrame) -> DataFrame:
    """`subscription` and `event_id` of every relevant pair."""
    from pyspark.sql import functions as F  # noqa: N812

    return made.select(F.explode("relevant").alias("subscription"), F.col("id").alias("event_id"))


@dataclass(frozen=True, slots=True)
class ExpandTask:
    """Makes events by their numbers inside a worker."""

    seed: int
    replace: float
    seeds: tuple[Tuples, ...]
    choices: tuple[tuple[tuple[str, ...], ...], ...]
    wanted: tuple[tuple[tuple[str, tuple[tuple[int, Predicate], ...]], ...], ...]
    theme: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: ThematicDataset, *, theme: tuple[str, ...] = ()) -> ExpandTask:
        """Everything that the events depend on, small enough to be sent to every worker."""
        choices = tuple(
            tuple((term, *data.expansion.of(role, term)) for role, term in slots(seed)) for seed in data.seeds
        )
        wanted = tuple(tuple(_interested(seed, data)) for seed in data.seeds)
        return cls(data.recipe.seed, data.recipe.replace, data.seeds, choices, wanted, theme)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for start in range(0, len(numbers), _ROWS):
                yield self._rows(numbers[start : start + _ROWS])

    def make(self, number: int) -> tuple[Event, int]:
        """An event by its number, and the seed that it comes from."""
        rng = random.Random(f"{self.seed} {number}")
        origin = rng.randrange(len(self.seeds))
        terms = [
            options[0] if len(options) == 1 or rng.random() >= self.replace else rng.choice(options[1:])
            for options in self.choices[origin]
        ]
        tuples = tuple(zip(terms[::2], terms[1::2], strict=True))
        moment = FIRST + number * STEP
        return Event(f"e{number:08}", tuples, self.theme, moment, moment), origin

    def relevant(self, event: Event, origin: int) -> list[str]:
        """The subscriptions that an event of this seed answers [000 sec 5.2.3]."""
        return [
            name
            for name, predicates in self.wanted[origin]
            if all(_answers(predicate, event.tuples[place]) for place, predicate in predicates)
        ]

    def _rows(self, numbers: list[int]) -> pa.RecordBatch:
        made = [self.make(number) for number in numbers]
        events = batch_of(event for event, _ in made)
        origins = pa.array([origin for _, origin in made], pa.int32())
        relevant = pa.array([self.relevant(event, origin) for event, origin in made], pa.list_(pa.string()))
        return pa.RecordBatch.from_arrays([*events.columns, origins, relevant], schema=_MADE)


def _interested(seed: Tuples, data: ThematicDataset) -> Iterator[tuple[str, tuple[tuple[int, Predicate], ...]]]:
    """Subscriptions whose predicates are all tuples of the seed, each with the place of its tuple."""
    places = {pair: place for place, pair in enumerate(seed)}
    for subscription, profile in zip(data.subscriptions, data.profiles, strict=True):
        wanted = [(places.get((p.attribute, str(p.value))), p) for p in profile.predicates]
        if all(place is not None for place, _ in wanted):
            yield subscription.name, tuple((place or 0, predicate) for place, predicate in wanted)


def _answers(predicate: Predicate, said: tuple[str, object]) -> bool:
    return (predicate.attribute_approximate or said[0] == predicate.attribute) and (
        predicate.value_approximate or said[1] == predicate.value
    )
