"""Semantic expansion: phrases, disjointness, quotas, and how events are drawn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.evaluation.datasets.eurovoc import Eurovoc, EurovocConcept
from likewise.evaluation.datasets.expansion import Expansion, build_expansion, phrases, quotas

TOWN = EurovocConcept("1", ("town", "city"), frozenset({28}), narrower=("2",))
URBAN = EurovocConcept("2", ("urban area", "urban region"), frozenset({28}), broader=("1",))
CAR = EurovocConcept("3", ("motor car", "car", "automobile"), frozenset({48}), related=("4",))
PARKING = EurovocConcept("4", ("parking area", "parking", "car park"), frozenset({28}), related=("3",))
EUROPE = EurovocConcept("5", ("Europe", "European countries"), frozenset({72}), narrower=("6",))
IRELAND = EurovocConcept("6", ("Ireland", "Eire"), frozenset({72}), broader=("5",))
SMALL = Eurovoc({c.id: c for c in (TOWN, URBAN, CAR, PARKING, EUROPE, IRELAND)})

SEED = (("type", "parking occupied event"), ("city", "Galway"), ("country", "Ireland"))


def test_narrower_terms_stand_for_a_term_as_in_the_paper() -> None:
    assert "urban area" in SMALL.variants("city")


def test_parts_of_a_place_do_not_stand_for_it() -> None:
    assert SMALL.variants("Europe") == ("European countries",)


def test_spelling_does_not_hide_a_concept() -> None:
    assert "cars" in SMALL
    assert "Car-Park" in SMALL


def test_an_event_type_has_its_known_part_replaced() -> None:
    assert list(phrases("parking occupied event", SMALL)) == [
        "parking area occupied event",
        "car park occupied event",
        "motor car occupied event",
    ]


def test_names_are_not_taken_apart() -> None:
    assert list(phrases("City Direct", SMALL)) == []


def test_a_phrase_stands_for_one_term_of_its_role_only() -> None:
    """`parking area` is a variant of parking and related to car: if both are values, it replaces neither."""
    seed = (("zone", "parking"), ("vehicle", "car"))
    expansion = build_expansion([seed], SMALL)
    assert expansion.of("value", "parking") == ("car park",)
    assert expansion.of("value", "car") == ("automobile",)


def test_expansions_differ_from_the_seed_and_from_each_other() -> None:
    expansion = build_expansion([SEED], SMALL)
    drawn = expansion.expand(SEED, count=expansion.capacity(SEED), replace=0.5, rng=random.Random(1))
    assert SEED not in drawn
    assert len(set(drawn)) == len(drawn) == 4 * 3 * 2 - 1


def test_a_rare_draw_replaces_about_the_asked_share() -> None:
    expansion = Expansion({("value", f"v{i}"): tuple(f"v{i}{c}" for c in "abcdef") for i in range(6)})
    seed = tuple((f"a{i}", f"v{i}") for i in range(6))
    drawn = expansion.expand(seed, count=500, replace=0.5, rng=random.Random(1))
    replaced = sum(value != meant for event in drawn for (_, value), (_, meant) in zip(event, seed, strict=True))
    assert 0.45 < replaced / (500 * 6) < 0.60


def test_too_many_expansions_are_refused() -> None:
    with pytest.raises(BuildError, match="expansions"):
        build_expansion([SEED], SMALL).expand(SEED, count=1000, replace=0.5, rng=random.Random(1))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.data())
def test_quotas_give_out_the_whole_and_never_more_than_fits(capacities: list[int], data: st.DataObject) -> None:
    total = data.draw(st.integers(0, sum(capacities)))
    shares = quotas(capacities, total)
    assert sum(shares) == total
    assert all(0 <= share <= most for share, most in zip(shares, capacities, strict=True))


def test_quotas_refuse_more_than_all_can_take() -> None:
    with pytest.raises(BuildError, match="at most"):
        quotas([1, 2], 4)
