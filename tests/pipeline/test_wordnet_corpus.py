"""Each synset is one document, in which its own words are loudest."""

from __future__ import annotations

import pytest

from likewise.errors import MissingError
from likewise.semantics.text import raw_words
from likewise.semantics.wordnet.corpus import MOST_DEFINED, WORDS, defined_with, documents, text_of
from likewise.semantics.wordnet.wordnet import WordNet


@pytest.fixture(scope="module")
def net() -> WordNet:
    try:
        return WordNet.load()
    except MissingError as error:
        pytest.skip(str(error))


def test_every_synset_is_one_document(net: WordNet) -> None:
    titles = [title for title, text in documents(net) if text]
    assert len(titles) == len(net)


def test_own_words_neighbours_and_gloss_are_told(net: WordNet) -> None:
    dog = net.senses("dog", part="noun")[0].synset
    texts = raw_words(text_of(net, dog))
    assert texts.count("dog") >= WORDS
    assert "canine" in texts, "the more general synset is named"
    assert "pack" in texts, "the group that it is a member of is told"
    assert "barked" in texts, "an example of its gloss"


def test_more_special_synsets_are_named(net: WordNet) -> None:
    dog = net.senses("dog", part="noun")[0].synset
    assert "poodle" in raw_words(text_of(net, dog))


def test_a_synset_names_those_that_it_defines(net: WordNet) -> None:
    """`garage for one or two cars` is a carport: the garage speaks of it."""
    garage, carport = (net.senses(word, part="noun")[0].synset for word in ("garage", "carport"))
    defined = defined_with(net)
    assert carport in defined[garage]
    assert max(map(len, defined.values())) <= MOST_DEFINED
    assert "carport" in raw_words(text_of(net, net.senses("roof", part="noun")[0].synset, defined=[carport]))
