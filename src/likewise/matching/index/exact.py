"""The index of exact profiles: the cost of an event depends on its candidates, not on all subscriptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching.definition import bounds
from likewise.matching.encoding import Encoded, TupleVocabulary, kind_of
from likewise.matching.index.exact_kernel import (
    DIFFER,
    EQUAL,
    HINTS,
    TEST,
    WITHIN,
    EventTuples,
    PredicatePostings,
    Scratch,
    Segments,
    match_exact,
)
from likewise.matching.index.lists import Lists, grown

Test = tuple[int, int, int, int, float, float]
"""One predicate for the kernel: operator, attribute, key, kind, low and high end."""


_COLUMNS = ("operator", "attribute", "key", "kind", "low", "high")


class ExactIndex:
    """Exact profiles, indexed by their most selective predicate.

    This is faster than counting satisfied predicates: each profile is in one list only, that of a key or a sorted run
    of bounds (the shortest list when it was added), and its other predicates are tested only when that one holds.
    Ranges are in runs of similar width, so a value reaches only ranges that begin near it.
    """

    def __init__(self, vocabulary: TupleVocabulary) -> None:
        self._vocabulary = vocabulary
        self._tests = Lists(TEST)
        self._postings = Lists(np.int64)
        self._segments_of = Lists(np.int32)
        self._segments = Lists(np.float64, np.int32)
        self._segment_ids: dict[tuple[int, int], int] = {}
        self._sign = np.zeros(8)
        self._width = np.zeros(8)
        self._access: dict[int, int] = {}
        self._clock = np.zeros(1, dtype=np.int64)
        self._head = np.zeros(64, dtype=np.int32)
        self._head_time = np.zeros(64, dtype=np.int64)
        self._chain = np.zeros(64, dtype=np.int32)
        self._mark = np.zeros(HINTS + 1, dtype=np.int64)
        self._out = np.zeros((2, 4096), dtype=np.int32)

    def add(self, slot: int, profile: Profile) -> None:
        """Add a profile under a number chosen by the caller, and activate it."""
        # The test least likely to hold comes first, so that most candidates fail at once.
        tests = sorted(self._compile_all(profile.predicates), key=self._expected_candidates)
        records = np.zeros(len(tests), dtype=TEST)
        records["profile"], records["length"] = slot, len(tests)
        for name, column in zip(_COLUMNS, zip(*tests, strict=True), strict=True):
            records[name] = column
        self._tests.set(slot, records)
        self._activate(slot)

    def remove(self, slot: int) -> None:
        """Remove a profile."""
        self._deactivate(slot)
        for test in self._read(slot):
            self._release(test)
        self._tests.clear(slot)

    def _activate(self, slot: int) -> None:
        """Add a profile to the list of its least likely test."""
        tests = self._read(slot)
        place = min(range(len(tests)), key=lambda i: self._expected_candidates(tests[i]))
        self._access[slot] = place
        operator, attribute, key, _, low, high = tests[place]
        if operator == EQUAL:
            self._postings.append(key, _packed(int(self._tests.start[slot]), _hint(tests, place)))
        else:
            segment, bound = self._segment(operator, attribute, low, high)
            self._segments.insert_sorted(segment, bound, self._tests.start[slot])

    def _deactivate(self, slot: int) -> None:
        """Remove a profile from its list."""
        place = self._access.pop(slot)
        tests = self._read(slot)
        operator, attribute, key, _, low, high = tests[place]
        if operator == EQUAL:
            self._postings.discard(key, _packed(int(self._tests.start[slot]), _hint(tests, place)))
        else:
            segment, _ = self._segment(operator, attribute, low, high)
            self._segments.discard(segment, self._tests.start[slot], field=1, ordered=True)

    def match(self, encoded: Encoded) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Event and profile of every match, in order of events."""
        parts: list[NDArray[np.int32]] = []
        if not self._access:
            return self._out[0, :0], self._out[1, :0]
        longest = int(np.max(np.diff(encoded.starts), initial=0))
        arrays = self._arrays(longest)
        first = 0
        while True:
            first, count = match_exact(encoded.ids, encoded.starts, first, *arrays, self._out[0], self._out[1])
            parts.append(self._out[:, :count].copy())
            if first == len(encoded):
                break
            if not count:
                self._out = np.zeros((2, 2 * self._out.shape[1]), dtype=np.int32)
        hits = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return hits[0], hits[1]

    def _arrays(self, longest: int) -> tuple[EventTuples, PredicatePostings, Segments, Any, Scratch]:
        words = self._vocabulary
        self._head = grown(self._head, words.attributes)
        self._head_time = grown(self._head_time, words.attributes)
        self._chain = grown(self._chain, longest)
        return (
            EventTuples(words.key, words.attribute, words.kind, words.number),
            PredicatePostings(self._postings.start, self._postings.length, self._postings.fields[0]),
            Segments(
                self._segments_of.start,
                self._segments_of.length,
                self._segments_of.fields[0],
                self._segments.start,
                self._segments.length,
                self._segments.fields[0],
                self._segments.fields[1],
                self._sign,
                self._width,
            ),
            self._tests.fields[0],
            Scratch(self._clock, self._head, self._head_time, self._chain, self._mark),
        )

    def _compile_all(self, predicates: Sequence[Predicate]) -> list[Test]:
        tests: list[Test] = []
        try:
            tests.extend(map(self._compile, predicates))
        except BaseException:  # also on an interrupt, no test of the profile stays
            for test in tests:
                self._release(test)
            raise
        return tests

    def _release(self, test: Test) -> None:
        _, attribute, key, *_ = test
        if key >= 0:
            self._vocabulary.release_key(key)
        else:
            self._vocabulary.release_attribute(attribute)

    def _compile(self, predicate: Predicate) -> Test:
        if predicate.operator in (Operator.EQ, Operator.NE):
            if isinstance(predicate.value, Range):
                raise BuildError(f"{predicate.attribute!r} cannot equal a range", hint="use `in` with a range")
            attribute, key = self._vocabulary.hold_key(predicate.attribute, predicate.value)
            operator = EQUAL if predicate.operator is Operator.EQ else DIFFER
            return operator, attribute, key, kind_of(predicate.value), -math.inf, -math.inf
        kind, low, high = bounds(predicate)
        return WITHIN, self._vocabulary.hold_attribute(predicate.attribute), -1, kind, low, high

    def _read(self, slot: int) -> list[Test]:
        records = self._tests[slot]
        return list(zip(*(records[name].tolist() for name in _COLUMNS), strict=True))

    def _expected_candidates(self, test: Test) -> float:
        """How many candidates an event is likely to find in the list of a test."""
        operator, attribute, key, _, low, high = test
        if operator == EQUAL:
            return len(self._postings[key])
        level = _level(operator, low, high)
        segment = self._segment_ids.get((attribute, level))
        if segment is None:
            return 1.0
        keys = self._segments[segment]
        if level >= _ABOVE or not len(keys):
            return 1.0 + len(keys) / 2
        return 1.0 + len(keys) * min(1.0, 2.0**level / max(float(keys[-1] - keys[0]), 1e-300))

    def _segment(self, operator: int, attribute: int, low: float, high: float) -> tuple[int, float]:
        """The run of a range, and the key by which it is sorted there."""
        level = _level(operator, low, high)
        segment = self._segment_ids.get((attribute, level))
        if segment is None:
            segment = self._segment_ids[attribute, level] = len(self._segment_ids)
            self._sign, self._width = grown(self._sign, segment + 1), grown(self._width, segment + 1)
            self._sign[segment] = -1.0 if level == _BELOW else 1.0
            self._width[segment] = 2.0**level if level < _ABOVE else math.inf
            self._segments.reserve(segment + 1)
            self._segments_of.append(attribute, segment)
        return segment, -high if level == _BELOW else low


def _hint(tests: list[Test], place: int) -> int:
    """Something else that the profile requires, besides the test by which it is indexed."""
    key = tests[place][2]
    for operator, _, other, *_ in tests:
        if operator == EQUAL and other != key:
            return other & HINTS
    for at, (_, attribute, *_) in enumerate(tests):
        if at != place:
            return -attribute - 2
    return -1


def _packed(begin: int, hint: int) -> int:
    return begin << 32 | hint & 0xFFFFFFFF


_ABOVE = 2000
_BELOW = 2001


def _level(operator: int, low: float, high: float) -> int:
    """Ranges of a width up to 2**level share a run; half-open ranges have their own runs."""
    if operator == DIFFER or math.isinf(high):
        return _ABOVE
    if math.isinf(low):
        return _BELOW
    width = high - low
    return math.ceil(math.log2(width)) if width > 1e-300 else -996
