"""The four matrices between predicates and tuples, in plain NumPy [004 sec 7.5].

This is the reference definition: tests check that the compiled kernels give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event, Value, normalise
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching.competition import Competition
from likewise.matching.encoding import TEXT, canonical, kind_of, number_of, term_of
from likewise.matching.settings import Settings
from likewise.semantics import Hybrid, Measure, contrasted

# The interval that an ordering predicate accepts.


def bounds(predicate: Predicate) -> tuple[int, float, float]:
    """Kind and closed interval of numbers that an ordering predicate accepts; an open end becomes the next float.

    >>> bounds(Predicate("slot", Operator.GE, 3))
    (1, 3.0, inf)
    """
    value, operator = predicate.value, predicate.operator
    ends = (value.low, value.high) if isinstance(value, Range) else (value, value)
    kinds = {kind_of(end) for end in ends}
    if len(kinds) > 1 or TEXT in kinds:
        raise BuildError(
            f"{predicate.attribute!r} {operator.value} {value!r} cannot be ordered",
            hint="give a number or a time; for text use = or !=",
        )
    low, high = number_of(ends[0]), number_of(ends[1])
    if isinstance(value, Range):
        low = low if value.low_closed else math.nextafter(low, math.inf)
        high = high if value.high_closed else math.nextafter(high, -math.inf)
    elif operator in (Operator.LT, Operator.LE):
        low, high = -math.inf, high if operator is Operator.LE else math.nextafter(high, -math.inf)
    else:
        low, high = low if operator is Operator.GE else math.nextafter(low, math.inf), math.inf
    if not low <= high:
        raise BuildError(f"no value lies in {value!r}", hint="swap the two ends of the range")
    return kinds.pop(), low, high


RelateTerms: TypeAlias = Callable[[Sequence[str], Sequence[str]], NDArray[np.float32]]
"""Relatedness of subscription terms (rows) and event terms (columns), with themes already chosen."""


BestRivals: TypeAlias = Callable[[int, Sequence[str]], Mapping[str, float]]
"""For attributes (0) or values (1) of an event, the best score of each with any competitor."""


def attribute_matrix(profile: Profile, event: Event, relate: RelateTerms | None) -> NDArray[np.float64]:
    """Product of the exact and the approximate attribute matrix [004 eq 1, 3].

    >>> profile = Profile((Predicate("room", Operator.EQ, "112"),))
    >>> attribute_matrix(profile, Event.of({"Rooms": "112", "desk": "3"}), None).tolist()
    [[1.0, 0.0]]
    """
    subscribed = [normalise(predicate.attribute) for predicate in profile.predicates]
    published = [normalise(name) for name, _ in event.tuples]
    out = np.array([[float(a == b) for b in published] for a in subscribed]).reshape(len(subscribed), len(published))
    approximate = [i for i, predicate in enumerate(profile.predicates) if predicate.attribute_approximate]
    if relate is not None and approximate and published:
        out[approximate] = relate([subscribed[i] for i in approximate], published)
    return out


def value_matrix(profile: Profile, event: Event, relate: RelateTerms | None) -> NDArray[np.float64]:
    """Product of the exact and the approximate value matrix [004 eq 2, 4], with operators.

    `!=` holds for a different value; with `~` it is one minus the relatedness. Only text is compared by meaning:
    for other values `~` only makes the text "112" equal to the number 112.
    """
    out = np.zeros((len(profile.predicates), len(event.tuples)))
    for i, predicate in enumerate(profile.predicates):
        if predicate.operator in (Operator.EQ, Operator.NE):
            out[i] = [_equality_entry(predicate, value, relate) for _, value in event.tuples]
        else:
            kind, low, high = bounds(predicate)
            out[i] = [kind_of(value) == kind and low <= number_of(value) <= high for _, value in event.tuples]
    return out


def combined_matrix(profile: Profile, event: Event, relate: RelateTerms | None = None) -> NDArray[np.float64]:
    """Entry-wise product of all four matrices; without `relate` every `~` is ignored.

    >>> profile = Profile((Predicate("slot", Operator.GT, 0), Predicate("city", Operator.EQ, "Galway")))
    >>> combined_matrix(profile, Event.of({"city": "galway", "slots": 3})).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return attribute_matrix(profile, event, relate) * value_matrix(profile, event, relate)


def _equality_entry(predicate: Predicate, value: Value, relate: RelateTerms | None) -> float:
    assert not isinstance(predicate.value, Range)
    if relate is None or not predicate.value_approximate:
        equal = float(canonical(predicate.value) == canonical(value))
    elif kind_of(predicate.value) == kind_of(value) == TEXT:
        equal = float(relate([term_of(predicate.value)], [term_of(value)])[0, 0])
    else:
        equal = float(term_of(predicate.value) == term_of(value))
    return equal if predicate.operator is Operator.EQ else 1.0 - equal


# Relatedness of one profile's terms with one event's terms, in plain NumPy: for explanations and as reference.


class MatrixParts(NamedTuple):
    """Attribute and value matrix of a profile with an event; their product is the combined matrix."""

    attributes: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def combined(self) -> NDArray[np.float64]:
        """Entry-wise product [004 sec 7.5]."""
        return self.attributes * self.values


def parts_of(
    profile: Profile,
    event: Event,
    settings: Settings,
    *,
    measure: Measure | None,
    beside: Measure | None,
    competition: Competition,
    temperature: float,
    attribute_bits: float,
    themes: bool = True,
    best_rivals: BestRivals | None = None,
) -> MatrixParts:
    """Attribute and value matrix with these settings; `themes=False` ignores the themes of both sides.

    `beside` is the measure of values, which includes the values of a known stream. `best_rivals` has the competitors
    prepared; without it they are prepared anew.
    """
    if measure is None or beside is None:
        return MatrixParts(attribute_matrix(profile, event, None), value_matrix(profile, event, None))
    thematic = themes and settings.approach.base == "thematic"
    subscription_theme, event_theme = (profile.theme, event.theme) if thematic else ((), ())

    def relate_by(chosen: Measure) -> RelateTerms:
        return lambda subscribed, published: chosen.matrix(
            subscribed, published, subscription_theme=subscription_theme, event_theme=event_theme
        )

    names, values = relate_by(measure.for_attributes()), relate_by(beside)
    if settings.approach.base == "hybrid" and isinstance(measure, Hybrid):
        names = measure.property_matrix
    if settings.approach.contrast:
        find = best_rivals or _by_comparing(names, values, competition)
        names, values = (
            _contrasted_with(relate, find(side, terms), temperature)
            for side, relate, terms in zip((0, 1), (names, values), _terms_of(event), strict=True)
        )
    attributes = attribute_matrix(profile, event, names)
    with_text = [i for i, predicate in enumerate(profile.predicates) if has_text_value(predicate)]
    attributes[with_text] = lifted(attributes[with_text], attribute_bits)
    return MatrixParts(attributes, value_matrix(profile, event, values))


def lifted(scores: NDArray[np.float64], bits: float) -> NDArray[np.float64]:
    """Add `bits` to the log odds of probabilities; 0 and 1 stay.

    >>> lifted(np.array([0.0, 0.5, 1.0]), 2.0).tolist()  # 0.5 : 0.5 becomes 4 : 1
    [0.0, 0.8, 1.0]
    """
    return np.asarray(scores / (scores + (1.0 - scores) * 2.0**-bits), np.float64)


def _terms_of(event: Event) -> tuple[list[str], list[str]]:
    """The distinct attributes and text values of an event."""
    texts = {term_of(value) for _, value in event.tuples if kind_of(value) == TEXT}
    return sorted({normalise(name) for name, _ in event.tuples}), sorted(texts)


def _by_comparing(names: RelateTerms, values: RelateTerms, competition: Competition) -> BestRivals:
    def find(side: int, terms: Sequence[str]) -> dict[str, float]:
        rivals, relate = ((competition.attributes, names), (competition.values, values))[side]
        best = relate(rivals, terms).max(axis=0) if rivals and terms else np.zeros(len(terms), np.float32)
        return dict(zip(terms, best.tolist(), strict=True))

    return find


def _contrasted_with(relate: RelateTerms, best: Mapping[str, float], temperature: float) -> RelateTerms:
    def contrast(subscribed: Sequence[str], published: Sequence[str]) -> NDArray[np.float32]:
        rival = np.array([best[term] for term in published], np.float32)
        return contrasted(np.asarray(relate(subscribed, published)).T, rival, temperature).T

    return contrast


def has_text_value(predicate: Predicate) -> bool:
    """Whether a predicate asks for a text value; a text value that matches makes its attribute more likely."""
    return predicate.operator is Operator.EQ and isinstance(predicate.value, str)
