"""Conditions between members, consumption and options."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from likewise.language import Binding, Consumption, Field, Operator, Options, parse_pattern, parse_subscription


@pytest.mark.parametrize(
    ("text", "binding"),
    [
        ("a.room = b.room", Binding(Field("a", "room"), Operator.EQ, Field("b", "room"))),
        ("a.room == b.room", Binding(Field("a", "room"), Operator.EQ, Field("b", "room"))),
        ("a.room ~ b.room", Binding(Field("a", "room"), Operator.EQ, Field("b", "room"), True)),
        ("a.room !~ b.room", Binding(Field("a", "room"), Operator.NE, Field("b", "room"), True)),
        ("b.t > a.t + 5", Binding(Field("b", "t"), Operator.GT, Field("a", "t", 5.0))),
        ("b.t - 0.5 <= a.t", Binding(Field("b", "t", -0.5), Operator.LE, Field("a", "t"))),
        ("a.t < 10°C", Binding(Field("a", "t"), Operator.LT, 10)),
        ("a.t != -3", Binding(Field("a", "t"), Operator.NE, -3)),
        ("a.on = true", Binding(Field("a", "on"), Operator.EQ, True)),
        ("a.x = office", Binding(Field("a", "x"), Operator.EQ, "office")),
        ('a."fire alarm" = "room 1"', Binding(Field("a", "fire alarm"), Operator.EQ, "room 1")),
        (
            "a.x >= 2026-05-01T10:00:00Z",
            Binding(Field("a", "x"), Operator.GE, datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ),
    ],
)
def test_one_condition(text: str, binding: Binding) -> None:
    assert parse_pattern(f"a then b where {text}").where == (binding,)


def test_conditions_are_joined_by_and() -> None:
    assert len(parse_pattern("a then b where a.x = b.x and a.y ~ b.y and b.z > 3").where) == 3


def test_a_reference_with_an_alias_is_known_by_it() -> None:
    assert parse_pattern("a as p then a as q where p.x = q.x").where[0].right == Field("q", "x")


@pytest.mark.parametrize(
    ("text", "consumption"),
    [
        ("", None),
        ("consume unique", Consumption.UNIQUE),
        ("consume unique pairs", Consumption.UNIQUE),
        ("consume all pairs", Consumption.ALL_PAIRS),
    ],
)
def test_consumption(text: str, consumption: Consumption | None) -> None:
    assert parse_pattern(f"a then b {text}").consumption == consumption


def test_clauses_come_in_any_order() -> None:
    text = "x: a then b top 3 consume unique approach clustered where a.x = b.x threshold 1 aggregation mean"
    found = parse_subscription(text)
    assert found.options == Options(1.0, 3, "clustered", "mean")
    assert (found.body.consumption, len(found.body.where)) == (Consumption.UNIQUE, 1)
