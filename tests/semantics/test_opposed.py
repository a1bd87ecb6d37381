"""Terms with opposite words are unrelated; everything else is the measure's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.semantics import Coded, Measure, Opposed, Opposites, WordNet
from likewise.testing import TableMeasure

BASE = TableMeasure(
    {
        ("increased noise event", "decreased noise event"): 0.9,
        ("increased noise event", "rising noise"): 0.7,
        ("parking vacant event", "car park occupied event"): 0.6,
        ("light on", "light off"): 0.95,
        ("open and closed doors", "closed door"): 0.8,
        ("desk 1", "desk 2"): 0.9,
        ("machine turned on", "machine stopped"): 0.8,
        ("lock opened", "smart lock engaged"): 0.7,
        ("movement detected", "no more motion"): 0.6,
        ("door closed", "gate shut"): 0.6,
        ("actual spindle speed", "commanded spindle speed"): 0.9,
    }
)


@pytest.fixture(scope="module")
def opposed(wordnet: WordNet) -> Opposed:
    return Opposed(BASE, opposites=Opposites(wordnet))


def test_it_is_a_measure_under_its_own_name(opposed: Opposed) -> None:
    assert isinstance(opposed, Measure)
    assert opposed.name == BASE.name
    assert opposed.symmetric


@pytest.mark.parametrize(
    ("wanted", "said", "kept"),
    [
        ("machine turned on", "machine stopped", 0.0),
        ("lock opened", "smart lock engaged", 0.0),
        ("movement detected", "no more motion", 0.0),
        ("actual spindle speed", "commanded spindle speed", 0.0),
        ("door closed", "gate shut", 0.6),
    ],
)
def test_states_exclude_each_other_in_any_words(opposed: Opposed, wanted: str, said: str, kept: float) -> None:
    assert opposed.matrix([wanted], [said])[0, 0] == pytest.approx(kept)


@pytest.mark.parametrize(
    ("wanted", "said", "why"),
    [
        ("increased noise event", "decreased noise event", "increased and decreased are opposites"),
        ("parking vacant event", "car park occupied event", "vacant and occupied are opposites"),
        ("light on", "light off", "on and off are opposites"),
        ("smoke", "no smoke", "smoke and not smoke are opposites"),
    ],
)
def test_opposites_are_unrelated_and_told(opposed: Opposed, wanted: str, said: str, why: str) -> None:
    assert opposed.matrix([wanted], [said])[0, 0] == 0
    assert opposed.matrix([said], [wanted])[0, 0] == 0
    assert opposed.reason(wanted, said) == []
    assert opposed.apart(wanted, said) == why


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("increased noise event", "rising noise"), ("open and closed doors", "closed door"), ("desk 1", "desk 2")],
)
def test_all_others_are_as_they_were(opposed: Opposed, wanted: str, said: str) -> None:
    assert opposed.matrix([wanted], [said]).tolist() == BASE.matrix([wanted], [said]).tolist()
    assert opposed.reason(wanted, said) == BASE.reason(wanted, said)
    assert opposed.apart(wanted, said) == ""


def test_identity_stays_one(opposed: Opposed) -> None:
    assert opposed.matrix(["Open and closed door"], ["open and closed doors"])[0, 0] == 1


def test_it_says_what_a_measure_inside_holds_apart(wordnet: WordNet) -> None:
    both = Opposed(Coded(BASE), opposites=Opposites(wordnet))
    assert both.apart("desk 1", "desk 2") == "1 and 2 are different codes"
    assert BASE.apart("desk 1", "desk 2") == ""


def test_without_wordnet_it_is_the_measure_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIKEWISE_WORDNET", str(tmp_path))
    bare = Opposed(BASE)
    assert bare.matrix(["light on"], ["light off"]).tolist() == BASE.matrix(["light on"], ["light off"]).tolist()
    assert bare.apart("light on", "light off") == ""


WORDS = ["increased", "decreased", "noise", "vacant", "occupied", "open", "closed", "not", "on", "off", "event", "7"]
TERMS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4)


class Everything(TableMeasure):
    """All terms are as near as can be."""

    def matrix(self, subscription_terms, event_terms, **_):  # type: ignore[no-untyped-def,override]
        return np.ones((len(subscription_terms), len(event_terms)), np.float32)


@given(mine=TERMS, theirs=TERMS)
@settings(max_examples=60, deadline=None)
def test_whole_matrices_agree_with_pairs_and_with_both_directions(
    opposed: Opposed, mine: list[str], theirs: list[str]
) -> None:
    near = Opposed(Everything({}), opposites=opposed._opposites)
    scores = near.prepare(mine).rows(theirs)
    expected = [[0.0 if near.apart(one, other) else 1.0 for one in mine] for other in theirs]
    assert scores.tolist() == expected
    assert near.matrix(theirs, mine).tolist() == expected
