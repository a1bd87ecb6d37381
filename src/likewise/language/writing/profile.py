"""Profiles to text: `{power, computers} {device~ = laptop~, floor in [1, 3)}`."""

from __future__ import annotations

from likewise.errors import BuildError
from likewise.language.model import Operator, Predicate, Profile, Range
from likewise.language.writing.terms import write_attribute, write_theme, write_value


def format_profile(profile: Profile) -> str:
    """A theme, if there is one, and the predicates."""
    if not profile.predicates:
        raise BuildError("a profile without predicates cannot be written")
    predicates = "{" + ", ".join(format_predicate(one) for one in profile.predicates) + "}"
    return f"{write_theme(profile.theme)} {predicates}" if profile.theme else predicates


def format_predicate(predicate: Predicate) -> str:
    """One predicate.

    >>> format_predicate(Predicate("device", Operator.EQ, "laptop", True, True))
    'device~ = laptop~'
    """
    attribute = write_attribute(predicate.attribute) + "~" * predicate.attribute_approximate
    if isinstance(predicate.value, Range):
        return f"{attribute} in {_range(predicate.value)}"
    ordered = predicate.operator not in (Operator.EQ, Operator.NE)
    value = write_value(predicate.value, ordered=ordered) + "~" * predicate.value_approximate
    return f"{attribute} {predicate.operator} {value}"


def _range(span: Range) -> str:
    low, high = write_value(span.low, ordered=True), write_value(span.high, ordered=True)
    return f"{'[' if span.low_closed else '('}{low}, {high}{']' if span.high_closed else ')'}"
