"""The compiled kernel that scores all profiles for every event."""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from likewise.matching.index.exact_kernel import DIFFER, EQUAL, WITHIN

RELATED: Final = 3
UNRELATED: Final = 4

PRODUCT: Final = 0
GEOMETRIC: Final = 1
MEAN: Final = 2
CAUTIOUS: Final = 3
JOINT: Final = 4

_TEXT: Final = 0


CONDITION: Final = np.dtype(
    [
        ("low", np.float64),
        ("high", np.float64),
        ("attribute", np.int32),
        ("attribute_column", np.int32),
        ("value", np.int32),
        ("value_column", np.int32),
        ("operator", np.int8),
        ("kind", np.int8),
    ],
    align=True,
)
"""A distinct predicate: a column for a term compared by meaning, -1 for one compared exactly."""


class TupleTerms(NamedTuple):
    """Tuples of events: the numbers of their terms, and the score rows of these terms."""

    attribute: NDArray[np.int32]
    value: NDArray[np.int32]
    kind: NDArray[np.int8]
    number: NDArray[np.float64]
    attribute_row: NDArray[np.int64]
    value_row: NDArray[np.int64]


class Profiles(NamedTuple):
    """The predicates of every profile, and the bounds that its entries must reach."""

    start: NDArray[np.int64]
    length: NDArray[np.int32]
    condition: NDArray[np.int32]
    bound: NDArray[np.float64]
    aggregation: NDArray[np.int8]
    limit: NDArray[np.float64]
    least: NDArray[np.float64]
    """The bound of each single entry, for profiles with the joint aggregation."""
    chance: NDArray[np.float64]
    odds: NDArray[np.float64]
    meant: float


@numba.njit(cache=True, nogil=True)
def _value_factor(c: int, t: int, conditions: Any, tuples: TupleTerms, values: NDArray[np.float32]) -> float:
    operator = conditions[c].operator
    if operator == WITHIN:
        number = tuples.number[t]
        inside = tuples.kind[t] == conditions[c].kind and conditions[c].low <= number <= conditions[c].high
        return 1.0 if inside else 0.0
    same = tuples.value[t] == conditions[c].value
    if operator in (EQUAL, DIFFER):
        same = same and tuples.kind[t] == conditions[c].kind
        return 1.0 if same == (operator == EQUAL) else 0.0
    textual = tuples.kind[t] == _TEXT and conditions[c].kind == _TEXT
    related = values[tuples.value_row[t], conditions[c].value_column] if textual else (1.0 if same else 0.0)
    return related if operator == RELATED else 1.0 - related


@numba.njit(cache=True, nogil=True, inline="always")
def lifted(score: float, odds_factor: float) -> float:
    """A probability with its odds against multiplied by a factor below 1; see `definition.lifted`."""
    return score / (score + (1.0 - score) * odds_factor)


@numba.njit(cache=True, nogil=True, inline="always")
def has_text_value(condition: Any) -> bool:
    """Whether a condition asks for a text value; a text value that matches makes its attribute more likely.

    A number in a range is weak evidence: there only the attribute's name counts.
    """
    return bool(condition.kind == _TEXT and condition.operator in (RELATED, EQUAL))


@numba.njit(cache=True, nogil=True)
def fill_rows(
    out: NDArray[np.float32],
    places: NDArray[np.int64],
    conditions: Any,
    count: int,
    tuples: TupleTerms,
    attributes: NDArray[np.float32],
    values: NDArray[np.float32],
    odds_factor: float,
) -> None:
    """The combined matrix [004 eq 1-4] of tuples with all conditions, a row per tuple."""
    for t in range(len(places)):
        row = out[places[t]]
        for c in range(count):
            column = conditions[c].attribute_column
            if column >= 0:
                factor = attributes[tuples.attribute_row[t], column]
                if odds_factor != 1 and factor > 0 and has_text_value(conditions[c]):
                    factor = np.float32(lifted(factor, odds_factor))
            else:
                factor = np.float32(1.0 if tuples.attribute[t] == conditions[c].attribute else 0.0)
            row[c] = factor * _value_factor(c, t, conditions, tuples, values) if factor > 0 else 0.0


@numba.njit(cache=True, nogil=True)
def _reached(best: NDArray[np.float32], profile: int, profiles: Profiles) -> float:
    """The product or the sum of a profile's best entries; -1 as soon as it cannot reach its bound."""
    begin = profiles.start[profile]
    end = begin + profiles.length[profile]
    bound = profiles.bound[profile]
    if profiles.aggregation[profile] == MEAN:
        total = 0.0
        for place in range(begin, end):
            total += best[profiles.condition[place]]
        return total if total >= bound else -1.0
    product = 1.0
    for place in range(begin, end):
        entry = best[profiles.condition[place]]
        product *= entry
        if product < bound or entry < profiles.least[place]:
            return -1.0
    return product


@numba.njit(cache=True, nogil=True)
def _weakened(best: NDArray[np.float32], reached: float, profile: int, profiles: Profiles) -> float:
    """The product times the weakest entry to the power n, for n entries; -1 if below the bound.

    The bound of a cautious profile is the square root of what this must reach.
    """
    begin, length, bound = profiles.start[profile], profiles.length[profile], profiles.bound[profile]
    least = 1.0
    for place in range(begin, begin + length):
        least = min(least, best[profiles.condition[place]])
    for _ in range(length):
        reached *= least
    return reached if reached >= bound * bound else -1.0


@numba.njit(cache=True, nogil=True)
def joint_score(if_meant: Any, by_chance: Any, chances: float, meant: float) -> Any:
    """The joint probability of all predicates; see `background.joint`.

    `if_meant` and `by_chance` are the likelihoods of the entries if the event is meant and if it is not.
    """
    return (meant + (1.0 - meant) * chances) * if_meant / (meant * if_meant + (1.0 - meant) * by_chance)


@numba.njit(cache=True, nogil=True)
def _jointly(best: NDArray[np.float32], profile: int, profiles: Profiles) -> float:
    """The joint score of a profile with an answer to every predicate."""
    begin = profiles.start[profile]
    if_meant, by_chance, chances, count, last = 1.0, 1.0, 1.0, 0, 1.0
    for place in range(begin, begin + profiles.length[profile]):
        condition = profiles.condition[place]
        odds, chance, entry = profiles.odds[condition], profiles.chance[condition], np.float64(best[condition])
        # Exact predicates have odds 0: they hold, and do not change how likely the others are.
        if odds > 0.0:
            count += 1
            last = entry
            if_meant *= odds * entry
            by_chance *= chance * odds * entry + (1.0 - chance) * (1.0 - entry)
            chances *= chance
    # A single predicate keeps its probability.
    return float(joint_score(if_meant, by_chance, chances, profiles.meant)) if count > 1 else last


@numba.njit(cache=True, nogil=True)
def score_of(reached: float, length: int, aggregation: int) -> float:
    """The score of a product or sum."""
    if aggregation == MEAN:
        return reached / length
    if aggregation == CAUTIOUS:
        return float(reached ** (0.5 / length))
    return reached if aggregation in (PRODUCT, JOINT) or length == 1 else reached ** (1.0 / length)


@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _maximise(best: NDArray[np.float32], row: NDArray[np.float32]) -> None:
    for c in range(len(best)):
        best[c] = max(best[c], row[c])


@numba.njit(cache=True, nogil=True)
def _meets(met: NDArray[np.uint8], profile: int, profiles: Profiles) -> bool:
    begin = profiles.start[profile]
    for place in range(begin, begin + profiles.length[profile]):  # noqa: SIM110 - compiled
        if not met[profiles.condition[place]]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def score_dense(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    events: NDArray[np.int64],
    first: int,
    slot: NDArray[np.int32],
    rows: NDArray[np.float32],
    meeting: NDArray[np.uint8],
    count: int,
    active: NDArray[np.int32],
    profiles: Profiles,
    out_event: NDArray[np.int32],
    out_profile: NDArray[np.int32],
    out_score: NDArray[np.float32],
    compared: NDArray[np.int64],
) -> tuple[int, int]:
    """Event, profile and score of every match, for the chosen events from the `first` on.

    With `meeting` rows (shared topics), only profiles are compared whose conditions all meet some tuple. Returns where
    to continue and how many hits were written; if the output is full, all hits of the current event are taken back.
    """
    written = 0
    best = np.zeros(count, dtype=np.float32)
    clustered = meeting.shape[1] > 0
    met = np.zeros(count if clustered else 0, dtype=np.uint8)
    for which in range(first, len(events)):
        event = events[which]
        before = written
        tried = 0
        best[:] = 0.0
        for place in range(starts[event], starts[event + 1]):
            _maximise(best, rows[slot[ids[place]], :count])
        if clustered:
            met[:] = 0
            for place in range(starts[event], starts[event + 1]):
                met |= meeting[slot[ids[place]], :count]
        for profile in active:
            if clustered and not _meets(met, profile, profiles):
                continue
            tried += 1
            reached = _reached(best, profile, profiles)
            if reached > 0.0 and profiles.aggregation[profile] == CAUTIOUS:
                reached = _weakened(best, reached, profile, profiles)
            elif reached > 0.0 and profiles.aggregation[profile] == JOINT:
                reached = _jointly(best, profile, profiles)
                reached = reached if reached >= profiles.limit[profile] else -1.0
            if reached > 0.0:
                if written == len(out_event):
                    return which, before
                out_event[written] = event
                out_profile[written] = profile
                out_score[written] = score_of(reached, profiles.length[profile], profiles.aggregation[profile])
                written += 1
        compared[0] += tried
    return len(events), written
