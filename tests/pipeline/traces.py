"""Patterns and traces that the tests of detection share, and how detections are compared."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

from likewise.composite import Detection, Detector
from likewise.events import Event, encode_line, to_instant
from likewise.language import parse

SECOND = 1_000_000
START = 1_600_000_000 * SECOND

PATTERNS = """
pair: {type = a} as x then {type = b} as y within 30 seconds where x.room = y.room
first: first {type = a} as x then {type = b} as y within 1 minute where x.room = y.room
unbound: {type = a} as x then {type = b} as y within 3 seconds
calm: not {type = a} for 10 seconds
absent: {type = a} as x then not {type = b} as y for 20 seconds where x.room = y.room
"""


def trace(count: int, *, seed: int = 3, rooms: int = 8, jitter: int = 0) -> list[Event]:
    """Events a second apart, in the order of time, or each moved by up to `jitter` places."""
    rng = random.Random(seed)
    made = [
        Event(
            f"e{number:05}",
            (("type", rng.choice("abcd")), ("room", f"r{rng.randrange(rooms)}")),
            (),
            START + number * SECOND,
            START + number * SECOND,
        )
        for number in range(count)
    ]
    if jitter:
        made.sort(key=lambda event: (event.start or 0) // SECOND + rng.uniform(0, jitter))
    return made


def closing(events: list[Event]) -> Event:
    """An event so late that everything before it is decided."""
    last = max(event.start or 0 for event in events) + 3600 * SECOND
    return Event("closing", (("type", "z"),), (), last, last)


def expected(events: list[Event], patterns: str = PATTERNS, **options: Any) -> Counter[Any]:
    """What the detector finds in the events, in the order of time."""
    detector = Detector(parse(patterns), max_jump=None, **options)
    ordered = sorted(events, key=lambda event: (event.end, event.start, event.id))
    return Counter(signature(found) for found in detector.publish_batch(ordered) + detector.flush())


def signature(found: Detection) -> Any:
    members = tuple((name, event.id) for name, event in zip(found.names, found.members, strict=True))
    return found.pattern, found.time, found.start, found.end, members


def signatures(table: Any) -> Counter[Any]:
    """The same of an Arrow table of detections."""
    return Counter(
        (
            row["pattern"],
            *(to_instant(row[name]) for name in ("time", "start", "end")),
            tuple((member["role"], member["id"]) for member in row["events"]),
        )
        for row in table.to_pylist()
    )


def write_files(folder: Path, events: list[Event], *, size: int, first: int = 0) -> None:
    """Files of JSON lines, in an order that a stream keeps (by the time of the files)."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, at in enumerate(range(0, len(events), size), first):
        file = folder / f"{number:04}.jsonl"
        part = folder / f".{number:04}.part"
        part.write_bytes(b"".join(map(encode_line, events[at : at + size])))
        os.utime(part, (10**9 + number, 10**9 + number))
        part.rename(file)
