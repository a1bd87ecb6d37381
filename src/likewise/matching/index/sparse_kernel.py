"""The compiled kernel for very many approximate profiles: only candidates are scored."""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from likewise.calibration import CHANCE, LEAST_CHANCE, MEANT, MEANT_IN_STREAM, MOST_CHANCE
from likewise.matching.index.dense_kernel import (
    CAUTIOUS,
    JOINT,
    MEAN,
    RELATED,
    UNRELATED,
    has_text_value,
    joint_score,
    lifted,
    score_of,
)
from likewise.matching.index.exact_kernel import EQUAL, WITHIN, EventTuples, _lower_bound, njit_uncounted

_njit_inlined = partial(njit_uncounted, inline="always")

_TEXT = 0
_ODDS: Final = (1 - MEANT) * (1 - CHANCE) / (MEANT + (1 - MEANT) * CHANCE)
"""The prior odds against a predicate in an unknown stream."""

FLOOR: Final = 0.01
"""The nearest terms are listed from this relatedness on; others are compared only where it matters."""

UNSURE: Final = -1.0
"""The result for a profile that depends on terms that are not listed."""


STEPS: Final = 1024
"""Steps of entries for which bounds are tabled."""


def _ratios() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For entries up to each step, the highest ratio of meant to unmeant for any chance, and chance times it.

    The ratio of an entry e is odds e / (chance odds e + (1 - chance) (1 - e)).
    """
    entry = np.minimum(np.arange(1, STEPS + 2) / STEPS, 1.0)[:, None]
    chance = np.linspace(LEAST_CHANCE, MOST_CHANCE, 181)
    prior = np.sqrt((MEANT_IN_STREAM + (1 - MEANT_IN_STREAM) * chance) * 0.5)
    odds = (1 - prior) / prior
    ratio = odds * entry / (chance * odds * entry + (1 - chance) * (1 - entry))
    # A little higher, for the chances between those tried.
    return 1.01 * ratio.max(axis=1), 1.01 * (chance * ratio).max(axis=1)


RATIO, RATIO_BY_CHANCE = _ratios()

PROFILE: Final = np.dtype(
    [
        ("start", np.int64),
        ("bound", np.float64),
        ("limit", np.float64),
        ("least", np.float32),
        ("least_in_stream", np.float32),
        ("length", np.int16),
        ("watched", np.int16),
        ("aggregation", np.int8),
        ("active", np.bool_),
    ],
    align=True,
)
"""Where a profile's conditions begin, how many there are, how many are watched, the bound of their product, and for
the joint probability the bound of each, in an unknown and in a known stream."""


class CandidatePostings(NamedTuple):
    """Numbered lists of (attribute, profile, bound); an exact attribute a is written as -a - 1.

    The bound is the score that the condition must reach; it is stored here since the kernel reads these lists anyway.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int32]
    attribute: NDArray[np.int32]
    profile: NDArray[np.int32]
    bound: NDArray[np.float32]


class NearTerms(NamedTuple):
    """For each event term the near subscription terms, by column, and the best score of a rival."""

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
    """For each event attribute its row of scores, and the best score of a rival."""

    of: NDArray[np.int32]
    table: NDArray[np.float32]
    rival: NDArray[np.float32]


class StreamTables(NamedTuple):
    """The tuples of a sample of the stream, and the chance of each condition, computed when first needed."""

    known: bool
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    chance: NDArray[np.float64]
    stamp: NDArray[np.int64]
    now: int
    """Chances with another stamp are out of date."""


class SparseTables(NamedTuple):
    """All tables that stay the same while a batch is matched."""

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
    odds_factor: float
    stream: StreamTables


@_njit_inlined
def _contrast(score: float, rival: float, temperature: float) -> float:
    if temperature <= 0.0 or score >= rival or score <= 0.0:
        return score
    return score * math.exp((score - rival) / temperature)


@_njit_inlined
def _name_factor(attribute: int, t: int, tables: SparseTables) -> float:
    """The score of the tuple's attribute with an attribute column, or with an exact attribute (-a - 1)."""
    if attribute < 0:
        return 1.0 if tables.tuples.attribute[t] == -attribute - 1 else 0.0
    row = tables.names.of[tables.tuples.attribute[t]]
    return _contrast(tables.names.table[row, attribute], tables.names.rival[row], tables.temperature)


@_njit_inlined
def _name_bound(attribute: int, t: int, tables: SparseTables) -> float:
    """The highest possible score of the attribute, with the bits added that its condition may give it."""
    factor = _name_factor(attribute, t, tables)
    return lifted(factor, tables.odds_factor) if tables.odds_factor < 1.0 and factor > 0.0 else factor


@_njit_inlined
def _value_score(column: int, t: int, tables: SparseTables) -> float:
    """The score of the tuple's value with a value column."""
    near = tables.near
    which = near.of[tables.values[t]]
    begin = near.start[which]
    end = begin + near.length[which]
    place = _lower_bound(near.column, begin, end, column)
    if place == end or near.column[place] != column:
        return 0.0
    return _contrast(near.score[place], near.rival[which], tables.temperature)


@_njit_inlined
def _entry(c: int, t: int, least: float, tables: SparseTables) -> float:
    """One entry of the combined matrix [004 eq 1-4], or 0 if it cannot be above `least`."""
    conditions, tuples = tables.conditions, tables.tuples
    column = conditions[c].attribute_column
    factor = _name_factor(column if column >= 0 else -conditions[c].attribute - 1, t, tables)
    if tables.odds_factor != 1.0 and factor > 0.0 and has_text_value(conditions[c]):
        factor = lifted(factor, tables.odds_factor)
    if factor <= least:
        return 0.0
    operator = conditions[c].operator
    if operator == WITHIN:
        inside = tuples.kind[t] == conditions[c].kind and conditions[c].low <= tuples.number[t] <= conditions[c].high
        return factor if inside else 0.0
    same = tables.values[t] == conditions[c].value
    if operator not in (RELATED, UNRELATED):
        same = same and tuples.kind[t] == conditions[c].kind
        return factor if same == (operator == EQUAL) else 0.0
    if tuples.kind[t] == _TEXT and conditions[c].kind == _TEXT:
        related = _value_score(conditions[c].value_column, t, tables)
    else:
        related = 1.0 if same else 0.0
    return factor * (related if operator == RELATED else 1.0 - related)


@_njit_inlined
def _best(c: int, event_ids: NDArray[np.int32], least: float, tables: SparseTables) -> float:
    """The best entry of a condition with an event's tuples; 0 if none is above `least`."""
    best = 0.0
    for t in event_ids:
        best = max(best, np.float64(np.float32(_entry(c, t, max(least, best), tables))))
    return best


@_njit_inlined
def _by_meaning(condition: Any) -> bool:
    return bool(condition.attribute_column >= 0 or condition.operator in (RELATED, UNRELATED))


@njit_uncounted
def _unlisted(c: int, event_ids: NDArray[np.int32], tables: SparseTables) -> float:
    """What a condition may reach with values that are not listed as near; 0 if there are none."""
    conditions, near, most = tables.conditions, tables.near, 0.0
    if conditions[c].operator != RELATED or conditions[c].value_column < 0:
        return 0.0
    for t in event_ids:
        if tables.tuples.kind[t] == _TEXT:
            column, which = conditions[c].attribute_column, near.of[tables.values[t]]
            end = near.start[which] + near.length[which]
            place = _lower_bound(near.column, near.start[which], end, conditions[c].value_column)
            if place == end or near.column[place] != conditions[c].value_column:
                name = _name_bound(column if column >= 0 else -conditions[c].attribute - 1, t, tables)
                most = max(most, FLOOR * name)
    return most


@njit_uncounted
def _undecided(profile: int, event_ids: NDArray[np.int32], tables: SparseTables) -> bool:
    """Whether a condition `!=` by meaning depends on values not listed as near, which score almost 0."""
    record, near = tables.profiles[profile], tables.near
    for at in range(record.start, record.start + record.length):
        condition = tables.conditions[tables.conditions_of[at]]
        if condition.operator == UNRELATED and condition.kind == _TEXT and condition.value_column >= 0:
            for t in event_ids:
                if tables.tuples.kind[t] == _TEXT:
                    which = near.of[tables.values[t]]
                    end = near.start[which] + near.length[which]
                    place = _lower_bound(near.column, near.start[which], end, condition.value_column)
                    if place == end or near.column[place] != condition.value_column:
                        return True
    return False


@njit_uncounted
def chance_of(c: int, tables: SparseTables) -> float:
    """The share of the sample's events that answer a condition by meaning, within its limits."""
    stream = tables.stream
    if stream.stamp[c] != stream.now:
        total, size = 0.0, len(stream.starts) - 1
        for event in range(size):
            best = _best(c, stream.ids[stream.starts[event] : stream.starts[event + 1]], 0.0, tables)
            if best >= FLOOR:
                total += best
        stream.chance[c] = min(max(total / size, LEAST_CHANCE), MOST_CHANCE)
        stream.stamp[c] = stream.now
    return float(stream.chance[c])


@njit_uncounted
def _verify_jointly(profile: int, event_ids: NDArray[np.int32], tables: SparseTables) -> float:
    """The joint score of a candidate's best entries; 0 as soon as it cannot reach its limit.

    UNSURE if it would reach the limit with a term that is not listed as near.
    """
    record, known = tables.profiles[profile], tables.stream.known
    begin, length = record.start, record.length
    least = np.float64(record.least_in_stream if known else record.least)
    reached, ratio, by_chance = 1.0, 1.0, 1.0
    for at in range(length):
        c = tables.conditions_of[begin + at]
        best = _best(c, event_ids, least, tables)
        # Relatedness below the floor is listed only if it was compared before.
        if least < FLOOR and best < FLOOR:
            best = max(best, _unlisted(c, event_ids, tables))
        if _by_meaning(tables.conditions[c]):
            reached *= best
            ratio *= RATIO[int(best * STEPS)]
            by_chance *= RATIO_BY_CHANCE[int(best * STEPS)]
            if best < least or (not known and reached < record.bound):
                return 0.0
        elif best <= 0.0:
            return 0.0
    # A score s is p r / (m r + 1 - m), where r is the product of all ratios, m the share of events that are meant and
    # p at most m + (1 - m) times all chances. So however common the answers are, it cannot be higher than this.
    most = MEANT_IN_STREAM * (1.0 - record.limit) * ratio + (1.0 - MEANT_IN_STREAM) * by_chance
    if known and most < record.limit * (1.0 - MEANT_IN_STREAM):
        return 0.0
    # Few profiles come this far, so that their entries are computed a second time.
    by_chance = 1.0
    if_meant, chances, count, single = 1.0, 1.0, 0, 1.0
    unsure = False
    for at in range(length):
        c = tables.conditions_of[begin + at]
        if not _by_meaning(tables.conditions[c]):
            continue
        best = _best(c, event_ids, 0.0, tables)
        if least < FLOOR and best < FLOOR:
            unlisted = _unlisted(c, event_ids, tables)
            unsure, best = unsure or unlisted > best, max(best, unlisted)
        chance, odds = CHANCE, _ODDS
        if known:
            chance = chance_of(c, tables)
            prior = math.sqrt((MEANT_IN_STREAM + (1.0 - MEANT_IN_STREAM) * chance) * 0.5)
            odds = (1.0 - prior) / prior
        count, single = count + 1, best
        if_meant *= odds * best
        by_chance *= chance * odds * best + (1.0 - chance) * (1.0 - best)
        chances *= chance
    score = single
    if count > 1:
        # A single predicate keeps its probability.
        score = (
            joint_score(if_meant, by_chance, chances, MEANT_IN_STREAM if known else MEANT) if if_meant > 0.0 else 0.0
        )
    if score < record.limit:
        return 0.0
    return UNSURE if unsure or _undecided(profile, event_ids, tables) else score


@njit_uncounted
def _verify(profile: int, event_ids: NDArray[np.int32], tables: SparseTables) -> float:
    """The product, sum or joint score of a candidate's best entries; 0 as soon as it cannot reach its bound."""
    record = tables.profiles[profile]
    if record.aggregation == JOINT:
        return float(_verify_jointly(profile, event_ids, tables))
    begin, length, bound = record.start, record.length, record.bound
    mean, cautious = record.aggregation == MEAN, record.aggregation == CAUTIOUS
    reached, weakest = 0.0 if mean else 1.0, 1.0
    # One entry below the bound of the product rules the profile out.
    least = 0.0 if mean else 0.999 * (bound ** (1.0 / (length + 1)) if cautious else bound)
    for at in range(length):
        best = _best(tables.conditions_of[begin + at], event_ids, least, tables)
        reached = reached + best if mean else reached * best
        weakest = min(weakest, best)
        if (reached + length - at - 1 if mean else (reached * reached if cautious else reached)) < bound:
            return 0.0
    if cautious:
        reached *= weakest ** np.float64(length)
        if reached < bound:
            return 0.0
    return UNSURE if _undecided(profile, event_ids, tables) else reached


@_njit_inlined
def _collect(
    t: int,
    score: float,
    number: int,
    postings: CandidatePostings,
    tables: SparseTables,
    seen: NDArray[np.int64],
    now: int,
    candidates: NDArray[np.int32],
    count: int,
) -> int:
    """Collect the profiles of one list whose watched condition reaches its bound with this tuple."""
    if number >= len(postings.length):
        return count
    begin = postings.start[number]
    for place in range(begin, begin + postings.length[number]):
        bound = postings.bound[place]
        if score >= bound and score * _name_bound(postings.attribute[place], t, tables) >= bound:
            profile = postings.profile[place]
            if seen[profile] != now:
                seen[profile] = now
                candidates[count] = profile
                count += 1
    return count


@_njit_inlined
def _collect_near(
    t: int,
    by_meaning: CandidatePostings,
    tables: SparseTables,
    seen: NDArray[np.int64],
    now: int,
    candidates: NDArray[np.int32],
    count: int,
) -> int:
    """Collect the profiles that the terms near this tuple's value lead to."""
    near = tables.near
    term = near.of[tables.values[t]]
    start, length = near.start[term], near.length[term]
    columns, scores = near.column, near.score
    if tables.strong:
        start, length = near.strong_start[term], near.strong_length[term]
        columns, scores = near.strong_column, near.strong_score
    for place in range(start, start + length):
        if scores[place] >= tables.least:
            score = _contrast(scores[place], near.rival[term], tables.temperature)
            if score >= tables.least:
                count = _collect(t, score, columns[place], by_meaning, tables, seen, now, candidates, count)
    return count


@njit_uncounted
def match_sparse(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    events: NDArray[np.int64],
    first: int,
    tables: SparseTables,
    by_meaning: CandidatePostings,
    by_value: CandidatePostings,
    by_name: CandidatePostings,
    seen: NDArray[np.int64],
    clock: NDArray[np.int64],
    candidates: NDArray[np.int32],
    unsure: NDArray[np.int32],
    out_event: NDArray[np.int32],
    out_profile: NDArray[np.int32],
    out_score: NDArray[np.float32],
) -> tuple[int, int, int]:
    """Event, profile and score of every match, for the chosen events from the `first` on.

    Returns where to continue, how many hits were written, and how many profiles of the next event are `unsure`.
    """
    written = 0
    for which in range(first, len(events)):
        event = events[which]
        event_ids = ids[starts[event] : starts[event + 1]]
        clock[0] += 1
        now = clock[0]
        before = written
        count = 0
        for t in event_ids:
            count = _collect(t, 1.0, tables.values[t], by_value, tables, seen, now, candidates, count)
            # List 0 is for exact attributes, list c + 1 for attribute column c.
            for number in range(len(by_name.length)):
                if by_name.length[number] and (number == 0 or _name_bound(number - 1, t, tables) >= tables.least):
                    count = _collect(t, 1.0, number, by_name, tables, seen, now, candidates, count)
            if tables.tuples.kind[t] == _TEXT:
                count = _collect_near(t, by_meaning, tables, seen, now, candidates, count)
        clock[1] += count
        doubts = 0
        for at in range(count):
            profile = candidates[at]
            reached = _verify(profile, event_ids, tables)
            if reached == UNSURE and doubts < len(unsure):
                unsure[doubts] = profile
                doubts += 1
            if reached > 0.0:
                if written == len(out_event):
                    return which, before, 0
                out_event[written] = event
                out_profile[written] = profile
                record = tables.profiles[profile]
                out_score[written] = score_of(reached, record.length, record.aggregation)
                written += 1
        if doubts:
            return which, before, doubts
    return len(events), written, 0


@njit_uncounted
def fill_matrix(
    out: NDArray[np.float32], conditions: NDArray[np.int32], ids: NDArray[np.int32], tables: SparseTables
) -> None:
    """The combined matrix of a few conditions with the tuples of one event."""
    for i in range(len(conditions)):
        for j in range(len(ids)):
            out[i, j] = _entry(conditions[i], ids[j], 0.0, tables)


@numba.njit(cache=True, nogil=True)
def chances_of(conditions: NDArray[np.int32], tables: SparseTables) -> NDArray[np.float64]:
    """The chances of some conditions in the known stream."""
    out = np.ones(len(conditions))
    for at in range(len(conditions)):
        if _by_meaning(tables.conditions[conditions[at]]):
            out[at] = chance_of(conditions[at], tables)
    return out
