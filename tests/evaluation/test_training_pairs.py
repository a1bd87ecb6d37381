"""Pairs for learning: what they are made of, and how they are labelled."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from likewise.evaluation.learning.field_pairs import OF_TRADES, field_pairs
from likewise.evaluation.learning.pair import Pair
from likewise.semantics import OtherNames, WordNet

NAMES = "\n".join(
    ["lamp; light fixture", "door; entry door", "pump; water pump", "tank; vessel", "fan; ventilator", "gate; barrier"]
)


@pytest.fixture(scope="module")
def pairs(wordnet: WordNet) -> list[Pair]:
    """Made with six things; each may stand in for every other one of its field."""
    assert len(wordnet) > 0
    return list(field_pairs(OtherNames.from_text(NAMES), random.Random(1), banned=frozenset()))


def test_states_and_quantities_are_made_of_every_thing(pairs: list[Pair]) -> None:
    made = Counter((pair.source, pair.kind) for pair in pairs)
    for ending in ("", OF_TRADES):
        assert made[f"states{ending}", "opposite state"] >= 6
        assert made[f"states{ending}", "state alone"] >= 6
        assert made[f"quantities{ending}", "other quantity"] == 6
    assert made["other names", "other name"] == 6


def test_opposite_states_and_other_things_are_wrong(pairs: list[Pair]) -> None:
    wrong = [pair for pair in pairs if pair.kind in ("opposite state", "random in this state", "other quantity")]
    assert {pair.label for pair in wrong} == {0.0}
    assert {pair.label for pair in pairs if pair.kind == "state alone"} == {0.05}


def test_banned_terms_are_in_no_pair(wordnet: WordNet) -> None:
    assert len(wordnet) > 0
    made = field_pairs(OtherNames.from_text(NAMES), random.Random(1), banned=frozenset(["lamp"]))
    assert not [pair for pair in made if "lamp" in (pair.subscription.split() + pair.event.split())]


def test_a_concept_is_held_out_as_a_whole(pairs: list[Pair]) -> None:
    for source in {pair.source for pair in pairs}:
        halves: dict[str, set[bool]] = {}
        for pair in (pair for pair in pairs if pair.source == source):
            halves.setdefault(pair.concept, set()).add(pair.held_out)
        assert all(len(held) == 1 for held in halves.values())
