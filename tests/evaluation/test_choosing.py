"""The prior is that with the least loss on pairs, the bits of attributes those with the best F1 on feeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from likewise.errors import MissingError
from likewise.evaluation.experiments.feed import HELD_OUT, LOOKED_AT
from likewise.evaluation.learning import choosing
from likewise.evaluation.learning.choosing import WrittenFeed, chosen, loss_of_pairs
from likewise.evaluation.learning.hand_pairs import HandPair
from likewise.semantics import Evidence, Model, WordNet


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    try:
        return WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)


def test_the_best_of_those_tried_is_chosen(wordnet: WordNet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prior of -9 accepts nothing but equal terms, and one of 9 accepts everything."""
    monkeypatch.setattr(choosing, "LOOKED_AT", ("office",))
    monkeypatch.setattr(choosing, "PRIORS", (-9.0, 0.9, 9.0))
    monkeypatch.setattr(choosing, "ATTRIBUTE_BITS", (8.0,))
    said: list[str] = []
    sources = Evidence(encoder=False).sources
    model = chosen(replace(Model.shipped(), attribute_bits=3.0), sources, say=said.append)
    assert (model.prior, model.attribute_bits) == (0.9, 8.0)
    assert len(said) == 4, "three priors, then one number of bits"
    assert "looked at" in model.provenance["prior and attribute_bits"]


def test_nothing_held_out_takes_part() -> None:
    assert set(LOOKED_AT).isdisjoint(HELD_OUT)


def test_a_feed_has_the_mean_of_together_and_alone(wordnet: WordNet) -> None:
    measure = Evidence(encoder=False)
    assert 0 < WrittenFeed.read("office").f1(measure) < 1


def test_loss_of_pairs() -> None:
    """The equal pair that is right costs nothing; that which is wrong costs as much as a score of 0.9999 may."""
    bare = Evidence(encoder=False, wordnet=False)
    right, wrong = (HandPair("same", same, "door", "doors") for same in (True, False))
    assert loss_of_pairs([right], bare) == pytest.approx(0, abs=1e-3)
    assert loss_of_pairs([wrong], bare) == pytest.approx(-np.log2(choosing.LEAST_SCORE))
    assert loss_of_pairs([right, wrong], bare) == pytest.approx(-np.log2(choosing.LEAST_SCORE) / 2, abs=1e-3)
