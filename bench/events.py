"""Speed and memory of reading and writing events: `likewise bench events`.

Rates are in processor time, the best of several rounds. In each round all contestants run in turn on the same lines, so
that other work on the machine slows them equally.
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import msgspec

from likewise.events import Event, decode_lines, encode_line, normalise, read_events, write_events
from likewise.events.text.terms import _settle

TARGET = 150_000
_PLACES = ("room 112", "second floor", "Galway", "Santander", "parking lot", "Rennes", "ground floor", "city centre")
_DEVICES = ("computer", "laptop", "street light", "car park", "heating", "noise sensor", "refrigerator", "printer")
_TAGS = ("energy policy", "building", "transport", "environment", "information technology", "smart city")


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows of events per second, compared with other libraries on the same lines, and of memory."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _events_end_to_end import rows as end_to_end

    count, rounds = (10_000, 3) if quick else (100_000, 7)
    events = list(_events(count))
    lines = [encode_line(event) for event in events]
    rows = [_row("mean length of a line", sum(map(len, lines)) / count, "bytes")]
    rows += _decoding(lines, rounds)
    rows += _other_formats(events[: count // 5], max(2, rounds // 2))
    rows += _writing(events, lines, rounds)
    rows += _normalising(rounds)
    rows += _memory(lines)
    return [*rows, *end_to_end(count * 3)]


def _events(count: int) -> Iterator[Event]:
    """Sensor readings similar to those of 000 section 3.3: 5 to 9 attributes, a theme, a time."""
    dice = random.Random(7)
    for number in range(count):
        attributes: dict[str, str | int | float | bool] = {
            "type": "increased energy consumption event",
            "measurement unit": "kilowatt hours",
            "device": dice.choice(_DEVICES),
            "location": dice.choice(_PLACES),
            "reading": round(dice.uniform(0, 500), 2),
        }
        extra: dict[str, str | int | float | bool] = {
            "battery level": dice.randrange(100),
            "sensor": f"urn:sensor:{dice.randrange(5000)}",
            "active": dice.random() < 0.5,
            "latitude": dice.uniform(43, 44),
        }
        attributes |= dict(list(extra.items())[: dice.randrange(5)])
        start = 1_400_000_000_000_000 + number * 250_000
        yield Event(f"event-{number}", tuple(attributes.items()), tuple(dice.sample(_TAGS, 2)), start, start)


def _decoding(lines: list[bytes], rounds: int) -> list[dict[str, object]]:
    untyped = msgspec.json.Decoder().decode
    blob = b"".join(lines)
    contestants: dict[str, Callable[[], object]] = {
        "decode JSON lines": lambda: _drain(decode_lines(lines)),
        "decode JSON lines, ids checked": lambda: _drain(decode_lines(lines, seen=set())),
        "read_events, whole path from bytes": lambda: _drain(read_events(io.BytesIO(blob), format="jsonl")),
        "json.loads alone (no checks, no events)": lambda: [None for line in lines if not json.loads(line)],
        "msgspec untyped alone (no checks, no events)": lambda: [None for line in lines if not untyped(line)],
    }
    skipped = []
    try:
        import orjson  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        skipped = [{"what": "orjson alone (no checks, no events)", "value": "skipped: not installed", "unit": ""}]
    else:
        loads = orjson.loads
        contestants["orjson alone (no checks, no events)"] = lambda: [None for line in lines if not loads(line)]
    best = _race(contestants, rounds)
    rows = [_row(what, len(lines) / seconds, "events/s") for what, seconds in best.items()]
    for row in rows[:3]:
        row["target"] = TARGET
    ratio = best["json.loads alone (no checks, no events)"] / best["decode JSON lines"]
    return [*rows, *skipped, _row("decode JSON lines against json.loads alone", ratio, "times as fast")]


def _other_formats(events: list[Event], rounds: int) -> list[dict[str, object]]:
    few = events[:500]
    best = _race(
        {
            "read CloudEvents": _reading(events, "cloudevents"),
            "read N-Triples": _reading(events, "ntriples"),
            "read Turtle": _reading(few, "turtle"),
        },
        rounds,
    )
    return [
        _row(what, len(few if what == "read Turtle" else events) / seconds, "events/s")
        for what, seconds in best.items()
    ]


def _reading(events: list[Event], format: str) -> Callable[[], object]:
    out = io.BytesIO()
    write_events(events, out, format=format)
    return lambda: _drain(read_events(io.BytesIO(out.getvalue()), format=format))


def _writing(events: list[Event], lines: list[bytes], rounds: int) -> list[dict[str, object]]:
    objects = [json.loads(line) for line in lines]
    contestants: dict[str, Callable[[], object]] = {
        "encode JSON lines": lambda: [None for event in events if not encode_line(event)],
        "json.dumps alone (of prepared objects)": lambda: [None for value in objects if not json.dumps(value)],
    }
    best = _race(contestants, rounds)
    return [_row(what, len(events) / seconds, "events/s") for what, seconds in best.items()]


def _normalising(rounds: int) -> list[dict[str, object]]:
    terms = [
        f"{device} {place}".title().replace(" ", joint) for device in _DEVICES for place in _PLACES for joint in " _"
    ]
    terms += ["http://dbpedia.org/ontology/" + term.replace(" ", "_") for term in terms]
    best = _race(
        {
            "normalise a new term": lambda: [None for term in terms if not _settle(term)],
            "normalise a cached term": lambda: [None for term in terms if not normalise(term)],
        },
        rounds * 3,
    )
    return [_row(what, len(terms) / seconds, "terms/s") for what, seconds in best.items()]


def _memory(lines: list[bytes]) -> list[dict[str, object]]:
    """Peak memory of reading a file and one ten times as long: it must not grow."""
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        for size in (len(lines) // 10, len(lines)):
            path.write_bytes(b"".join(lines[:size]))
            tracemalloc.start()
            _drain(read_events(path, unique_ids=False))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return [
        _row(f"peak memory, {len(lines) // 10:,} events", peaks[0] / 2**20, "MiB"),
        _row(f"peak memory, {len(lines):,} events", peaks[1] / 2**20, "MiB"),
    ]


def _race(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}: {', '.join(contestants)}", file=sys.stderr)
        for what, work in contestants.items():
            begin = process_time()
            work()
            best[what] = min(best[what], process_time() - begin)
    return best


def _drain(events: Iterator[Event]) -> None:
    for _ in events:
        pass


def _row(what: str, value: float, unit: str) -> dict[str, object]:
    return {"what": what, "value": round(value) if value >= 100 else round(value, 2), "unit": unit}


if __name__ == "__main__":
    for row in run(quick="--quick" in sys.argv):
        print(row)
