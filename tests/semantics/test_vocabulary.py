"""All words of a space at once."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.semantics import Esa, Space, Vocabulary
from likewise.semantics.space import vocabulary as vocabulary_module


def test_the_nearest_words_agree_with_the_measure(tiny_space: Space) -> None:
    found = Vocabulary(tiny_space).nearest("parking", limit=5, rare=1)
    words = [each.word for each in found]
    np.testing.assert_allclose([each.score for each in found], Esa(tiny_space).matrix(["parking"], words)[0], rtol=1e-5)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    everything = sorted(set(tiny_space.word_counts) - {"parking"})
    best = float(Esa(tiny_space).matrix(["parking"], everything).max())
    assert found[0].score == pytest.approx(best, rel=1e-5)


def test_a_terms_own_words_and_rare_words_are_left_out(tiny_space: Space) -> None:
    assert "garage" not in [each.word for each in Vocabulary(tiny_space).nearest("parking garage", rare=1)]
    assert {each.word for each in Vocabulary(tiny_space).nearest("parking", rare=3)} == {"garage", "car", "vehicle"}


def test_an_unknown_term_has_no_neighbours(tiny_space: Space) -> None:
    assert Vocabulary(tiny_space).nearest("zzyzx") == []


def test_words_are_shown_as_they_are_written(tiny_space: Space) -> None:
    ids = tiny_space.index(["energi", "vehicl", "batteri"])
    assert Vocabulary(tiny_space).surfaces(ids) == ["energy", "vehicle", "battery"]


def test_small_chunks_give_the_same(tiny_space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    mass = np.linspace(0, 1, tiny_space.concepts, dtype=np.float32)
    whole = Vocabulary(tiny_space).overlap(mass)
    monkeypatch.setattr(vocabulary_module, "CHUNK", 3)
    np.testing.assert_allclose(Vocabulary(tiny_space).overlap(mass), whole)
    expected = [mass[tiny_space.rows([term])[1]].sum() for term in range(tiny_space.terms)]
    np.testing.assert_allclose(whole, expected, rtol=1e-5)
