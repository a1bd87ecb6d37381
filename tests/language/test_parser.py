"""Text to subscriptions: names, comments, and boundaries between subscriptions."""

from __future__ import annotations

import pytest

from likewise.language import Composite, Profile, Reference, parse, parse_pattern, parse_subscription


def test_names_theme_predicates_and_options_are_read() -> None:
    [alert] = parse("alert: {power}, {device~= laptop~, floor > 2} threshold 0.6 top 3 approach thematic")
    assert (alert.name, alert.body.theme, len(alert.body.predicates)) == ("alert", ("power",), 2)
    assert (alert.options.threshold, alert.options.top_k, alert.options.approach) == (0.6, 3, "thematic")


def test_many_on_many_lines_with_comments() -> None:
    text = """
    # a comment: {with= braces}
    a: {x= 1}   # after it
    "b c":
       {t, u}
       {x= 1,
        # inside
        y= C#}
       threshold 0.5

    {z= 3}
    {z= 4}
    p: a
       then "b c"
       within 5 minutes
    within: {x= 2}
    q: a
    then: {x= 5}
    """
    found = parse(text)
    assert [subscription.name for subscription in found] == ["a", "b c", "s3", "s4", "p", "within", "q", "then"]
    assert found[1].body.predicates[1].value == "C#"
    assert found[6].body == Composite(Reference("a"))


def test_default_names_are_stable_and_free() -> None:
    """An unnamed subscription gets its number as a name, unless that name is used."""
    assert [subscription.name for subscription in parse("{a= 1}\ns3: {a= 2}\n{a= 3}")] == ["s1", "s3", "s3_"]
    assert parse_subscription("{a= 1}").name == "s1"


def test_an_empty_text_has_no_subscriptions() -> None:
    assert parse("") == parse(" \n# nothing\n") == []


def test_a_lone_profile_in_parentheses_is_a_pattern() -> None:
    assert isinstance(parse_subscription("x: {a= 1}").body, Profile)
    assert isinstance(parse_subscription("x: ({a= 1})").body, Composite)
    assert parse_pattern("{a= 1}") == parse_subscription("x: ({a= 1})").body


@pytest.mark.parametrize("text", ['{a= "b # c"}', "{a= “b # c”}"])
def test_a_hash_in_double_quotes_is_no_comment(text: str) -> None:
    assert parse_subscription(text).body.predicates[0].value == "b # c"
