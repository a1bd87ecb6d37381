"""Ranking against a vocabulary, on a table of scores that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import BuildError
from likewise.semantics import Competitors, Measure
from likewise.semantics.adjust.beside import Ranked, nearer
from likewise.testing import TableMeasure

WORDS = ("Ireland", "Eire", "Spain", "Kingdom of Spain")
TABLE = {
    ("Ireland", "Eire"): 0.4,
    ("Ireland", "Spain"): 0.6,
    ("Ireland", "Kingdom of Spain"): 0.5,
    ("Spain", "Kingdom of Spain"): 0.8,
    ("Spain", "Eire"): 0.3,
    ("Eire", "Kingdom of Spain"): 0.2,
}
BOTH_WAYS = {**TABLE, **{(b, a): score for (a, b), score in TABLE.items()}}
BASE = TableMeasure(BOTH_WAYS)
VOCABULARY = Competitors.of(WORDS)
RANKED = Ranked(BASE, VOCABULARY, patience=1.0, own_side=0.2)


def test_it_is_a_measure() -> None:
    assert isinstance(RANKED, Measure)
    assert RANKED.name.endswith("+rank")


def test_what_is_nearer_to_the_event_term_takes_score_away() -> None:
    """Spain is nearer to its kingdom (0.8) than Ireland (0.5) is; Spain alone (0.6) is nearer to Ireland."""
    assert RANKED.matrix(["Ireland"], ["Kingdom of Spain"])[0, 0] == pytest.approx(
        0.5 * 2 ** (-2 * 0.8) * 2 ** (-2 * 0.2)
    )


def test_a_lone_subscription_tells_a_synonym_from_a_sibling() -> None:
    """By relatedness alone Spain (0.6) would pass for Ireland before Eire (0.4) does."""
    raw = BASE.matrix(["Ireland"], ["Eire", "Kingdom of Spain"])[0]
    ranked = RANKED.matrix(["Ireland"], ["Eire", "Kingdom of Spain"])[0]
    assert raw[0] < raw[1]
    assert ranked[0] > ranked[1]


def test_identity_stays_one_and_the_unknown_nothing() -> None:
    scores = RANKED.matrix(["Ireland", "unheard of"], ["ireland", "Eire"])
    assert scores[0, 0] == 1.0
    assert scores[1].tolist() == [0.0, 0.0]


def test_ranks_do_not_depend_on_the_scale_of_the_measure() -> None:
    half = TableMeasure({pair: score / 2 for pair, score in BOTH_WAYS.items()})
    again = Ranked(half, VOCABULARY, patience=1.0, own_side=0.2)
    assert 2 * again.matrix(["Ireland"], ["Eire"]) == pytest.approx(RANKED.matrix(["Ireland"], ["Eire"]))


def test_without_a_vocabulary_it_is_the_measure_itself() -> None:
    assert (Ranked(BASE, Competitors.of([])).matrix(WORDS, WORDS) == BASE.matrix(WORDS, WORDS)).all()


def test_reasons_add_up_to_the_ranked_score() -> None:
    reasons = RANKED.reason("Ireland", "Eire")
    assert sum(each.weight for each in reasons) <= RANKED.matrix(["Ireland"], ["Eire"])[0, 0] + 1e-6


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(BuildError, match="patience"):
        Ranked(BASE, Competitors.of([]), patience=0)


def test_equal_up_to_rounding_is_not_nearer() -> None:
    around = np.array([[0.5, 0.5000001]], np.float32)
    assert nearer(around, np.array([[0.5]], np.float32)).tolist() == [[0]]
