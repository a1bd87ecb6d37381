"""From a file to the results: `likewise match` and `detect`, compared with polars and DuckDB on the same files.

All use one core and count their output. The keyed pair is an alarm, then high pressure on the same machine within ten
minutes; the queries for polars and DuckDB are hand-written as-of joins.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

MATCHED = "hot: {type = pressure, reading > 99}\nalarm: {type = alarm}\n"
PAIR = (
    "overheat: {type = alarm} as a then {type = pressure, reading > 99} as b within 10 minutes"
    " where a.machine = b.machine\n"
)
TARGETS = {"jsonl": 300_000, "csv": 800_000, "parquet": 800_000}


def rows(size: int) -> Iterator[dict[str, object]]:
    """Rates of commands and peers, in events per second of processor time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, size)
        (folder / "match.lw").write_text(MATCHED)
        (folder / "detect.lw").write_text(PAIR)
        for command in ("match", "detect"):
            for kind, target in TARGETS.items():
                taken, found = _best(lambda c=command, k=kind: _run(folder, c, k))  # type: ignore[misc]
                what = f"likewise {command}, {kind}: {size:,} events, {found:,} found"
                yield {"what": what, "value": round(size / taken), "unit": "events/s", "target": target}
        for peer, work in (("polars", _polars), ("duckdb", _duckdb)):
            if importlib.util.find_spec(peer) is None:
                yield {"what": f"peer: {peer}, keyed pair by hand", "value": "skipped: not installed", "unit": ""}
                continue
            for kind in TARGETS:
                taken, found = _best(lambda w=work, k=kind: w(folder / f"events.{k}"))  # type: ignore[misc]
                what = f"peer: {peer}, keyed pair by hand, {kind} ({found:,} found)"
                yield {"what": what, "value": round(size / taken), "unit": "events/s"}


def _best(work: Callable[[], int], rounds: int = 3) -> tuple[float, int]:
    """The best time of some rounds, without the first, which loads kernels; and the last result."""
    taken, found = [], 0
    for _ in range(rounds):
        begin = process_time()
        found = work()
        taken.append(process_time() - begin)
    return min(taken[1:]), found


def _run(folder: Path, command: str, kind: str) -> int:
    """Run a command in this process; returns the number of lines that it printed."""
    from likewise.cli.app import run

    out = io.StringIO()
    arguments = [command, str(folder / f"events.{kind}"), str(folder / f"{command}.lw"), "--json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(arguments)
    return out.getvalue().count("\n")


def _write(folder: Path, size: int) -> None:
    dice = random.Random(7)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    kinds = ("temperature", "temperature", "temperature", "pressure", "vibration")
    with (folder / "events.jsonl").open("w") as lines, (folder / "events.csv").open("w") as table:
        table.write("id,time,type,machine,reading\n")
        for number in range(size):
            time = (begin + timedelta(milliseconds=100 * number)).isoformat().replace("+00:00", "Z")
            kind = "alarm" if dice.random() < 0.002 else dice.choice(kinds)
            machine, reading = f"machine {dice.randrange(1000)}", round(dice.uniform(0, 100), 1)
            attributes = {"type": kind, "machine": machine, "reading": reading}
            lines.write(json.dumps({"id": f"e{number}", "time": time, "attributes": attributes}) + "\n")
            table.write(f"e{number},{time},{kind},{machine},{reading}\n")
    pq.write_table(arrow_csv.read_csv(folder / "events.csv"), folder / "events.parquet")


def _polars(path: Path) -> int:
    import polars as pl

    table: Any = {
        ".csv": lambda: pl.read_csv(path, try_parse_dates=True),
        ".parquet": lambda: pl.read_parquet(path),
        ".jsonl": lambda: (
            pl.read_ndjson(path).unnest("attributes").with_columns(pl.col("time").str.to_datetime(time_zone="UTC"))
        ),
    }[path.suffix]()
    alarms = table.filter(pl.col("type") == "alarm").select("machine", "time", pl.col("id").alias("alarm"))
    high = table.filter((pl.col("type") == "pressure") & (pl.col("reading") > 99))
    pairs = high.sort("time").join_asof(
        alarms.sort("time"), on="time", by="machine", tolerance="10m", check_sortedness=False
    )
    return len(pairs.filter(pl.col("alarm").is_not_null()).write_ndjson().splitlines())


def _duckdb(path: Path) -> int:
    import duckdb

    source = {
        ".csv": f"select * from read_csv('{path}')",
        ".parquet": f"select * replace (time::timestamptz as time) from read_parquet('{path}')",
        ".jsonl": f"select id, time::timestamptz as time, attributes.* from read_ndjson('{path}')",
    }[path.suffix]
    with duckdb.connect() as base:
        base.execute("set threads = 1")
        base.execute(f"create table events as {source}")
        found = base.execute(
            "select b.id, a.id from (select * from events where type = 'pressure' and reading > 99) b"
            " asof join (select * from events where type = 'alarm') a on a.machine = b.machine and b.time >= a.time"
            " where b.time - a.time <= interval 10 minute"
        ).fetchall()
    return len(found)
