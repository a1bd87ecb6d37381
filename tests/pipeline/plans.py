"""An ordinary table, and how long the lines of the plans over it are."""

from __future__ import annotations

import re
from typing import Any

from likewise.events import RecordMapping
from likewise.pipeline import as_events, detect, events_from_columns, match

LONGEST = 500
TABLE = """select 'e' || id as reading, timestamp_seconds(1767261600 + id) as at, 'x' as type, id as number,
    cast(id as double) as level, id % 2 = 0 as active, 'r' || id as room, date'2026-01-01' as day,
    named_struct('name', 'hall', 'floor', 2, 'site', named_struct('city', 'Galway', 'zone', 4)) as place,
    map('temp', 31.5D, 'hum', null) as measured, array('a', 'b') as alarms, 'acme' as tenant from range(3)"""
HOT = {"hot": "{measured.temp > 30}"} | {f"subscription number {number}": "{type = x}" for number in range(60)}
PAIR = "pair: {type = x} as a then {type = x} as b within 1 minute"


def frames(table: Any) -> dict[str, Any]:
    """Matches and detections over a table of twelve columns, with and without kept ones."""
    mapping = RecordMapping(id="reading", time="at")
    events = events_from_columns(table, mapping, keep="*")
    nameless = events_from_columns(table, RecordMapping(time="at", attributes=["type", "measured", "place"]))
    own = table.selectExpr("reading as id", "at as time", "measured as attributes", "tenant", "place", "alarms")
    return {
        "events": events,
        "match": match(events_from_columns(table, mapping), HOT),
        "match without ids": match(nameless, HOT),
        "match with keep": match(events, HOT, keep="*"),
        "match without explanation": match(events, HOT, keep="*", with_explanation=False),
        "match after a filter": match(events.where("time > '2026-01-01'"), HOT, keep="*"),
        "match of a map": match(own, HOT, keep="*"),
        "match of events": match(as_events(own).where("id > 'a'"), HOT),
        "detect": detect(events, PAIR),
        "detect with keep": detect(events, PAIR, keep="*"),
        "detect with dead letters": detect(events, PAIR, keep="*", dead_letters=True),
    }


def longest_line(frame: Any) -> int:
    """The length of the longest line that `explain` shows, in both of its usual modes."""
    if hasattr(frame, "_jdf"):
        java = frame.sparkSession._jvm.PythonSQLUtils
        texts = [java.explainString(frame._jdf.queryExecution(), mode) for mode in ("simple", "formatted")]
    else:
        texts = [frame._explain_string(mode=mode) for mode in ("simple", "formatted")]
    # Numbers of columns are short in a new session, and have more digits after many queries; where a stream keeps its
    # state is Spark's to say.
    changing = re.compile(r"(?<=#)\d+|(?<=state info \[).*")
    return max(len(changing.sub("1", line)) for text in texts for line in text.split("\n"))
