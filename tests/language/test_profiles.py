"""Predicates, themes and the values in them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from likewise.events import Value
from likewise.language import Binding, Field, Operator, Predicate, Range, parse_subscription


def only(text: str) -> Predicate:
    [predicate] = parse_subscription(f"{{{text}}}").body.predicates
    return predicate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3.5", -3.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ('"3"', "3"),
        ("true", True),
        ("false", False),
        ('"true"', "true"),
        ("True", "True"),
        ("007", "007"),
        ("+353 91", "+353 91"),
        ("room 112", "room 112"),
        ("room\n  112", "room 112"),
        ("35°C", "35°C"),
        ("14:22:03", "14:22:03"),
        ("http://example.org/a#b", "http://example.org/a#b"),
        ("2026-05-01T10:00:00Z", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01T10:00:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-13-01T10:00:00Z", "2026-13-01T10:00:00Z"),
        ("2026-05-01", "2026-05-01"),
        ("1e999", "1e999"),
        ('"a \\"b\\" \\u00e9 \\ud83d\\ude00 \\n"', 'a "b" é 😀 \n'),
        ("driver's seat", "driver's seat"),
        ("'two words'", "two words"),
    ],
)
def test_values_keep_their_type(text: str, value: Value) -> None:
    found = only(f"a = {text}").value
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "operator", "value"),
    [
        ("a = 1", Operator.EQ, 1),
        ("a == 1", Operator.EQ, 1),
        ("a: 1", Operator.EQ, 1),
        ("a != 1", Operator.NE, 1),
        ("a ≠ 1", Operator.NE, 1),
        ("a < 10°C", Operator.LT, 10),
        ("a <= 35 km/h", Operator.LE, 35),
        ("a > 80%", Operator.GT, 80),
        ("a >= 12.5 m²", Operator.GE, 12.5),
        ("a ≥ monday", Operator.GE, "monday"),
        ('a > "10 kg"', Operator.GT, "10 kg"),
        ("5 < a", Operator.GT, 5),
        ("5 >= a", Operator.LE, 5),
    ],
)
def test_operators_and_units(text: str, operator: Operator, value: Value) -> None:
    assert only(text) == Predicate("a", operator, value)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("t in [10, 20)", Range(10, 20, True, False)),
        ("t in (10°C, 20°C]", Range(10, 20, False, True)),
        ('"t" in [a, b]', Range("a", "b")),
        ("10 <= t < 20", Range(10, 20, True, False)),
        ("20 >= t > 10", Range(10, 20, False, True)),
        ("t in [5, 5]", Range(5, 5)),
    ],
)
def test_ranges(text: str, span: Range) -> None:
    assert only(text) == Predicate("t", Operator.IN, span)


def test_a_range_on_an_approximate_attribute() -> None:
    assert only("t~ in [1, 2]") == only("1 <= t~ <= 2") == Predicate("t", Operator.IN, Range(1, 2), True)


def test_in_is_an_ordinary_word_elsewhere() -> None:
    assert only("checked in = yes").attribute == "checked in"


def test_a_theme_is_a_set() -> None:
    assert parse_subscription('{b, "a, c", b} {x= 1}').body.theme == ("b", "a, c")
    assert parse_subscription("{} {x= 1}").body.theme == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda value: Predicate("x", Operator.EQ, value),
        lambda value: Predicate("x", Operator.IN, Range(0, value)),
        lambda value: Binding(Field("a", "x"), Operator.EQ, value),
    ],
)
def test_true_and_1_make_two_values(make) -> None:
    assert make(1) != make(True)
    assert make(True) == make(True)
    assert make(1) == make(1.0)
    assert {make(1), make(True), make(1)} == {make(True), make(1)}
    assert make(1) != "x = 1"
