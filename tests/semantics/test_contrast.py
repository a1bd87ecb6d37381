"""Contrast scales a pair by its rivals."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from likewise.errors import BuildError
from likewise.events import Event
from likewise.semantics import Competitors, Contrast, Esa, Space
from likewise.semantics.adjust.beside import contrasted

UNIT = st.floats(0, 1, width=32)


def test_the_formula_by_hand(tiny_space: Space) -> None:
    """r * softmax(r) / max softmax, the softmax over all competitors."""
    esa, rivals, tau = Esa(tiny_space), ["garage", "energy", "computer"], 0.1
    r = esa.matrix(rivals, ["vehicle"])[:, 0].astype(float)
    softmax = np.exp(r / tau) / np.exp(r / tau).sum()
    contrast = Contrast(esa, Competitors.of(rivals), temperature=tau)
    np.testing.assert_allclose(contrast.matrix(rivals, ["vehicle"])[:, 0], r * softmax / softmax.max(), rtol=1e-5)


def test_a_term_competes_even_if_it_is_no_competitor(tiny_space: Space) -> None:
    esa = Esa(tiny_space)
    contrast = Contrast(esa, Competitors.of(["energy"]), temperature=0.01)
    assert contrast.matrix(["garage"], ["parking"])[0, 0] == esa.matrix(["garage"], ["parking"])[0, 0]


def test_without_competitors_it_is_the_measure_itself(tiny_space: Space) -> None:
    esa, words = Esa(tiny_space), ["garage", "energy"]
    np.testing.assert_array_equal(Contrast(esa, Competitors.of([])).matrix(words, words), esa.matrix(words, words))


def test_an_equal_rival_outdoes_a_related_term(tiny_space: Space) -> None:
    contrast = Contrast(Esa(tiny_space), Competitors.of(["garage", "parking"]), temperature=0.05)
    score = Esa(tiny_space).matrix(["garage"], ["parking"])[0, 0]
    assert contrast.matrix(["garage"], ["parking"])[0, 0] == pytest.approx(score * exp((score - 1) / 0.05), rel=1e-4)


@given(scores=arrays(np.float32, (3, 4), elements=UNIT), rival=arrays(np.float32, 3, elements=UNIT))
def test_contrast_never_lifts_a_score_and_keeps_the_best(scores: np.ndarray, rival: np.ndarray) -> None:
    after = contrasted(scores, rival, 0.05)
    assert (after <= scores).all()
    winners = scores >= np.maximum(scores.max(axis=1), rival)[:, None]
    np.testing.assert_array_equal(after[winners], scores[winners])


def test_competitors_are_known_by_their_terms_alone() -> None:
    one = Competitors.of(["Parking Space", "energy"])
    assert one == Competitors.of(["energy", "Parking Space", "parkingSpaces"])
    assert one.version != Competitors.of(["energy"]).version
    assert Competitors.of(["energy"]).union(["Parking Space"]) == one


def test_the_temperature_fits_the_measure(tiny_space: Space) -> None:
    assert Contrast(Esa(tiny_space), Competitors.of([])).temperature == 0.005
    with pytest.raises(BuildError):
        Contrast(Esa(tiny_space), Competitors.of([]), temperature=0)


def test_reasons_add_up_to_the_contrasted_score(tiny_space: Space) -> None:
    contrast = Contrast(Esa(tiny_space), Competitors.of(["garage", "street"]), temperature=1.0)
    reasons = contrast.reason("street", "parking", limit=100)
    score = contrast.matrix(["street"], ["parking"])[0, 0]
    assert sum(each.weight for each in reasons) == pytest.approx(float(score), rel=1e-5)


def test_a_vocabulary_comes_from_a_sample_of_events() -> None:
    events = [Event.of({"room": "Kitchens", "degrees": 21}), Event.of({"room": "hall", "open": True})]
    words = Competitors.from_events(events)
    assert words.terms == ("degree", "hall", "kitchen", "open", "room")
    assert words.version == Competitors.from_events(reversed(events)).version


def test_a_large_vocabulary_keeps_what_most_events_say() -> None:
    events = [Event.of({"room": "kitchen"}), Event.of({"room": "hall"}), Event.of({"room": "kitchen"})]
    assert Competitors.from_events(events, limit=2).terms == ("kitchen", "room")
