"""The time until the first result of each command, and of a job on Spark.

Each runs in its own process. *Cold* means an empty cache of compiled kernels, as after an installation; *warm* is any
later run. Both wall-clock and processor time are measured; other work on the machine affects the latter less.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FEW, MANY = 1_000, 60_000
"""Events of the two files; the larger one uses the compiled path."""

PATTERN = "pair: {type = a} as x then first {type = b} as y within 30 minutes where x.room = y.room\n"
PROFILE = "readings: {type = a, level > 5}\n"


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    with tempfile.TemporaryDirectory(prefix="likewise-start-") as name:
        folder = Path(name)
        files = _files(folder)
        rounds = 1 if quick else 3
        rows = [row for what, command in _commands(files) for row in _rows(what, command, folder, rounds)]
        return [*rows, *_spark_rows(files["many"], rounds)]


def _files(folder: Path) -> dict[str, Path]:
    files = {"pattern": folder / "pattern.lw", "profile": folder / "profile.lw"}
    files["pattern"].write_text(PATTERN, encoding="utf-8")
    files["profile"].write_text(PROFILE, encoding="utf-8")
    for name, count in (("few", FEW), ("many", MANY)):
        files[name] = folder / f"{name}.jsonl"
        files[name].write_text("".join(_lines(count)), encoding="utf-8")
    return files


def _lines(count: int) -> Iterator[str]:
    dice = random.Random(7)
    for number in range(count):
        attributes = {"type": dice.choice("abcd"), "room": f"room {dice.randrange(100)}", "level": dice.randrange(10)}
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + number))
        yield json.dumps({"id": f"e{number}", "time": moment, "attributes": attributes}) + "\n"


def _commands(files: dict[str, Path]) -> Iterator[tuple[str, list[str]]]:
    yield "--help", ["--help"]
    if os.environ.get("LIKEWISE_SPACES"):
        yield "relate parking garage", ["relate", "parking", "garage"]
    yield f"match, {FEW:,} events", ["match", str(files["few"]), str(files["profile"]), "--json"]
    for name, count in (("few", FEW), ("many", MANY)):
        yield f"detect, {count:,} events", ["detect", str(files[name]), str(files["pattern"]), "--json"]


def _rows(what: str, command: list[str], folder: Path, rounds: int) -> Iterator[dict[str, object]]:
    print(f"start: {what}", file=sys.stderr, flush=True)
    for state in ("cold", "warm"):
        times = [_measure(command, _cache(folder, what, at if state == "cold" else 0)) for at in range(rounds)]
        for unit, values in zip(("s of a processor", "s by the clock"), zip(*times, strict=True), strict=True):
            yield {"what": f"{what}, {state}", "value": min(values), "unit": unit}


def _cache(folder: Path, what: str, at: int) -> Path:
    """The cache of compiled kernels of a round; warm rounds use that of the first round."""
    return folder / f"kernels of {what} {at}".replace("/", " ")


def _measure(command: list[str], cache: Path) -> tuple[float, float]:
    """Processor seconds and wall-clock seconds."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    before, started = _children(), time.perf_counter()
    program = [sys.executable, "-c", "from likewise.cli.app import main; main()", *command]
    subprocess.run(program, env=environment, stdout=subprocess.DEVNULL, check=True)
    return _children() - before, time.perf_counter() - started


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spark_rows(events: Path, rounds: int) -> Iterator[dict[str, object]]:
    what = f"detect on Spark, {MANY:,} events"
    print(f"start: {what}", file=sys.stderr, flush=True)
    times: list[dict[str, Any]] = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, __file__, str(events)], capture_output=True, text=True, check=False)
        if done.returncode:
            yield {"what": what, "value": "skipped", "unit": "s", "note": done.stderr.strip()[-200:]}
            return
        times.append(json.loads(done.stdout.splitlines()[-1]))
    for step in times[0]:
        for at, unit in enumerate(("s of processors", "s by the clock")):
            yield {"what": f"{what}: {step}", "value": min(run[step][at] for run in times), "unit": unit}


def _job(events: str) -> dict[str, tuple[float, float]]:
    """The times of a session, and of the same job twice in it."""
    from _spark_run import processor_time
    from likewise.pipeline import detect, read_events, spark_session

    times: dict[str, tuple[float, float]] = {}
    begun = time.perf_counter()
    with_session = processor_time(), time.perf_counter()
    spark = spark_session(settings={"spark.sql.shuffle.partitions": "2"})
    times["session"] = processor_time() - with_session[0], time.perf_counter() - with_session[1]
    for name in ("first pass, planning included", "second pass"):
        used, started = processor_time(), time.perf_counter()
        detect(read_events(spark, events), PATTERN).count()
        times[name] = processor_time() - used, time.perf_counter() - started
        if "first answer" not in times:
            times["first answer"] = processor_time(), time.perf_counter() - begun
    spark.stop()
    return times


if __name__ == "__main__":
    print(json.dumps(_job(sys.argv[1])))
