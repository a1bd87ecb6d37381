"""WordNet as a thesaurus of generated events."""

from __future__ import annotations

import pytest

from likewise.errors import MissingError
from likewise.evaluation.datasets.lexical import wordnet_thesaurus
from likewise.semantics import WordNet


def test_words_that_first_mean_a_concept_name_it() -> None:
    try:
        wordnet = WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    nouns = wordnet_thesaurus(wordnet)
    assert "automobile" in nouns.variants("car")
    assert all(wordnet.senses(concept.labels[0])[0].synset == int(key) for key, concept in nouns.concepts.items())
