"""Phrases that share words: what they say differently decides; everything else is the measure's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.semantics import Differing, Measure
from likewise.testing import TableMeasure

BASE = TableMeasure(
    {
        ("increased ozone event", "increased noise event"): 0.64,
        ("increased ozone event", "increased smog event"): 0.64,
        ("ozone", "smog"): 0.25,
        ("empty parking slot", "parking vacancy"): 0.49,
        ("empty", "vacancy"): 0.36,
        ("temperature", "room temperature"): 0.7,
        ("laptop", "notebook computer"): 0.3,
    }
)


def of(wanted: str, said: str, *, power: float = 1.0) -> float:
    return float(Differing(BASE, power=power).matrix([wanted], [said])[0, 0])


def test_it_is_a_measure_under_its_own_name() -> None:
    assert isinstance(Differing(BASE), Measure)
    assert Differing(BASE).name == BASE.name


def test_siblings_that_differ_in_unrelated_words_are_unrelated() -> None:
    assert of("increased ozone event", "increased noise event") == 0.0


def test_related_words_bring_phrases_together_as_far_as_they_are_related() -> None:
    assert of("increased ozone event", "increased smog event") == pytest.approx((0.64 * 0.25) ** 0.5)
    assert of("increased ozone event", "increased smog event", power=0.5) == pytest.approx((0.64 * 0.5) ** 0.5)


def test_the_mean_of_the_subscriptions_words_counts() -> None:
    """empty has vacancy at 0.36, slot nothing: d = 0.18."""
    assert of("empty parking slot", "parking vacancy") == pytest.approx((0.49 * 0.18) ** 0.5)


@pytest.mark.parametrize(("wanted", "said"), [("temperature", "room temperature"), ("laptop", "notebook computer")])
def test_where_nothing_is_shared_or_one_says_all_of_the_other_nothing_changes(wanted: str, said: str) -> None:
    assert of(wanted, said) == pytest.approx(float(BASE.matrix([wanted], [said])[0, 0]))


def test_the_same_words_in_another_order_or_form_are_the_measures_own() -> None:
    assert of("ozone events", "Ozone_event") == 1.0
    assert of("event ozone", "ozone event") == float(BASE.matrix(["event ozone"], ["ozone event"])[0, 0])


def test_reasons_are_scaled_with_the_score() -> None:
    wanted, said = "increased ozone event", "increased smog event"
    before, after = BASE.reason(wanted, said), Differing(BASE, power=1.0).reason(wanted, said)
    assert [each.concept for each in after] == [each.concept for each in before]
    assert sum(each.weight for each in after) == pytest.approx(sum(each.weight for each in before) * 0.4 / 0.64)


def test_a_power_of_nothing_is_refused() -> None:
    with pytest.raises(BuildError, match="power 0"):
        Differing(BASE, power=0)


WORDS = st.lists(st.sampled_from(["ozone", "smog", "noise", "event", "increased"]), min_size=1, max_size=3)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_a_pair_is_the_same_whatever_stands_beside_it(wanted: list[list[str]], said: list[list[str]]) -> None:
    """Engines that know other terms too must score alike."""
    mine, theirs = [" ".join(each) for each in wanted], [" ".join(each) for each in said]
    whole = Differing(BASE).matrix(mine, theirs)
    single = [[of(one, other, power=0.5) for other in theirs] for one in mine]
    assert np.allclose(whole, single)
    assert 0 <= whole.min() <= whole.max() <= 1
