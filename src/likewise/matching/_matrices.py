"""The four matrices between predicates and tuples, in plain NumPy [004 sec 7.5].

This is the definition: compiled kernels must give the same numbers, and tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.events import Event, Value, normalise
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching._bounds import bounds
from likewise.matching._vocabulary import TEXT, canonical, kind_of, number_of, term_of

Relate: TypeAlias = Callable[[Sequence[str], Sequence[str]], NDArray[np.float32]]
"""Relatedness of subscription terms (rows) and event terms (columns), with themes already chosen."""


def attribute_matrix(profile: Profile, event: Event, relate: Relate | None) -> NDArray[np.float64]:
    """Exact times approximate attribute matrix [004 eq 1, 3].

    >>> profile = Profile((Predicate("room", Operator.EQ, "112"),))
    >>> attribute_matrix(profile, Event.of({"Rooms": "112", "desk": "3"}), None).tolist()
    [[1.0, 0.0]]
    """
    mine = [normalise(predicate.attribute) for predicate in profile.predicates]
    theirs = [normalise(name) for name, _ in event.tuples]
    out = np.array([[float(a == b) for b in theirs] for a in mine]).reshape(len(mine), len(theirs))
    loose = [i for i, predicate in enumerate(profile.predicates) if predicate.attribute_approximate]
    if relate is not None and loose and theirs:
        out[loose] = relate([mine[i] for i in loose], theirs)
    return out


def value_matrix(profile: Profile, event: Event, relate: Relate | None) -> NDArray[np.float64]:
    """Exact times approximate value matrix [004 eq 2, 4], with operators.

    `!=` holds for a value that differs; with `~` it is one minus the relatedness. Only text has a
    meaning to compare: with `~`, the text "112" equals the number 112, and nothing more.
    """
    out = np.zeros((len(profile.predicates), len(event.tuples)))
    for i, predicate in enumerate(profile.predicates):
        for j, (_, value) in enumerate(event.tuples):
            out[i, j] = _value_entry(predicate, value, relate)
    return out


def combined_matrix(profile: Profile, event: Event, relate: Relate | None = None) -> NDArray[np.float64]:
    """Entry-wise product of all four; without `relate` every `~` is taken as exact.

    >>> profile = Profile((Predicate("slot", Operator.GT, 0), Predicate("city", Operator.EQ, "Galway")))
    >>> combined_matrix(profile, Event.of({"city": "galway", "slots": 3})).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return attribute_matrix(profile, event, relate) * value_matrix(profile, event, relate)


def _value_entry(predicate: Predicate, value: Value, relate: Relate | None) -> float:
    if predicate.operator not in (Operator.EQ, Operator.NE):
        kind, low, high = bounds(predicate)
        return float(kind_of(value) == kind and low <= number_of(value) <= high)
    assert not isinstance(predicate.value, Range)
    if relate is None or not predicate.value_approximate:
        equal = float(canonical(predicate.value) == canonical(value))
    elif kind_of(predicate.value) == kind_of(value) == TEXT:
        equal = float(relate([term_of(predicate.value)], [term_of(value)])[0, 0])
    else:
        equal = float(term_of(predicate.value) == term_of(value))
    return equal if predicate.operator is Operator.EQ else 1.0 - equal
