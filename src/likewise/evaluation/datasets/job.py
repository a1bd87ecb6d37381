"""The thematic data set as a Spark job: events by the tens of millions, with their truth [000 sec 5.2].

Event number i is a pure function of the recipe and i, so any worker can make any event, a lost partition is made
again the same, and the set grows by counting on. What differs from the set in memory: expansions are drawn anew for
every event, so large sets say the same thing in the same words more than once, as streams do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.evaluation.datasets.expansion import slots
from likewise.evaluation.datasets.seeds import SeedTuples
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.events import Event
from likewise.language import Predicate
from likewise.pipeline import EVENTS_SCHEMA
from likewise.pipeline.events.frame import ARROW_SCHEMA, events_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MADE_SCHEMA: Final = f"{EVENTS_SCHEMA}, origin int, relevant array<string>"
"""An event, the seed that it says in other words, and the subscriptions that it is relevant to."""

FIRST: Final = 1_600_000_000_000_000
STEP: Final = 100_000
PART: Final = 250_000
"""Events that one task makes."""
_MOST: Final = 32
_MADE = pa.schema([*ARROW_SCHEMA, ("origin", pa.int32()), ("relevant", pa.list_(pa.string()))])

Numbers = NDArray[np.int64]
Dice = NDArray[np.uint64]


def expand_on_spark(spark: SparkSession, data: ThematicDataset, count: int, *, theme: Iterable[str] = ()) -> DataFrame:
    """So many events expanded from the seeds of a data set, a tenth of a second apart."""
    task = ExpandTask.of(data, theme=tuple(theme))
    return spark.range(0, count, 1, max(1, -(-count // PART))).mapInArrow(task, MADE_SCHEMA)


def truth_of(made: DataFrame) -> DataFrame:
    """`subscription` and `event_id` of every relevant pair."""
    from pyspark.sql import functions as F

    return made.select(F.explode("relevant").alias("subscription"), F.col("id").alias("event_id"))


@dataclass(frozen=True, slots=True)
class ExpandTask:
    """Makes events by their numbers inside a worker."""

    seed: int
    replace: float
    choices: tuple[tuple[tuple[str, ...], ...], ...]
    """For each seed and each of its terms in turn: the term, then what may stand for it."""
    wanted: tuple[tuple[tuple[str, int], ...], ...]
    """For each seed: the subscriptions that it answers, with the terms (as bits) that must not be replaced for them."""
    theme: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: ThematicDataset, *, theme: tuple[str, ...] = ()) -> ExpandTask:
        """Everything that the events depend on, small enough to be sent to every worker."""
        if max(map(len, data.seeds)) > _MOST:
            raise BuildError(f"a seed has more than {_MOST} tuples", hint="make seeds of fewer")
        choices = tuple(
            tuple((term, *data.expansion.of(role, term)) for role, term in slots(seed)) for seed in data.seeds
        )
        wanted = tuple(tuple(_interested(seed, data)) for seed in data.seeds)
        return cls(data.recipe.seed, data.recipe.replace, choices, wanted, theme)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = DatasetTables.of(self)
        for batch in batches:
            if batch.num_rows:
                yield tables.rows(batch.column(0).to_numpy())

    def make(self, number: int) -> tuple[Event, int, list[str]]:
        """An event by its number, the seed that it comes from, and the subscriptions that it is relevant to."""
        row = DatasetTables.of(self).rows(np.array([number]))
        (event,) = events_of(row)
        return event, row.column("origin")[0].as_py(), row.column("relevant")[0].as_py()


@dataclass(frozen=True, slots=True)
class DatasetTables:
    """A task laid out flat, so that whole batches are made by array operations: a seed has slots, a slot has texts."""

    task: ExpandTask
    texts: pa.Array
    names: pa.Array
    first_slot: Numbers
    slot_count: Numbers
    first_text: Numbers
    text_count: Numbers
    first_wanted: Numbers
    wanted_count: Numbers
    name: Numbers
    needed: Dice

    @classmethod
    def of(cls, task: ExpandTask) -> DatasetTables:
        """Laid out anew by each task of Spark; it takes a millisecond or two."""
        every = [options for seed in task.choices for options in seed]
        slot_count, text_count, wanted_count = (
            np.array([len(each) for each in lists], np.int64) for lists in (task.choices, every, task.wanted)
        )
        asked = [pair for pairs in task.wanted for pair in pairs]
        names = sorted({name for name, _ in asked})
        place = {name: at for at, name in enumerate(names)}
        return cls(
            task,
            pa.array([text for options in every for text in options], pa.string()),
            pa.array(names, pa.string()),
            _firsts(slot_count),
            slot_count,
            _firsts(text_count),
            text_count,
            _firsts(wanted_count),
            wanted_count,
            np.array([place[name] for name, _ in asked], np.int64),
            np.array([bits for _, bits in asked], np.uint64),
        )

    def rows(self, numbers: Numbers) -> pa.RecordBatch:
        """Events by their numbers, with origin and truth."""
        dice = _mixed(numbers.astype(np.uint64) + _mixed(np.array([self.task.seed % (1 << 63)], np.uint64)))
        origin = (dice % np.uint64(len(self.slot_count))).astype(np.int64)
        event, within = _spread(self.slot_count[origin])
        slot = self.first_slot[origin][event] + within
        picked = self._picked(slot, dice[event], within)
        replaced = (picked > 0).astype(np.uint64) << within.astype(np.uint64)
        starts = _firsts(self.slot_count[origin])
        bits = np.bitwise_or.reduceat(replaced, starts)
        columns = [
            *self._events(numbers, self.first_text[slot] + picked, np.append(starts, len(slot)) // 2),
            pa.array(origin.astype(np.int32)),
            self._relevant(origin, bits),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_MADE)

    def _picked(self, slot: Numbers, dice: Dice, within: Numbers) -> Numbers:
        """Which text each slot gets; 0 is the seed's own."""
        thrown = _mixed(dice + (within.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
        others = self.text_count[slot] - 1
        replace = (thrown >> np.uint64(11)).astype(np.float64) * 2.0**-53 < self.task.replace
        choice = 1 + (_mixed(thrown) % np.maximum(others, 1).astype(np.uint64)).astype(np.int64)
        return np.where(replace & (others > 0), choice, 0)

    def _events(self, numbers: Numbers, text: Numbers, offsets: Numbers) -> list[pa.Array]:
        count = len(numbers)
        said = self.texts.take(pa.array(text))
        name, value = (said.take(pa.array(np.arange(at, len(text), 2))) for at in (0, 1))
        kind = ARROW_SCHEMA.field("attributes").type
        tuples = pa.StructArray.from_arrays([name, value, pa.repeat("text", len(name))], fields=list(kind.value_type))
        moment = pa.array(FIRST + numbers * STEP).cast(ARROW_SCHEMA.field("time").type)
        tags = pa.array(self.task.theme, pa.string()).take(pa.array(np.tile(np.arange(len(self.task.theme)), count)))
        ends = np.arange(count + 1) * len(self.task.theme)
        digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 8, "0")
        return [
            pc.binary_join_element_wise("e", digits, ""),
            moment,
            moment,
            pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), tags),
            pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), tuples, type=kind),
            pa.nulls(count, ARROW_SCHEMA.field("flaw").type),
        ]

    def _relevant(self, origin: Numbers, bits: Dice) -> pa.ListArray:
        """The subscriptions that each event answers [000 sec 5.2.3]."""
        event, within = _spread(self.wanted_count[origin])
        asked = self.first_wanted[origin][event] + within
        good = (bits[event] & self.needed[asked]) == 0
        sizes = np.bincount(event[good], minlength=len(origin))
        offsets = np.append(_firsts(sizes), sizes.sum()).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), self.names.take(pa.array(self.name[asked[good]])))


_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def _mixed(numbers: Dice) -> Dice:
    """Numbers that look thrown, a different one for each: the last steps of splitmix64.

    >>> len(set(_mixed(np.arange(1000, dtype=np.uint64)).tolist()))
    1000
    """
    mixed = numbers + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _firsts(counts: NDArray[Any]) -> Numbers:
    """Where each of several lists begins when they are laid end to end."""
    firsts: Numbers = (np.cumsum(counts) - counts).astype(np.int64)
    return firsts


def _spread(counts: Numbers) -> tuple[Numbers, Numbers]:
    """For every entry of lists laid end to end, its list and its place in it.

    >>> [part.tolist() for part in _spread(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - _firsts(counts)[owner]


def _interested(seed: SeedTuples, data: ThematicDataset) -> Iterator[tuple[str, int]]:
    """Subscriptions whose predicates are all tuples of the seed, with the terms that an event must say as they do."""
    places = {pair: place for place, pair in enumerate(seed)}
    for subscription, profile in zip(data.subscriptions, data.profiles, strict=True):
        wanted = [(places.get((p.attribute, str(p.value)), -1), p) for p in profile.predicates]
        if all(place >= 0 for place, _ in wanted):
            yield subscription.name, sum(_bits(place, predicate) for place, predicate in wanted)


def _bits(place: int, predicate: Predicate) -> int:
    said = (not predicate.attribute_approximate, not predicate.value_approximate)
    return sum(1 << (2 * place + side) for side, exact in enumerate(said) if exact)
