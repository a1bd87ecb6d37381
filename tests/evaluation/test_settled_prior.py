"""The prior makes the default threshold separate pairs of held-out concepts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from likewise.evaluation.learning.fitting import MeasuredPairs, settled
from likewise.evaluation.learning.pair import Pair
from likewise.semantics import Model
from likewise.semantics.evidence import Features, PairShape


def made(right: list[float], wrong: list[float]) -> MeasuredPairs:
    """Single words of held-out concepts whose only evidence is an embedding of 0.1 to 0.9."""
    concepts = (str(number) for number in range(10_000))
    held = (name for name in concepts if Pair("a", "b", "sibling", "test", name).held_out)
    kinds = [*["synonym"] * len(right), *["sibling"] * len(wrong)]
    pairs = tuple(Pair("a", "b", kind, "test", next(held)) for kind in kinds)
    features = Features.empty(len(pairs))
    features.shape[:] = PairShape.WORD
    features.embedding[:] = [*right, *wrong]
    labels = np.array([pair.label for pair in pairs])
    return MeasuredPairs(pairs, features, labels, np.ones(len(pairs)), features, np.arange(len(pairs)))


@pytest.mark.parametrize("start", [0.0, 0.6, 1.4])
def test_the_prior_divides_what_was_held_out(start: float) -> None:
    word = Model.shipped().shapes[PairShape.WORD]
    bits = dict(word.bits) | {"embedding": tuple(np.linspace(-2.5, 2, 10).tolist())}
    shapes = dict(Model.shipped().shapes) | {PairShape.WORD: replace(word, base=0.0, bits=bits)}
    model = replace(Model.shipped(), shapes=shapes, sureness=1.0, prior=start)
    # From 0.4 on they mean the same: -0.5 bits there, which the prior must compensate exactly.
    found = settled(model, made(right=[0.4, 0.5, 0.6] * 5, wrong=[0.1, 0.2, 0.3] * 20))
    assert 0.5 <= found.prior <= 1.0
    assert "held-out" in found.provenance["prior"]
