"""WordNet and media topics as thesauri of generated events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise.errors import MissingError
from likewise.evaluation.datasets.lexical import iptc_thesaurus, wordnet_thesaurus
from likewise.semantics import WordNet


def test_topics_are_linked_by_their_codes(tmp_path: Path) -> None:
    topics = [
        {"qcode": "m:1", "prefLabel": {"en-GB": "sport"}, "narrower": ["m:2"]},
        {"qcode": "m:2", "prefLabel": {"en-GB": "rowing"}},
        {"qcode": "m:3", "prefLabel": {"fr": "voile"}},
    ]
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"conceptSet": topics}))
    assert iptc_thesaurus(path).variants("sport") == ("rowing",)
    with pytest.raises(MissingError, match="there is no"):
        iptc_thesaurus(tmp_path / "none.json")


def test_words_that_first_mean_a_concept_name_it() -> None:
    try:
        wordnet = WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    nouns = wordnet_thesaurus(wordnet)
    assert "automobile" in nouns.variants("car")
    assert all(wordnet.senses(concept.labels[0])[0].synset == int(key) for key, concept in nouns.concepts.items())
