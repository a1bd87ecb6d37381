"""Relatedness within themes, on rows that can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.semantics import Esa, Space, Thematic, write_space

WORDS = ["park", "garage", "car", "energy", "power", "computer", "office", "building", "temperature", "zzyzx"]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """`bank` is a shore and a house of money; the fillers make both fields small."""
    rivers = ["river bank water", "river shore water", "bank shore boat", "boat river"]
    money = ["money bank loan", "loan credit money", "bank credit", "money market"]
    folder = tmp_path_factory.mktemp("thematic") / "space"
    texts = [*rivers, *money, *(f"filler word{i}" for i in range(16))]
    write_space(folder, [(f"C{i}", text) for i, text in enumerate(texts)])
    return Space.open(folder)


def test_a_theme_chooses_between_the_meanings_of_a_word(space: Space) -> None:
    measure = Thematic(space)

    def related(*theme: str) -> tuple[float, float]:
        scores = measure.matrix(["bank"], ["shore", "credit"], subscription_theme=theme, event_theme=theme)
        return float(scores[0, 0]), float(scores[0, 1])

    shore, credit = related()
    assert shore == pytest.approx(credit, rel=0.2)
    shore, credit = related("water", "boat")
    assert shore > 2 * credit
    shore, credit = related("money", "credit")
    assert credit > 2 * shore


def test_each_side_has_its_own_theme(space: Space) -> None:
    measure = Thematic(space)
    both = measure.matrix(["bank"], ["shore"], subscription_theme=["water"], event_theme=["water"])[0, 0]
    crossed = measure.matrix(["bank"], ["shore"], subscription_theme=["loan"], event_theme=["water"])[0, 0]
    assert 0 < crossed < both


def test_without_themes_single_words_are_as_by_esa(tiny_space: Space) -> None:
    np.testing.assert_allclose(
        Thematic(tiny_space).matrix(WORDS, WORDS), Esa(tiny_space).matrix(WORDS, WORDS), atol=1e-6
    )


def test_rare_words_of_a_phrase_count_more(tmp_path: Path) -> None:
    """`event` is everywhere: alone it decides nothing, and log(4/3) against log(4/1) is what it has to say."""
    texts = ["event fire", "event flood", "event storm", "fire"]
    write_space(tmp_path / "s", list(zip("ABCD", texts, strict=True)))
    rows = Thematic(Space.open(tmp_path / "s"), weighting="augmented").project(["event flood"]).toarray()[0]
    event = np.array([1, 1, 1, 0]) / np.sqrt(3) * log(4 / 3)
    flood = np.array([0, 1, 0, 0]) * log(4 / 1)
    expected = (event + flood) / np.linalg.norm(event + flood)
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_a_theme_of_unknown_words_changes_nothing(space: Space) -> None:
    measure = Thematic(space)
    plain = measure.matrix(["bank", "river"], ["shore", "credit"])
    unknown = measure.matrix(["bank", "river"], ["shore", "credit"], subscription_theme=["zzyzx"], event_theme=["!?"])
    np.testing.assert_array_equal(unknown, plain)


def test_a_term_outside_the_theme_keeps_its_meaning(space: Space) -> None:
    """000 sec 5.3.2: a basis that holds nothing of a term must not make it unlike everything."""
    measure = Thematic(space)
    plain = measure.matrix(["filler"], ["word3"])[0, 0]
    far = measure.matrix(["filler"], ["word3"], subscription_theme=["boat"], event_theme=["boat"])[0, 0]
    assert plain > 0
    assert far == pytest.approx(plain)


def test_reasons_stay_in_the_theme(space: Space) -> None:
    reasons = Thematic(space).reason("bank", "water", subscription_theme=["boat"], event_theme=["boat"])
    assert [each.concept for each in reasons] == ["C0"]


def test_only_the_strongest_concepts_within_the_theme_are_kept(space: Space) -> None:
    rows = Thematic(space, pruning=2).project(["bank"], ["money", "loan"])
    assert {space.title(int(at)) for at in rows.indices} == {"C4", "C6"}


@given(
    left=st.lists(st.sampled_from(WORDS), max_size=4),
    right=st.lists(st.sampled_from(WORDS), max_size=4),
    subscription_theme=st.lists(st.sampled_from(WORDS), max_size=3),
    event_theme=st.lists(st.sampled_from(WORDS), max_size=3),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_matrices_agree_with_one_pair_at_a_time(
    tiny_space: Space, left: list[str], right: list[str], subscription_theme: list[str], event_theme: list[str]
) -> None:
    measure = Thematic(tiny_space, weighting="augmented")
    scores = measure.matrix(left, right, subscription_theme=subscription_theme, event_theme=event_theme)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            one, two = (_row(measure, a, subscription_theme), _row(measure, b, event_theme))
            expected = float(one @ two) / max(float(np.linalg.norm(one) * np.linalg.norm(two)), 1e-12)
            assert scores[i, j] == pytest.approx(1.0 if a == b else expected, abs=1e-5)


def _row(measure: Thematic, word: str, theme: Sequence[str]) -> np.ndarray:
    """One word by the formula: its tf times the emphasis of every concept; for a single word the idf cancels out."""
    tf = measure.space.tf_matrix([word], weighting="augmented").toarray()[0].astype(float)
    everywhere = (tf > 0).all()
    return np.zeros_like(tf) if everywhere else tf * measure.emphasis(theme)
