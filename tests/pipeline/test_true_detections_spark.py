"""Cases in which a detector once gave wrong answers, through both stages of detection on Spark."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from tests.pipeline.test_detect_spark import run
from tests.pipeline.traces import SECOND, START, expected

from likewise.events import Event

TRANSFERS = "p: {k = T} as a then {k = T} as b within 1 hour where a.to = b.from consume unique"
JOINED = "where a.r = n.r and n.r = c.r"
CASES = {
    "unique, keys of different attributes": (
        TRANSFERS,
        [{"k": "T", "from": one, "to": other} for one, other in ("AB", "BC", "CD", "DE")],
    ),
    "joined only through a negated member": (
        f"p: {{k = A}} as a then not {{k = N}} as n then {{k = C}} as c within 1 hour {JOINED}",
        [{"k": "A", "r": "1"}, {"k": "C", "r": "2"}, {"k": "A", "r": "1"}, {"k": "N", "r": "1"}, {"k": "C", "r": "1"}],
    ),
    "a repeated member without the attribute": (
        "p: (2 times {k = B} as x) then {k = C} as c within 1 hour where x.r = c.r",
        [{"k": "B", "r": "1"}, {"k": "B"}, {"k": "C", "r": "1"}],
    ),
    "ways to read the same events": (
        "p: (({k = A} as a and {k = A} as b within 5 s) or {k = Z} as z) then {k = C} as c where a.r = c.r",
        [{"k": "A", "r": "1"}, {"k": "A", "r": "2"}, {"k": "C", "r": "1"}, {"k": "C", "r": "2"}],
    ),
    "a broken absence": (
        "p: first {k = A} as a then not {k = B} as b then {k = C} as c within 10 s where a.r = b.r and a.r = c.r",
        [{"k": kind, "r": "1"} for kind in "ABAC"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("buckets", [1, 4])
def test_spark_gives_what_the_detector_gives(name: str, buckets: int) -> None:
    patterns, facts = CASES[name]
    events = [
        Event(f"e{number}", tuple(attributes.items()), (), START + number * SECOND, START + number * SECOND)
        for number, attributes in enumerate(facts)
    ]
    assert run(events, patterns=patterns, buckets=buckets, size=2) == expected(events, patterns)
