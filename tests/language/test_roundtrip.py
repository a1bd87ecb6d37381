"""parse(format(x)) == x for everything the language can say."""

from __future__ import annotations

import math
import string
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.events import Event, Value
from likewise.language import (
    AGGREGATIONS,
    APPROACHES,
    Allen,
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    Duplicates,
    ExclusiveOr,
    Field,
    Keep,
    Member,
    Negation,
    Operator,
    Options,
    Predicate,
    Profile,
    Range,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
    format_event,
    format_file,
    format_pattern,
    format_subscription,
    labels,
    parse,
    parse_event,
    parse_pattern,
    parse_subscription,
)

ODD = [
    *("within", "then", "not", "in", "checked in", "event", "profile", "name:", "s1", "a-b", "a.b", "_", "-", "10 <"),
    *("3", "-1.5", "true", "false", "10 kg", "35°C", "007", "1e5", "14:22:03", "NaN", "inf", "room 112"),
    *("2026-05-01T10:00:00Z", "2026-05-01", "C#", "a # b", "# c", "it's", "'quoted'", "‘x’", 'say "hi"', "”", "“"),
    *("back\\slash", "a  b", " a", "a ", "new\nline", "tab\tbed", "nul\0", "\u2028", "\x85", "\xa0"),
    *("{x}", "a,b", "a: b", "a=b", "~", "über größe", "日本", "e\u0301"),
]
text = st.one_of(st.sampled_from(ODD), st.text(max_size=12), st.text(string.ascii_letters + " ", max_size=12))
terms = text.filter(bool)
words = st.one_of(st.sampled_from("abcdexyz"), terms)
zones = st.one_of(st.just(UTC), st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
values = st.one_of(text, st.booleans(), numbers, moments)
durations = st.one_of(
    st.integers(0, 10**7), st.integers(0, 10**13), st.sampled_from([60_000_000, 1_800_000_000, 5_400_000_000])
)
optional_durations = st.one_of(st.none(), durations)
flags = st.booleans()


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, high = sorted(draw(st.sampled_from([numbers, moments, text]).flatmap(lambda kind: st.tuples(kind, kind))))
    closed = (True, True) if low == high else (draw(flags), draw(flags))
    return Range(low, high, *closed)


predicates = st.one_of(
    st.builds(Predicate, terms, st.sampled_from([Operator.EQ, Operator.NE]), values, flags, flags),
    st.builds(Predicate, terms, st.sampled_from([Operator.LT, Operator.LE, Operator.GT, Operator.GE]), values, flags),
    st.builds(Predicate, terms, st.just(Operator.IN), ranges(), flags),
)
themes = st.lists(terms, max_size=3, unique=True).map(tuple)
profiles = st.builds(Profile, st.lists(predicates, min_size=1, max_size=4).map(tuple), themes)
by_meaning = [approach for approach in APPROACHES if approach != "exact"]
approaches = st.sampled_from([None, *by_meaning, "contrast", "thematic+contrast"])
thresholds = st.one_of(st.none(), st.floats(0, 1))
options = st.builds(
    Options,
    thresholds,
    st.one_of(st.none(), st.integers(1, 10**6)),
    approaches,
    st.sampled_from([None, *AGGREGATIONS]),
)
duplicates = st.one_of(
    st.none(),
    st.sampled_from([Keep.FIRST, Keep.LAST, Keep.ALL]).map(Duplicates),
    st.integers(1, 200).map(lambda nth: Duplicates(Keep.NTH, nth)),
)
leaves = st.one_of(
    st.builds(Member, profiles, st.none(), duplicates),
    st.builds(Reference, words, st.none(), duplicates),
    st.builds(TimeEvent, at=st.integers(0, 86_400_000_000 - 1)),
    st.builds(TimeEvent, every=st.integers(1, 10**12)),
)


def _larger(inner: st.SearchStrategy) -> st.SearchStrategy:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    counts = st.tuples(st.integers(1, 9), st.one_of(st.none(), st.integers(0, 9)))
    return st.one_of(
        st.builds(Sequence, parts, optional_durations),
        st.builds(Conjunction, parts, optional_durations),
        st.builds(ExclusiveOr, parts, optional_durations),
        st.builds(Disjunction, parts),
        st.builds(Negation, inner, optional_durations),
        st.builds(Selection, inner, st.integers(1, 200), optional_durations),
        st.builds(
            lambda part, least_more, within: Repetition(
                part, least_more[0], None if least_more[1] is None else sum(least_more), within
            ),
            inner,
            counts,
            optional_durations,
        ),
        st.builds(Relation, inner, st.sampled_from(Allen), inner, optional_durations),
    )


patterns = st.recursive(leaves, _larger, max_leaves=6)


@st.composite
def composites(draw: st.DrawFn) -> Composite:
    root = draw(patterns)
    if draw(flags):
        first = Member(draw(profiles), draw(words))
        root = Sequence((first, root), draw(optional_durations))
    names = list(labels(root))
    usable = [name for name in names if names.count(name) == 1]
    where: list[Binding] = []
    if usable:
        fields = st.builds(
            Field, st.sampled_from(usable), terms, st.one_of(st.just(0.0), st.floats(-1e6, 1e6), st.just(5.0))
        )
        plain = st.builds(Field, st.sampled_from(usable), terms)
        exact = st.builds(Binding, fields, st.sampled_from([*Operator][:-1]), st.one_of(fields, values))
        loose = st.builds(
            Binding, plain, st.sampled_from([Operator.EQ, Operator.NE]), st.one_of(plain, text), st.just(True)
        )
        where = draw(st.lists(st.one_of(exact, loose), max_size=3))
    return Composite(root, tuple(where), draw(st.sampled_from([None, *Consumption])))


subscriptions = st.builds(Subscription, terms, st.one_of(profiles, composites()), options)


@given(subscriptions)
@settings(deadline=None, max_examples=200)
def test_a_subscription_is_read_back(subscription: Subscription) -> None:
    assert parse_subscription(format_subscription(subscription)) == subscription


@given(st.lists(subscriptions, max_size=5, unique_by=lambda subscription: subscription.name))
@settings(deadline=None, max_examples=40)
def test_a_file_is_read_back(many: list[Subscription]) -> None:
    assert parse(format_file(many)) == many


@given(composites())
@settings(deadline=None, max_examples=200)
def test_a_pattern_is_read_back(pattern: Composite) -> None:
    assert parse_pattern(format_pattern(pattern)) == pattern


@given(values)
@settings(deadline=None, max_examples=200)
def test_types_of_values_survive(value: Value) -> None:
    """1, 1.0, True and "1" are four values; equality alone would mix up three of them."""
    profile = Profile((Predicate("a", Operator.EQ, value),))
    back = parse_subscription(format_subscription(Subscription("x", profile))).body.predicates[0].value
    assert (back, type(back)) == (value, type(value))


events = st.builds(
    lambda name, tuples, theme, start, length: Event(
        name, tuple(tuples), theme, start, None if start is None else start + length
    ),
    text,
    st.lists(st.tuples(terms, values), max_size=4),
    themes,
    st.one_of(st.none(), st.integers(0, 10**15)),
    st.sampled_from([0, 1, 10**6]),
)


@given(events)
@settings(deadline=None, max_examples=200)
def test_an_event_is_read_back(event: Event) -> None:
    assert parse_event(format_event(event)) == event


@pytest.mark.parametrize(
    "subscription",
    [
        Subscription("", Profile((Predicate("a", Operator.EQ, 1),))),
        Subscription("x", Profile(())),
        Subscription("x", Profile((Predicate("", Operator.EQ, 1),))),
        Subscription("x", Profile((Predicate("a", Operator.EQ, math.inf),))),
        Subscription("x", Profile((Predicate("a", Operator.EQ, "\ud800"),))),
        Subscription("x", Profile((Predicate("a", Operator.EQ, 10**4001),))),
        Subscription("x", Composite(Sequence((Reference("a"),)))),
        Subscription("x", Composite(Sequence((Reference("a"), Reference("b")), within=-1))),
        Subscription("x", Composite(TimeEvent(at=86_400_000_000))),
        Subscription("x", Profile((Predicate("a", Operator.EQ, 1),)), Options(threshold=2)),
    ],
)
def test_what_cannot_be_said_is_refused(subscription: Subscription) -> None:
    with pytest.raises(BuildError):
        format_subscription(subscription)
