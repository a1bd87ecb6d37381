"""Errors: the position of the caret, what was expected, and the hint."""

from __future__ import annotations

import pytest

from likewise.errors import ParseError
from likewise.language import format_subscription, parse, parse_event, parse_lenient, parse_pattern, parse_subscription


def error(text: str) -> ParseError:
    with pytest.raises(ParseError) as raised:
        parse(text)
    return raised.value


def test_the_caret_stands_under_the_misspelt_word() -> None:
    text = "x: {type= a}\nalert: {power} {device~= laptop~} thershold 0.6"
    assert str(error(text)).splitlines() == [
        "<text>:2:35: unexpected `thershold`",
        "  alert: {power} {device~= laptop~} thershold 0.6",
        "                                    ^",
        "  expected: `then`, `and`, `or`, `within`, `where`, `consume`, `threshold`, `top`, `approach`, `aggregation`",
        "  hint: did you mean `threshold`?",
    ]


@pytest.mark.parametrize(
    ("text", "word", "column"),
    [
        ("{x > NaN}", "NaN", 6),
        ("{x>=nan}", "nan", 5),
        ("{x < -inf}", "-inf", 6),
        ("{x <= Infinity}", "Infinity", 7),
        ("{x > 1e999}", "1e999", 6),
        ("{x > -1e999 km}", "-1e999 km", 6),
        ("{1e999 < x}", "1e999", 2),
        ("{NaN < x < 3}", "NaN", 2),
        ("{1 < x <= inf}", "inf", 11),
        ("{x in [1, NaN]}", "NaN", 11),
        ("a then b where a.x > NaN", "NaN", 22),
        ("a then b where a.x < -1e999", "-1e999", 22),
    ],
)
def test_what_is_no_finite_number_is_not_compared_as_text(text: str, word: str, column: int) -> None:
    found = error(text)
    assert (found.message, found.column) == (f"`{word}` is not a number to compare with", column)
    assert found.hint == f'quote it to compare with the text: "{word}"'


@pytest.mark.parametrize(
    "text", ['{x > "NaN"}', '{x in ["a", "inf"]}', "{x = NaN}", "{x != 1e999}", "{inf < 3}", "{x > info}"]
)
def test_text_that_is_meant_as_text_is_compared(text: str) -> None:
    [subscription] = parse(text)
    assert parse(format_subscription(subscription)) == [subscription]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a then b wihtin 5 minutes", "within"),
        ("a thne b", "then"),
        ("{a=b} aproach exact", "approach"),
        ("{a=b} approach tematic", "thematic"),
        ("{a=b} approach evidense", "evidence"),
        ("{a=b} agregation mean", "aggregation"),
        ("{a=b} aggregation geometrc", "geometric"),
        ("{a=b}\n  thershold 0.6", "threshold"),
        ("frist a then b", "first"),
        ("a overlps b", "overlaps"),
        ("a then b within 5 mintes", "minutes"),
        ("a then b consume uniqe", "unique"),
        ("alpha then b where alhpa.x = b.x", "alpha"),
        ("[adn(a, b)]", "and"),
    ],
)
def test_did_you_mean(text: str, word: str) -> None:
    assert error(text).hint == f"did you mean `{word}`?"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("{a=b} threshold 2", "not a threshold", 17),
        ("{a=b} threshold high", "not a valid number", 17),
        ("{a=b} threshold -0.1", "not a threshold", 17),
        ("{a=b} top 0", "too small", 11),
        ("{a=b} top 1.5", "unexpected", 11),
        ("{a=b} threshold 0.5 threshold 0.6", "given twice", 21),
        ("{a=b} top 1 top-k 2", "given twice", 13),
        ("{a~=b} approach exact", "contradicts", 8),
        ("{a=b} approach exact+contrast", "takes no `+contrast`", 21),
        ("{a=b} approach evidence+contrast", "takes no `+contrast`", 24),
        ("{a=b} aggregation mean aggregation mean", "given twice", 24),
        ("{a=b} approach thematic+contrst", "unexpected `contrst`", 25),
        ("{a~=b} then c approach exact", "contradicts", 15),
        ("{a=b} where a.x = 1", "is for patterns", 7),
        ("{a=b} consume unique", "is for patterns", 7),
        ("a[0]", "too small", 3),
        ("0 times a", "too small", 1),
        ("5 to 2 times a", "too small", 6),
        ("0th duplicate a", "too small", 1),
        ("{x in [3, 2]}", "above its high end", 7),
        ("{x in (2, 2]}", "this range is empty", 7),
        ("{x in [1, b]}", "have the same type", 7),
        ("{x in [1]}", "two ends", 9),
        ("{20 < x > 10}", "not a range", 9),
        ("{20 > x < 30}", "not a range", 9),
        ("{1 < 2}", "both sides", 2),
        ("{x < b~}", "cannot be approximate", 7),
        ("{x in [1~, 2]}", "cannot be approximate", 9),
        ("{} ", "no predicates", 1),
        ("{a, b}", "a theme alone", 7),
        ("{a, , b} {x= 1}", "tag is missing", 1),
        ("{a= 1, b}", "no operator", 9),
        ("{a, b= 1}", "in one set", 6),
        ("{a= }", "a value is missing", 5),
        ("{device ~ laptop}", "is not an operator", 9),
        ("{= b}", "is missing", 2),
        ("{type: a device: b}", "contains a colon", 16),
        ("{a= b", "this brace is never closed", 1),
        ('{a= "b}', "has no end", 5),
        ('{"": b}', "cannot be empty", 2),
        ('"": {a= b}', "cannot be empty", 1),
        ('{a= "\\ud800"}', "incomplete surrogate pair", 5),
        ("a within 5 min", "nothing here can have a duration", 3),
        ("a or b within 5 min", "cannot have `within`", 8),
        ("(a then b within 5 min) within 6 min", "already", 25),
        ("(a)5min", "cannot have a duration", 4),
        ("a then b within 99999999999999999 days", "too long", 17),
        ("a overlaps b during c", "are ambiguous", 14),
        ("a then", "ends too early", 7),
        ("(a then b", "ends too early", 10),
        ("a met b", "unexpected `b`", 7),
        ("first (a then b)", "single member", 1),
        ("x = (a then b) as y", "only a single member", 19),
        ("{a=1} as x then {b=1} as x", "two members are named", 26),
        ("a as x as y", "already has a name", 11),
        ("a then b where c.x = b.x", "no member is named `c`", 16),
        ("a then a where a.x = 1", "stands for two members", 16),
        ("a then b where a.x + 5 ~ b.x", "by meaning", 16),
        ("a then b where a.fire alarm = b.x", "unexpected `alarm`", 23),
        ("at 25:00", "no such time of day", 4),
        ("every 0 s", "a period above 0", 1),
        ("and(a)", "joins two parts", 1),
        ("x: {a=1}\nx: {a=2}", "taken already", 1),
    ],
)
def test_mistakes_are_named_where_they_stand(text: str, message: str, column: int) -> None:
    found = error(text)
    assert (message in found.message, found.column) == (True, column), str(found)


def test_expected_things_are_named_in_peoples_words() -> None:
    assert error("a then b within soon").expected == ("a duration such as `30 minutes`",)
    assert error("{a b= 1, c}").expected[:2] == ("`=`", "`!=`")


def test_ten_thousand_parentheses_are_a_clean_error() -> None:
    assert "nested more than 50 levels" in error("(" * 10_000).message
    assert "nested more than 50 levels" in error("not " * 10_000 + "a").message


def test_forty_levels_are_fine() -> None:
    assert parse_pattern("(" * 40 + "a then b" + ")" * 40).root == parse_pattern("a then b").root


def test_a_large_value_is_read() -> None:
    word = "x" * 1_000_000
    assert parse_subscription(f"{{a= {word}}}").body.predicates[0].value == word
    assert parse_subscription(f'{{a= "{word}"}}').body.predicates[0].value == word


def test_one_bad_subscription_does_not_lose_the_good_ones() -> None:
    text = """
        a: {type= x
        b: {type= y}
        c: d thne e
        f: d then e
        {type= "open}

        g: {type= z,
            floor= }
        h: {type= z,
            floor= 1}
    """
    good, errors = parse_lenient(text, "file.lw")
    assert [subscription.name for subscription in good] == ["b", "f", "h"]
    assert [error.line for error in errors] == [2, 4, 6, 9]
    assert errors[0].message == "this brace of `a` is never closed"
    assert {error.source for error in errors} == {"file.lw"}


def test_a_name_that_is_taken_drops_the_second_only() -> None:
    good, errors = parse_lenient("a: {x= 1}\na: {x= 2}\nb: {x= 3}")
    assert [(subscription.name, subscription.body.predicates[0].value) for subscription in good] == [("a", 1), ("b", 3)]
    assert [error.line for error in errors] == [2]


def test_one_subscription_is_one() -> None:
    with pytest.raises(ParseError, match="2 subscriptions"):
        parse_subscription("{a= 1}\n{a= 2}")
    with pytest.raises(ParseError, match="no subscription"):
        parse_subscription("# nothing")


def test_a_pattern_alone_has_no_options() -> None:
    with pytest.raises(ParseError, match="no options"):
        parse_pattern("a then b threshold 0.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a~: b}", "cannot be approximate"),
        ("{a > 3}", "has values, not comparisons"),
        ("{a: b} at noon", "not a time"),
        ("{a: b} from 2026-01-02T00:00:00Z to 2026-01-01T00:00:00Z", "ends before"),
        ("{a: b} {c: d}", "unexpected"),
        ("{a, b}", "ends too early"),
        ('"e1" {a: b}', "unexpected"),
        ("", "ends too early"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_bad_events(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_event(text)
