"""Learns, from events with known truth, how much nearer values of the stream count against a pair of values.

The events are made of WordNet, whose own relations are hidden from evidence then, and of IPTC Media Topics. Pairs by
themselves do not tell: only within a stream do the other values of an attribute stand beside the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from likewise.evaluation.datasets.lexical import iptc_thesaurus, wordnet_thesaurus
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, data_folder, generate
from likewise.evaluation.learning.fitting import without_wordnet
from likewise.evaluation.quality.ranking import delivery
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, score_all, score_each
from likewise.matching import Background, Matcher
from likewise.semantics import Evidence, Model, WordNet
from likewise.semantics.evidence import Sources

EVENT_BITS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
OWN_SIDE: Final = 0.5
"""The weight of values nearer to the subscription's term, relative to those nearer to the event's term: it is lower,
since these are more often other words for the same thing."""
RECIPES: Final = (DatasetRecipe(seed=1, events=600), DatasetRecipe(seed=2, events=600, typed=True))


@dataclass(frozen=True)
class RankedEvents:
    """Events with the scores of their terms."""

    data: ThematicDataset
    measure: Evidence
    table: Tabled

    @classmethod
    def of(cls, data: ThematicDataset, measure: Evidence) -> RankedEvents:
        """All terms of a data set, scored."""
        return cls(data, measure, Tabled(measure, TermsOfData.of(data.events, data.profiles)))

    def f1(self, model: Model) -> float:
        """F1 at the default threshold with a model's weights of nearer values: the mean of together and alone."""
        table = copy(self.table)
        table.inner = Evidence.of(self.measure.sources, model)
        matcher = Matcher(
            {"evidence": table},
            approach="evidence",
            temperature=model.temperature,
            attribute_bits=model.attribute_bits,
            background=Background.of(self.data.events),
        )
        both = (score(matcher, self.data.events, self.data.subscriptions) for score in (score_all, score_each))
        return sum(delivery(scores, self.data.truth, 0.5).f1 for scores in both) / 2


def ranked(
    model: Model, sources: Sources, *, data: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Model:
    """The model with the bits for nearer values that give the highest F1 on the generated events."""
    found = _best(list(_made(model, sources, data or data_folder())), model)
    say(f"nearer values of the stream: {found.nearer_event:g} and {found.nearer_subscription:g} bits")
    return found


def _made(model: Model, sources: Sources, folder: Path) -> Iterator[RankedEvents]:
    blind, sighted = Evidence.of(without_wordnet(sources), model), Evidence.of(sources, model)
    nouns, topics = wordnet_thesaurus(WordNet.load()), iptc_thesaurus(folder / "iptc" / "mediatopics-en-GB.json")
    for recipe in RECIPES:
        yield RankedEvents.of(generate(recipe, thesaurus=nouns), blind)
        yield RankedEvents.of(generate(recipe, thesaurus=topics), sighted)


def _best(made: Sequence[RankedEvents], model: Model) -> Model:
    """The weight with the highest F1; among equal ones the lowest."""
    tried = [replace(model, nearer_event=bits, nearer_subscription=OWN_SIDE * bits) for bits in EVENT_BITS]
    return max(tried, key=lambda one: (round(sum(each.f1(one) for each in made), 6), -one.nearer_event))


__all__ = ["ranked"]
