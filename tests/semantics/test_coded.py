"""Codes in terms: different ones never match, everything else is the measure's own."""

from __future__ import annotations

import pytest

from likewise.semantics import Measure
from likewise.semantics.adjust.apart import Coded, codes
from likewise.testing import TableMeasure

BASE = TableMeasure(
    {("desk 112c", "desk 113a"): 0.9, ("room 112", "office 112"): 0.7, ("no2", "nitrogen dioxide"): 0.6}
)


def test_it_is_a_measure_under_its_own_name() -> None:
    assert isinstance(Coded(BASE), Measure)
    assert Coded(BASE).name == BASE.name


def test_different_codes_are_unrelated() -> None:
    assert BASE.matrix(["desk 112c"], ["desk 113a"])[0, 0] == pytest.approx(0.9)
    assert Coded(BASE).matrix(["desk 112c"], ["desk 113a"])[0, 0] == 0.0
    assert Coded(BASE).reason("desk 112c", "desk 113a") == []


@pytest.mark.parametrize(("wanted", "said"), [("room 112", "office 112"), ("no2", "nitrogen dioxide")])
def test_the_same_code_or_none_on_a_side_changes_nothing(wanted: str, said: str) -> None:
    assert Coded(BASE).matrix([wanted], [said]).tolist() == BASE.matrix([wanted], [said]).tolist()
    assert Coded(BASE).reason(wanted, said) == BASE.reason(wanted, said)


def test_identity_stays_one() -> None:
    assert Coded(BASE).matrix(["Desk 112c"], ["desk 112C"])[0, 0] == 1.0


def test_order_of_codes_does_not_matter() -> None:
    assert codes("floor 2 room 14") == codes("room 14 floor 2")
