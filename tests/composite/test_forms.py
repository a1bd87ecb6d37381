"""A pattern of a known form has the shape that its own plan gives."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from guard_worlds import make

from likewise.composite import Composer, Detector
from likewise.composite.compiled.shape import Forms, Shape, shape_of
from likewise.composite.plan.builder import build_plan
from likewise.errors import BuildError
from likewise.language import Composite, Member, Negation, Pattern, Predicate, Profile, Sequence, Subscription, parse


def other_profiles(node: Pattern, random: Random) -> Pattern:
    """The same pattern with other profiles, some of them by meaning."""
    if isinstance(node, Member):
        predicates = [replace(predicate, value=random.randint(0, 9)) for predicate in node.profile.predicates]
        name = random.choice(("r", "k"))
        by_meaning = [replace(predicate, attribute=name, attribute_approximate=True) for predicate in predicates]
        return replace(node, profile=Profile(tuple(by_meaning if random.random() < 0.2 else predicates)))
    if isinstance(node, Negation):
        return replace(node, part=other_profiles(node.part, random))
    parts = getattr(node, "parts", None)
    return node if parts is None else replace(node, parts=tuple([other_profiles(part, random) for part in parts]))  # type: ignore[call-arg]


def planned(subscription: Subscription, known: dict[str, Subscription]) -> Shape | None:
    return shape_of(build_plan(subscription, known))


def test_a_known_form_gives_the_shape_of_the_plan() -> None:
    forms, random, met = Forms(), Random(1), 0
    for seed in range(600):
        known = {pattern.name: pattern for pattern in make(seed).patterns}
        for pattern in known.values():
            assert isinstance(pattern.body, Composite)
            try:
                shape = forms.learn(pattern, build_plan(pattern, known))
            except BuildError:
                continue
            assert shape == planned(pattern, known)
            other = replace(pattern, body=replace(pattern.body, root=other_profiles(pattern.body.root, random)))
            found = forms.known(other)
            met += found is not None and found != shape
            if found is not None:
                assert found == planned(other, known)
    assert met > 100


def test_forms_of_patterns_that_are_gone_do_not_pile_up() -> None:
    forms = Forms()
    [pattern] = parse("p: {k = A} as a then {k = B} as b within 9 s")
    for within in range(1_000, 4_000):
        assert isinstance(pattern.body, Composite)
        assert isinstance(pattern.body.root, Sequence)
        root = replace(pattern.body.root, within=within)
        subscription = replace(pattern, body=replace(pattern.body, root=root))
        forms.learn(subscription, build_plan(subscription))
    assert len(forms._shapes) <= 1_000
    assert forms.known(subscription) is not None


def test_a_profile_that_asks_for_nothing_is_refused_in_a_known_form() -> None:
    detector = Detector(parse("p: {k = A} as a then {k = B} as b"))
    empty = Composite(Sequence((Member(Profile(()), "a"), Member(Profile((Predicate("k", "=", "B"),)), "b"))))  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="at least one predicate"):
        detector.add("q", empty)


def test_profiles_are_numbered_in_the_order_of_the_pattern_in_a_known_form() -> None:
    text = "{0}: {{k = {0}1}} as a then not {{k = {0}2}} as n then {{k = {0}3}} as b within 9 s"
    composer = Composer(parse("\n".join(text.format(name) for name in "pq")))
    values = [wanted.profile.predicates[0].value for wanted in composer.profiles.values()]
    assert values == ["p1", "p2", "p3", "q1", "q2", "q3"]
