"""The interval that an ordering predicate accepts."""

from __future__ import annotations

import math

from likewise.errors import BuildError
from likewise.language import Operator, Predicate, Range
from likewise.matching._vocabulary import TEXT, kind_of, number_of


def bounds(predicate: Predicate) -> tuple[int, float, float]:
    """Kind and closed interval of numbers that an ordering predicate accepts; an open end moves one float inwards.

    >>> bounds(Predicate("slot", Operator.GE, 3))
    (1, 3.0, inf)
    """
    value, operator = predicate.value, predicate.operator
    ends = (value.low, value.high) if isinstance(value, Range) else (value, value)
    kinds = {kind_of(end) for end in ends}
    if len(kinds) > 1 or TEXT in kinds:
        raise BuildError(
            f"{predicate.attribute!r} {operator.value} {value!r} cannot be ordered",
            hint="order needs two numbers or two times; text goes with = or !=",
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
