"""The compiled heart of approximate matching of very many profiles: only candidates are scored."""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from likewise.matching.index.dense_kernel import (
    CAUTIOUS,
    CHANCE,
    JOINT,
    MEAN,
    MEANT,
    RELATED,
    UNRELATED,
    is_worded,
    joint_score,
    lifted,
    score_of,
)
from likewise.matching.index.exact_kernel import EQUAL, WITHIN, EventTuples, _lower_bound

_TEXT = 0
_ODDS: Final = (1 - MEANT) * (1 - CHANCE) / (MEANT + (1 - MEANT) * CHANCE)
"""The odds against a predicate before anything is compared; the index knows no stream."""


PROFILE: Final = np.dtype(
    [
        ("start", np.int64),
        ("bound", np.float64),
        ("limit", np.float64),
        ("length", np.int16),
        ("watched", np.int16),
        ("aggregation", np.int8),
        ("active", np.bool_),
    ],
    align=True,
)
"""Where a profile's conditions begin, how many they are and are watched, and what they must reach together."""


class CandidatePostings(NamedTuple):
    """Lists of (attribute, profile, bound) by a number; an exact attribute a is written as -a - 1.

    The bound is how well the condition must be met; it stands here, next to what is read anyway.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int32]
    attribute: NDArray[np.int32]
    profile: NDArray[np.int32]
    bound: NDArray[np.float32]


class NearTerms(NamedTuple):
    """Per event term the subscription terms near it, by column, and the best score of a rival."""

    of: NDArray[np.int32]
    start: NDArray[np.int64]
    length: NDArray[np.int32]
    column: NDArray[np.int32]
    score: NDArray[np.float32]
    strong_start: NDArray[np.int64]
    strong_length: NDArray[np.int32]
    strong_column: NDArray[np.int32]
    strong_score: NDArray[np.float32]
    rival: NDArray[np.float32]


class NearNames(NamedTuple):
    """Per event attribute its row of scores, and the best score of a rival."""

    of: NDArray[np.int32]
    table: NDArray[np.float32]
    rival: NDArray[np.float32]


class SparseTables(NamedTuple):
    """All that stays the same while a batch is matched."""

    tuples: EventTuples
    values: NDArray[np.int32]
    names: NearNames
    near: NearTerms
    conditions: Any
    profiles: Any
    conditions_of: NDArray[np.int32]
    least: float
    strong: bool
    temperature: float
    doubt: float


@numba.njit(cache=True, nogil=True, inline="always")
def _contrast(score: float, rival: float, temperature: float) -> float:
    if temperature <= 0.0 or score >= rival or score <= 0.0:
        return score
    return score * math.exp((score - rival) / temperature)


@numba.njit(cache=True, nogil=True, inline="always")
def _name_factor(attribute: int, t: int, world: SparseTables) -> float:
    """How well the tuple's attribute answers an attribute column, or exactly -a - 1."""
    if attribute < 0:
        return 1.0 if world.tuples.attribute[t] == -attribute - 1 else 0.0
    row = world.names.of[world.tuples.attribute[t]]
    return _contrast(world.names.table[row, attribute], world.names.rival[row], world.temperature)


@numba.njit(cache=True, nogil=True, inline="always")
def _name_bound(attribute: int, t: int, world: SparseTables) -> float:
    """The most that the attribute can count for, whatever its condition makes of its weight."""
    factor = _name_factor(attribute, t, world)
    return lifted(factor, world.doubt) if world.doubt < 1.0 and factor > 0.0 else factor


@numba.njit(cache=True, nogil=True, inline="always")
def _value_score(column: int, t: int, world: SparseTables) -> float:
    """How well the tuple's value answers a value column."""
    near = world.near
    which = near.of[world.values[t]]
    begin = near.start[which]
    end = begin + near.length[which]
    place = _lower_bound(near.column, begin, end, column)
    if place == end or near.column[place] != column:
        return 0.0
    return _contrast(near.score[place], near.rival[which], world.temperature)


@numba.njit(cache=True, nogil=True, inline="always")
def _entry(c: int, t: int, least: float, world: SparseTables) -> float:
    """One entry of the combined matrix [004 eq 1-4], or 0 where it is surely not above `least`."""
    conditions, tuples = world.conditions, world.tuples
    column = conditions[c].attribute_column
    factor = _name_factor(column if column >= 0 else -conditions[c].attribute - 1, t, world)
    if world.doubt != 1.0 and factor > 0.0 and is_worded(conditions[c]):
        factor = lifted(factor, world.doubt)
    if factor <= least:
        return 0.0
    operator = conditions[c].operator
    if operator == WITHIN:
        inside = tuples.kind[t] == conditions[c].kind and conditions[c].low <= tuples.number[t] <= conditions[c].high
        return factor if inside else 0.0
    same = world.values[t] == conditions[c].value
    if operator not in (RELATED, UNRELATED):
        same = same and tuples.kind[t] == conditions[c].kind
        return factor if same == (operator == EQUAL) else 0.0
    if tuples.kind[t] == _TEXT and conditions[c].kind == _TEXT:
        related = _value_score(conditions[c].value_column, t, world)
    else:
        related = 1.0 if same else 0.0
    return factor * (related if operator == RELATED else 1.0 - related)


@numba.njit(cache=True, nogil=True)
def _verify(profile: int, mine: NDArray[np.int32], world: SparseTables) -> float:
    """The product or sum of the best entries of a candidate; 0 as soon as it cannot reach its bound."""
    record = world.profiles[profile]
    begin, length, bound = record.start, record.length, record.bound
    mean, cautious = record.aggregation == MEAN, record.aggregation == CAUTIOUS
    reached, weakest = 0.0 if mean else 1.0, 1.0
    whole, doubts, chances = 1.0, 1.0, 1.0
    # One entry below the bound of a product rules the profile out: no need to know how far below.
    least = 0.0 if mean else 0.999 * (bound ** (1.0 / (length + 1)) if cautious else bound)
    for at in range(length):
        best = 0.0
        for t in mine:
            entry = np.float64(np.float32(_entry(world.conditions_of[begin + at], t, max(least, best), world)))
            best = max(best, entry)
        reached = reached + best if mean else reached * best
        weakest = min(weakest, best)
        condition = world.conditions[world.conditions_of[begin + at]]
        if condition.attribute_column >= 0 or condition.operator in (RELATED, UNRELATED):
            whole *= _ODDS * best
            doubts *= CHANCE * _ODDS * best + (1.0 - CHANCE) * (1.0 - best)
            chances *= CHANCE
        if (reached + length - at - 1 if mean else (reached * reached if cautious else reached)) < bound:
            return 0.0
    if record.aggregation == JOINT:
        reached = joint_score(whole, doubts, chances, MEANT)
        return reached if reached >= record.limit else 0.0
    if not cautious:
        return reached
    reached *= weakest ** np.float64(length)
    return reached if reached >= bound else 0.0


@numba.njit(cache=True, nogil=True, inline="always")
def _collect(
    t: int,
    score: float,
    number: int,
    postings: CandidatePostings,
    world: SparseTables,
    seen: NDArray[np.int64],
    now: int,
    candidates: NDArray[np.int32],
    count: int,
) -> int:
    """Add the profiles of one list whose access condition this tuple meets well enough."""
    if number >= len(postings.length):
        return count
    begin = postings.start[number]
    for place in range(begin, begin + postings.length[number]):
        bound = postings.bound[place]
        if score >= bound and score * _name_bound(postings.attribute[place], t, world) >= bound:
            profile = postings.profile[place]
            if seen[profile] != now:
                seen[profile] = now
                candidates[count] = profile
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def match_sparse(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    events: NDArray[np.int64],
    first: int,
    world: SparseTables,
    by_meaning: CandidatePostings,
    by_value: CandidatePostings,
    by_name: CandidatePostings,
    seen: NDArray[np.int64],
    clock: NDArray[np.int64],
    candidates: NDArray[np.int32],
    out_event: NDArray[np.int32],
    out_profile: NDArray[np.int32],
    out_score: NDArray[np.float32],
) -> tuple[int, int]:
    """Event, profile and score of every match, for the chosen events from the `first` on."""
    written = 0
    near = world.near
    for which in range(first, len(events)):
        event = events[which]
        mine = ids[starts[event] : starts[event + 1]]
        clock[0] += 1
        now = clock[0]
        before = written
        count = 0
        for t in mine:
            count = _collect(t, 1.0, world.values[t], by_value, world, seen, now, candidates, count)
            # List 0 is of exact attributes, list c + 1 of the attribute column c.
            for number in range(len(by_name.length)):
                if by_name.length[number] and (number == 0 or _name_bound(number - 1, t, world) >= world.least):
                    count = _collect(t, 1.0, number, by_name, world, seen, now, candidates, count)
            if world.tuples.kind[t] != _TEXT:
                continue
            term = near.of[world.values[t]]
            start, length = near.start[term], near.length[term]
            columns, scores = near.column, near.score
            if world.strong:
                start, length = near.strong_start[term], near.strong_length[term]
                columns, scores = near.strong_column, near.strong_score
            for place in range(start, start + length):
                if scores[place] >= world.least:
                    score = _contrast(scores[place], near.rival[term], world.temperature)
                    if score >= world.least:
                        count = _collect(t, score, columns[place], by_meaning, world, seen, now, candidates, count)
        clock[1] += count
        for at in range(count):
            profile = candidates[at]
            reached = _verify(profile, mine, world)
            if reached > 0.0:
                if written == len(out_event):
                    return which, before
                out_event[written] = event
                out_profile[written] = profile
                record = world.profiles[profile]
                out_score[written] = score_of(reached, record.length, record.aggregation)
                written += 1
    return len(events), written


@numba.njit(cache=True, nogil=True)
def fill_matrix(
    out: NDArray[np.float32], conditions: NDArray[np.int32], ids: NDArray[np.int32], world: SparseTables
) -> None:
    """The combined matrix of a few conditions with the tuples of one event."""
    for i in range(len(conditions)):
        for j in range(len(ids)):
            out[i, j] = _entry(conditions[i], ids[j], 0.0, world)
