"""Jiang-Conrath agrees with published values and with arithmetic on a small taxonomy."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from likewise.errors import BuildError
from likewise.semantics import InformationContent, JiangConrath, WordNet


@pytest.fixture(scope="module")
def tagged(wordnet: WordNet) -> InformationContent:
    return InformationContent.from_senses(wordnet)


def first(wordnet: WordNet, word: str, part: str = "noun") -> int:
    return wordnet.senses(word, part=part)[0].synset


def test_the_mass_of_all_nouns_is_the_published_one(wordnet: WordNet, tagged: InformationContent) -> None:
    """In ic-semcor.dat of WordNet::Similarity for WordNet 3.0 the root has 128767 and physical entity 69661."""
    assert tagged.mass[wordnet.at("noun", 1740)] == 128_767
    assert tagged.mass[wordnet.at("noun", 1930)] == 69_661


@pytest.mark.parametrize(
    ("left", "right", "part", "published"),
    [
        (("cyclone", 2), ("hurricane", 1), "noun", 2.4663),
        (("migrate", 1), ("emigrate", 1), "verb", 0.9102),
    ],
)
def test_pairs_of_senses_agree_with_the_values_that_ws4j_checks(
    wordnet: WordNet,
    tagged: InformationContent,
    left: tuple[str, int],
    right: tuple[str, int],
    part: str,
    published: float,
) -> None:
    """WS4J, the port of WordNet::Similarity, holds its Jiang-Conrath on SemCor and WordNet 3.0 to these."""
    a, b = (wordnet.senses(word, part=part)[sense - 1].synset for word, sense in (left, right))
    measure = JiangConrath(wordnet=wordnet, information=tagged)
    assert measure.similarity(a, b) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize(("part", "published"), [("noun", 0.2773), ("verb", 0.2345)])
def test_the_best_senses_of_chat_and_talk_agree_with_the_values_that_ws4j_checks(
    wordnet: WordNet, tagged: InformationContent, part: str, published: float
) -> None:
    measure = JiangConrath(wordnet=wordnet, information=tagged)
    chat, talk = ([sense.synset for sense in wordnet.senses(word, part=part)] for word in ("chat", "talk"))
    best = max(measure.similarity(a, b) for a in chat for b in talk)
    assert best == pytest.approx(published, abs=1e-4)


def test_dog_and_cat_agree_with_published_values(wordnet: WordNet, tagged: InformationContent) -> None:
    """NLTK's documentation gives lin(dog, cat) = 0.88632886280862277 on SemCor; lin is 2 IC(lcs) / (IC(a) + IC(b))."""
    dog, cat = first(wordnet, "dog"), first(wordnet, "cat")
    carnivore = first(wordnet, "carnivore")
    a, b, lcs = tagged.values[[dog, cat, carnivore]]
    assert 2 * lcs / (a + b) == pytest.approx(0.88632886280862277, abs=1e-12)
    measure = JiangConrath(wordnet=wordnet, information=tagged)
    assert measure.similarity(dog, cat) == pytest.approx(1 / (a + b - 2 * lcs))
    assert measure.similarity(dog, cat) == pytest.approx(0.537382154955756, abs=1e-12)


def test_dog_and_cat_worked_out_from_the_counts(wordnet: WordNet, tagged: InformationContent) -> None:
    """Of 128767 noun counts 56 are dogs, 23 cats and 91 carnivores."""
    dog, cat, carnivore = (tagged.mass[first(wordnet, word)] for word in ("dog", "cat", "carnivore"))
    assert (dog, cat, carnivore) == (56, 23, 91)
    distance = log(128767 / 56) + log(128767 / 23) - 2 * log(128767 / 91)
    measure = JiangConrath(wordnet=wordnet, information=tagged)
    scores = measure.matrix(["dog"], ["cat"])
    assert scores[0, 0] == pytest.approx(1 / (1 + distance), abs=1e-6)


def test_words_of_one_synset_are_equal(wordnet: WordNet) -> None:
    assert JiangConrath(wordnet=wordnet).matrix(["car"], ["automobile"])[0, 0] == 1


def test_near_words_score_above_far_ones(wordnet: WordNet) -> None:
    scores = JiangConrath(wordnet=wordnet).matrix(["dog"], ["cat", "energy"])
    assert scores[0, 0] > 2 * scores[0, 1] > 0


def test_a_phrase_is_the_mean_of_its_best_word_pairs(wordnet: WordNet) -> None:
    measure = JiangConrath(wordnet=wordnet)
    words = measure.matrix(["red", "dog"], ["cat"])[:, 0]
    forth, back = words.mean(), words.max()
    assert measure.matrix(["red dog"], ["cat"])[0, 0] == pytest.approx((forth + back) / 2, abs=1e-6)


def test_a_phrase_that_wordnet_lists_is_one_term(wordnet: WordNet) -> None:
    assert JiangConrath(wordnet=wordnet).matrix(["parkingLot"], ["car park"])[0, 0] == 1


def test_all_senses_score_at_least_as_high_as_the_first(wordnet: WordNet) -> None:
    words = ["bank", "court", "star", "park"]
    one = JiangConrath(wordnet=wordnet).matrix(words, words)
    assert (JiangConrath(wordnet=wordnet, senses="all").matrix(words, words) >= one - 1e-6).all()


def test_the_reason_is_the_lowest_common_subsumer(wordnet: WordNet) -> None:
    assert JiangConrath(wordnet=wordnet).reason("dog", "cat")[0].concept == "carnivore (noun)"


def test_corpus_counts_are_shared_among_senses(small: WordNet) -> None:
    """`motor car` has two senses, entity and car: each gets 10 / 2; entity also gets all that is below it."""
    content = InformationContent.from_words(small, {"motor car": 10, "ox": 2, "zzyzx": 5})
    assert content.mass[:3].tolist() == [5 + 5 + 2, 5, 2]
    assert content.values[1] == pytest.approx(log(12 / 5))
    assert content.values[0] == 0


def test_masses_must_fit_the_synsets(wordnet: WordNet) -> None:
    with pytest.raises(BuildError, match="one mass for each synset"):
        InformationContent(wordnet, np.ones(3))
