"""Distances of whole groups agree with pairs looked at one by one."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from likewise.semantics import InformationContent, WordNet
from likewise.semantics.wordnet.information import SynsetTaxonomy


def test_distances_by_hand(small: WordNet) -> None:
    """entity (12) has car (5) and ox (2) below it: the distance is log(12/5) + log(12/2) - 2 log(12/12)."""
    taxonomy = SynsetTaxonomy(InformationContent.from_words(small, {"motor car": 10, "ox": 2}))
    entity, car, ox = 0, 1, 2
    found = taxonomy.distances(taxonomy.group([car]), taxonomy.group([ox, car, entity]))
    np.testing.assert_allclose(found, [[log(12 / 5) + log(12 / 2), 0, log(12 / 5)]])
    assert taxonomy.subsumer(car, ox) == entity


def test_parts_of_speech_are_worlds_apart(small: WordNet) -> None:
    taxonomy = SynsetTaxonomy(InformationContent.from_senses(small, smoothing=1))
    car, drive, galore = 1, small.at("verb", 10), small.at("adj", 10)
    found = taxonomy.distances(taxonomy.group([car, galore]), taxonomy.group([drive, galore]))
    assert found.tolist() == [[np.inf, np.inf], [np.inf, 0.0]]
    assert taxonomy.subsumer(car, drive) is None


def test_groups_agree_with_pairs(wordnet: WordNet) -> None:
    taxonomy = SynsetTaxonomy(InformationContent.from_senses(wordnet, smoothing=1))
    synsets = [wordnet.senses(word)[0].synset for word in ("dog", "cat", "car", "energy", "run", "garage", "red")]
    whole = taxonomy.distances(taxonomy.group(synsets), taxonomy.group(synsets[:3]))
    for row, left in enumerate(synsets):
        for column, right in enumerate(synsets[:3]):
            one = taxonomy.distances(taxonomy.group([left]), taxonomy.group([right]))[0, 0]
            assert whole[row, column] == pytest.approx(one)
