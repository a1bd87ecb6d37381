"""The compiled kernel of exact matching: find profiles by one indexed predicate, then verify the others."""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

EQUAL: Final = 0
WITHIN: Final = 1
HINTS: Final = 255
DIFFER: Final = 2


# Without the runtime (NRT) that counts references to arrays: tables hold so many that counting took most of the time.
# The caller holds all arrays, and these functions make none; Numba refuses to compile one that does.
_OPTIONS: Final[dict[str, Any]] = {"cache": True, "nogil": True, "_nrt": False}


def njit_uncounted(function: Function, *, inline: Literal["never", "always"] = "never") -> Function:
    """Compile a function that does not count references to arrays."""
    compiled: Function = numba.njit(inline=inline, **_OPTIONS)(function)
    return compiled


class EventTuples(NamedTuple):
    """Columns of all distinct event tuples."""

    key: NDArray[np.int32]
    attribute: NDArray[np.int32]
    kind: NDArray[np.int8]
    number: NDArray[np.float64]


class PredicatePostings(NamedTuple):
    """For each key its profiles: where their tests begin (upper half), and a hint (lower half).

    The hint is something else that the event must have, so that most candidates are rejected without reading their
    tests: a key by its last eight bits, an attribute a as -a - 2, or -1 for nothing.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int32]
    tests: NDArray[np.int64]


class Segments(NamedTuple):
    """For each attribute sorted runs of bounds; candidates for x in a run have -width <= key - x <= 0."""

    of_start: NDArray[np.int64]
    of_length: NDArray[np.int32]
    of: NDArray[np.int32]
    start: NDArray[np.int64]
    length: NDArray[np.int32]
    key: NDArray[np.float64]
    tests: NDArray[np.int32]
    sign: NDArray[np.float64]
    width: NDArray[np.float64]


TEST: Final = np.dtype(
    [
        ("time", np.int64),
        ("low", np.float64),
        ("high", np.float64),
        ("attribute", np.int32),
        ("key", np.int32),
        ("profile", np.int32),
        ("length", np.int16),
        ("operator", np.int8),
        ("kind", np.int8),
    ]
)
"""One predicate. Those of a profile are consecutive; the first has their number and the time of the last test.

Records instead of an array per field: a candidate then costs one memory access, not six.
"""


class Scratch(NamedTuple):
    """Working memory of the kernel; `chain` links the tuples of an event that share an attribute."""

    clock: NDArray[np.int64]
    head: NDArray[np.int32]
    head_time: NDArray[np.int64]
    chain: NDArray[np.int32]
    mark: NDArray[np.int64]


@njit_uncounted
def _satisfied(tests: Any, begin: int, ids: NDArray[np.int32], tuples: EventTuples, scratch: Scratch) -> bool:
    """Whether an event satisfies all predicates of a profile; False if the pair was tested before."""
    now = scratch.clock[0]
    if tests[begin].time == now:
        return False
    tests[begin].time = now
    for q in range(begin, begin + tests[begin].length):
        test = tests[q]
        if scratch.head_time[test.attribute] != now:
            return False
        at = scratch.head[test.attribute]
        while at >= 0:
            t = ids[at]
            if test.operator == WITHIN:
                if test.low <= tuples.number[t] <= test.high and tuples.kind[t] == test.kind:
                    break
            elif (tuples.key[t] == test.key) == (test.operator == EQUAL):
                break
            at = scratch.chain[at]
        if at < 0:
            return False
    return True


@njit_uncounted
def _link(ids: NDArray[np.int32], tuples: EventTuples, scratch: Scratch) -> None:
    """Link the tuples of an event by attribute."""
    now = scratch.clock[0]
    for at in range(len(ids)):
        attribute = tuples.attribute[ids[at]]
        scratch.chain[at] = scratch.head[attribute] if scratch.head_time[attribute] == now else -1
        scratch.head[attribute] = at
        scratch.head_time[attribute] = now
        scratch.mark[tuples.key[ids[at]] & HINTS] = now


@njit_uncounted
def _lacks_hint(hint: Any, scratch: Scratch) -> bool:
    """Whether the event lacks what the hint requires."""
    now = scratch.clock[0]
    if hint >= 0:
        return bool(scratch.mark[hint] != now)
    return bool(hint < -1 and scratch.head_time[-hint - 2] != now)


@njit_uncounted
def _lower_bound(key: NDArray[Any], begin: int, end: int, bound: float) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if key[middle] < bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit_uncounted
def match_exact(  # noqa: PLR0912 - one loop, compiled as one
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    first: int,
    tuples: EventTuples,
    postings: PredicatePostings,
    segments: Segments,
    tests: Any,
    scratch: Scratch,
    out_event: NDArray[np.int32],
    out_profile: NDArray[np.int32],
) -> tuple[int, int]:
    """Find pairs of event and profile that match, from event `first` on.

    Returns the event to continue with (the number of events when done) and how many pairs were written. If the output
    is full in the middle of an event, all pairs of that event are taken back.
    """
    count = 0
    keys = len(postings.length)
    attributes = len(segments.of_length)
    for event in range(first, len(starts) - 1):
        event_ids = ids[starts[event] : starts[event + 1]]
        scratch.clock[0] += 1
        _link(event_ids, tuples, scratch)
        before = count
        for t in event_ids:
            key = tuples.key[t]
            if key < keys:
                at = postings.start[key]
                for place in range(at, at + postings.length[key]):
                    packed = postings.tests[place]
                    if _lacks_hint(np.int32(packed & 0xFFFFFFFF), scratch):
                        continue
                    begin = packed >> 32
                    if _satisfied(tests, begin, event_ids, tuples, scratch):
                        if count == len(out_event):
                            return event, before
                        out_event[count] = event
                        out_profile[count] = tests[begin].profile
                        count += 1
            attribute = tuples.attribute[t]
            if attribute >= attributes:
                continue
            own = segments.of_start[attribute]
            for which in range(own, own + segments.of_length[attribute]):
                segment = segments.of[which]
                # Text is below every bound: only the test "differs" reaches it there.
                x = -np.inf if tuples.kind[t] == 0 else segments.sign[segment] * tuples.number[t]
                at = segments.start[segment]
                end = at + segments.length[segment]
                for place in range(_lower_bound(segments.key, at, end, x - segments.width[segment]), end):
                    if segments.key[place] > x:
                        break
                    begin = segments.tests[place]
                    if _satisfied(tests, begin, event_ids, tuples, scratch):
                        if count == len(out_event):
                            return event, before
                        out_event[count] = event
                        out_profile[count] = tests[begin].profile
                        count += 1
    return len(starts) - 1, count
