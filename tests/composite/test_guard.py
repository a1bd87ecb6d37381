"""The guard: compares a reference written from docs/composite.md with every path of the engine, on random cases.

`LIKEWISE_GUARD_SEEDS=0:230000 pytest -m slow tests/composite/test_guard.py` runs that range of cases; ranges may run
side by side. Every case follows from its number, so a failure is repeated with the range of that one number.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice

import pytest
from guard_check import examine

QUICK = range(1_000)
LONG = "1000000:1230000"
"""One case in nine is refused when it is built, so more than 200,000 remain."""
LEAST = 3
"""Minimum number of occurrences of each feature below in the quick run; more in the long run, in proportion."""

FEATURES = """
    member; reference; sequence; conjunction; disjunction; exclusiveor; negation; selection; repetition; relation;
    longest; timeevent; consume unique;
    first member; last member; nth member; all member; first name; last name; nth name;
    sequence with an absence at the start; sequence with an absence between; sequence with an absence at the end;
    sequence with an absence of several events; sequence with a silence of its own time; sequence without within;
    conjunction with an absence; conjunction without within; equality, same attribute; equality, different attributes;
    equality with an offset; condition <; condition !=; condition on an absent member; condition on a repeated member;
    condition on a name; condition of a member with itself; counted member of an or with itself; condition with a value;
    equal times;
    several values of a key; an event of two kinds; a missing attribute; an interval; mixed types
"""
OCCURRENCES = """
    pattern on the compiled path; pattern on the general path; pattern that went over to the general path;
    single event between batches; batch between others; advance between events; snapshot;
    snapshot between equal times; arrival out of order; snapshot with events that wait; pattern added in between;
    pattern removed in between; limit reached, drop oldest; limit reached, refuse; limit that costs a detection;
    compared: general; compared: compiled; compared: batch; compared: pieces; compared: two-step; compared: snapshot;
    compared: late; compared: changing; compared: limit
"""


def names(text: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(";")]


def too_seldom(seen: Counter[str], *, made: int) -> list[str]:
    """The features that occurred too rarely, in all cases or in cases with a detection."""
    least = LEAST * made // len(QUICK)
    wanted = names(OCCURRENCES) + names(FEATURES) + [f"{name}, detected" for name in names(FEATURES)]
    return [f"{name}: {seen[name]}, not {least}" for name in wanted if seen[name] < least]


def test_every_path_gives_what_the_page_says() -> None:
    seen: Counter[str] = Counter()
    failures = list(islice(examine(QUICK, seen), 3))
    assert not failures, "\n\n".join(failures)
    assert not too_seldom(seen, made=len(QUICK))


@pytest.mark.slow
def test_every_path_gives_what_the_page_says_at_length(capfd: pytest.CaptureFixture[str]) -> None:
    first, last = map(int, os.environ.get("LIKEWISE_GUARD_SEEDS", LONG).split(":"))
    seen: Counter[str] = Counter()
    failures: list[str] = []
    for low in range(first, last, 2_500):
        cases = range(low, min(low + 2_500, last))
        found = list(islice(examine(cases, seen), 3))
        failures += found
        with capfd.disabled():
            print("".join(f"\n{failure}\n\n" for failure in found), end="")
            done = f"{cases.stop - first} of {last - first} made, {seen['cases']} built, {seen['compared']} comparisons"
            print(f"guard: {done}, {len(failures)} disagreements", flush=True)
        assert len(failures) < 20, "\n\n".join(failures)
    assert not failures, "\n\n".join(failures)
    assert not too_seldom(seen, made=last - first)
