"""The contract that every measure keeps, run over all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.errors import MissingError
from likewise.semantics import (
    Coded,
    Combined,
    Competitors,
    Concept,
    Contrast,
    Differing,
    Embedding,
    Esa,
    EsaEuclidean,
    Hybrid,
    JiangConrath,
    Measure,
    Opposed,
    Opposites,
    Ranked,
    Space,
    Thematic,
    ThematicEuclidean,
    Thesaurus,
    WordNet,
)

TERMS = ["parking", "garage", "energy", "laptop computer", "ParkingSpaces", "zzyzx", "", "of", "!?", "room 112"]
KNOWN = ["parking", "garage", "energy", "computer"]
THEME = ["car", "vehicle"]
COMPETITORS = Competitors.of(["garage", "electricity", "computer"])

Make = Callable[[Space, WordNet], Measure]


def _concept() -> Concept:
    names = {"1": ["parking", "car park"], "2": ["garage"], "3": ["energy", "power"], "4": ["computer"]}
    return Concept(Thesaurus(names, [("1", "2")]))


MAKERS: dict[str, Make] = {
    "esa": lambda space, _: Esa(space),
    "esa, papers' weighting": lambda space, _: Esa(space, weighting="augmented", pruning=None, unit_words=False),
    "esa, pruned": lambda space, _: Esa(space, pruning=2),
    "esa-euclidean": lambda space, _: EsaEuclidean(space),
    "esa-euclidean, normalised": lambda space, _: EsaEuclidean(space, normalise=True),
    "thematic": lambda space, _: Thematic(space),
    "thematic, papers' weighting": lambda space, _: Thematic(space, weighting="augmented", pruning=None),
    "thematic-euclidean": lambda space, _: ThematicEuclidean(space),
    "thematic-euclidean, papers' weighting": lambda space, _: ThematicEuclidean(space, weighting="augmented"),
    "thematic-euclidean, normalised": lambda space, _: ThematicEuclidean(space, normalise=True),
    "jiang-conrath": lambda _, wordnet: JiangConrath(wordnet=wordnet),
    "jiang-conrath, all senses": lambda _, wordnet: JiangConrath(wordnet=wordnet, senses="all"),
    "hybrid": lambda space, wordnet: Hybrid(Esa(space), JiangConrath(wordnet=wordnet)),
    "concept": lambda _space, _wordnet: _concept(),
    "embedding": lambda _space, _wordnet: Embedding(),
    "combined": lambda space, _: Combined([Esa(space), EsaEuclidean(space)]),
    "contrast": lambda space, _: Contrast(Esa(space), COMPETITORS),
    "thematic contrast": lambda space, _: Contrast(Thematic(space), COMPETITORS),
    "coded": lambda space, _: Coded(Esa(space)),
    "coded, thematic": lambda space, _: Coded(Thematic(space)),
    "opposed": lambda space, wordnet: Opposed(Esa(space), opposites=Opposites(wordnet)),
    "opposed, thematic": lambda space, wordnet: Opposed(Thematic(space), opposites=Opposites(wordnet)),
    "differing": lambda space, _: Differing(Esa(space)),
    "differing, thematic": lambda space, _: Differing(Thematic(space)),
    "rank": lambda space, _: Ranked(Esa(space), COMPETITORS),
    "thematic rank": lambda space, _: Ranked(Thematic(space), COMPETITORS),
    "rank and contrast": lambda space, _: Contrast(Ranked(Esa(space), COMPETITORS), COMPETITORS),
    "tuned with a background": lambda space, _: Ranked(Differing(Opposed(Coded(Esa(space)))), COMPETITORS),
}


@pytest.fixture(scope="module", params=MAKERS)
def measure(request: pytest.FixtureRequest, tiny_space: Space, wordnet: WordNet) -> Measure:
    try:
        return MAKERS[request.param](tiny_space, wordnet)
    except MissingError as error:
        pytest.skip(str(error))


def test_is_a_measure(measure: Measure) -> None:
    assert isinstance(measure, Measure)
    assert measure.name


@pytest.mark.parametrize("themes", [((), ()), (THEME, ()), (THEME, ["energy"]), (["zzyzx"], ())])
def test_scores_are_finite_and_between_0_and_1(measure: Measure, themes: tuple[list[str], list[str]]) -> None:
    scores = measure.matrix(TERMS, TERMS[:4], subscription_theme=themes[0], event_theme=themes[1])
    assert scores.shape == (len(TERMS), 4)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_the_same_term_in_another_spelling_is_1(measure: Measure) -> None:
    pairs = [("parking", "Parking"), ("ParkingSpaces", "parking_space"), ("zzyzx", "Zzyzx"), ("of", "OF"), ("", "")]
    for left, right in pairs:
        assert measure.matrix([left], [right])[0, 0] == 1, (left, right)


def test_identity_holds_in_any_theme(measure: Measure) -> None:
    assert measure.matrix(["energy"], ["energy"], subscription_theme=THEME, event_theme=["zzyzx"])[0, 0] == 1


@pytest.mark.parametrize("unknown", ["zzyzx qwrtp", "", "!?"])
def test_terms_without_a_known_word_are_0_to_all_others(measure: Measure, unknown: str) -> None:
    if measure.name == "embedding" and unknown.isprintable() and any(map(str.isalnum, unknown)):
        pytest.skip("an embedding reads any letters")
    assert not measure.matrix([unknown], KNOWN).any()
    assert not measure.matrix(KNOWN, [unknown]).any()


def test_swapping_the_sides_transposes_where_promised(measure: Measure) -> None:
    many, few = [*TERMS, "computer garage parking"], [*KNOWN, "computer energy"]
    forth = measure.matrix(many, few, subscription_theme=THEME, event_theme=["energy"])
    back = measure.matrix(few, many, subscription_theme=["energy"], event_theme=THEME)
    if measure.symmetric:
        np.testing.assert_allclose(forth, back.T, atol=1e-6)
    else:
        assert not np.allclose(forth, back.T)


def test_asking_again_gives_the_same_bits(measure: Measure) -> None:
    first = measure.matrix(TERMS, TERMS, subscription_theme=THEME)
    second = measure.matrix(TERMS, TERMS, subscription_theme=THEME)
    np.testing.assert_array_equal(first, second)


@given(order=st.permutations(TERMS), cut=st.integers(0, len(TERMS)))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_score_does_not_depend_on_the_other_terms(measure: Measure, order: list[str], cut: int) -> None:
    whole = measure.matrix(TERMS, KNOWN)
    part = measure.matrix(order[:cut], KNOWN)
    assert part.shape == (cut, len(KNOWN))
    for row, term in enumerate(order[:cut]):
        np.testing.assert_allclose(part[row], whole[TERMS.index(term)], atol=1e-6)


def test_empty_lists_give_empty_matrices(measure: Measure) -> None:
    assert measure.matrix([], KNOWN).shape == (0, len(KNOWN))
    assert measure.matrix(KNOWN, []).shape == (len(KNOWN), 0)
    assert measure.matrix([], []).shape == (0, 0)


def test_a_prepared_side_gives_the_transposed_matrix(measure: Measure) -> None:
    prepared = measure.prepare(TERMS, subscription_theme=THEME)
    assert prepared.terms == tuple(TERMS)
    expected = measure.matrix(TERMS, KNOWN, subscription_theme=THEME, event_theme=["energy"])
    np.testing.assert_allclose(prepared.rows(KNOWN, event_theme=["energy"]), expected.T, atol=1e-6)


def test_reasons_are_strongest_first_and_at_most_as_many_as_asked(measure: Measure) -> None:
    reasons = measure.reason("parking", "garage", limit=2)
    assert len(reasons) <= 2
    assert [each.weight for each in reasons] == sorted((each.weight for each in reasons), reverse=True)
    assert all(0 <= each.weight <= 1 for each in reasons)
    assert measure.reason("zzyzx", "garage") == []


def test_a_measure_defines_its_matrix_or_its_prepared_form() -> None:
    """With neither, each would ask the other for ever."""
    with pytest.raises(TypeError, match="neither prepare nor matrix"):
        type("Empty", (Measure,), {})
