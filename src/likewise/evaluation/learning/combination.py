"""Learns how scores of terms combine: the bits of attributes, and the temperature of contrast.

Both numbers maximise the likelihood of the truth, with subscriptions together and alone, on events made from EuroVoc
domains that the thematic data set does not use. They concern single predicates, so the product of predicates is used
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.datasets.eurovoc import DOMAINS, read_eurovoc
from likewise.evaluation.datasets.skos import ALL_DOMAINS
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, data_folder, generate
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, score_all, score_each
from likewise.matching import Matcher
from likewise.semantics import Evidence, Measure, Model
from likewise.semantics.evidence import Sources

BITS: Final = tuple(float(bits) for bits in range(13))
TEMPERATURES: Final = (0.125, 0.25, 0.5, 1.0, 2.0)
RECIPES: Final = (DatasetRecipe(seed=101, events=800), DatasetRecipe(seed=102, events=800, typed=True))
_SUREST: Final = 1e-4


@dataclass(frozen=True, slots=True)
class MadeEvents:
    """Events with the scores of their terms."""

    data: ThematicDataset
    table: Measure

    @classmethod
    def of(cls, data: ThematicDataset, measure: Evidence) -> MadeEvents:
        """All terms of a data set, scored."""
        return cls(data, Tabled(measure, TermsOfData.of(data.events, data.profiles)))

    def loss(self, bits: float, temperature: float) -> float:
        """The negative log likelihood of the truth, in nats per right answer: the mean of together and alone."""
        matcher = Matcher(
            {"approximate": self.table},
            approach="approximate+contrast",
            aggregation="product",
            attribute_bits=bits,
            temperature=temperature,
        )
        both = (score(matcher, self.data.events, self.data.subscriptions) for score in (score_all, score_each))
        return sum(surprise(scores, self.data.truth) for scores in both) / 2


def surprise(scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> float:
    """The negative log likelihood of the truth, per right answer.

    >>> round(surprise(np.array([0.5, 0.5]), np.array([True, False])), 3)  # two bits in nats
    1.386
    """
    sure = np.clip(scores.astype(np.float64), _SUREST, 1 - _SUREST)
    return float(-(np.log(sure[truth]).sum() + np.log1p(-sure[~truth]).sum()) / truth.sum())


def combined(
    model: Model, sources: Sources, *, data: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Model:
    """The model with the bits of attributes and the temperature that maximise the likelihood of the truth."""
    path = (data or data_folder()) / "eurovoc" / "eurovoc.yaml"
    thesaurus = read_eurovoc(path, domains=ALL_DOMAINS - frozenset(DOMAINS.values()))
    measure = Evidence.of(sources, model)
    made = [MadeEvents.of(generate(recipe, thesaurus=thesaurus), measure) for recipe in RECIPES]
    bits, temperature = _best(made)
    say(f"attributes {bits:g} bits, temperature {temperature:g}")
    return replace(model, attribute_bits=bits, temperature=temperature)


def _best(made: Sequence[MadeEvents]) -> tuple[float, float]:
    losses = {
        (bits, temperature): sum(each.loss(bits, temperature) for each in made)
        for bits in BITS
        for temperature in TEMPERATURES
    }
    return min(losses, key=lambda choice: (losses[choice], choice))


__all__ = ["combined", "surprise"]
