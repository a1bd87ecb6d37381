"""A peer for the keyed pattern: Flink's MATCH_RECOGNIZE over a CSV file, in a Python environment of its own.

Flink's pins do not go with ours, so the first use installs it below the user's cache folder (850 MB on the disk); later
uses find it there. `LIKEWISE_BENCH_FLINK=0` leaves Flink out.

By hand: `python bench/_flink.py EVENTS.csv first`.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

VERSION = "2.2.1"
PYTHONS = ((3, 9), (3, 12))
"""The first and the last Python that this version of Flink runs on."""
INSTALL_LIMIT = 900.0
TINY = 1_000
SKIP = {"first": "PAST LAST ROW", "each": "TO NEXT ROW"}

Answer = dict[str, Any]


class _UnavailableError(Exception):
    """Why Flink cannot be had here."""


def keyed_pattern(
    events_csv: Path,
    *,
    most_pairs: str = "first",
    timeout: float = 600,
    mode: str = "streaming",
    listed: bool = False,
    form: str = "pairs",
) -> Answer:
    """Run "A then B, same room, within 30 minutes" on Flink over a file of `write_events`.

    `most_pairs` says which pairs at most are told, which is what AFTER MATCH SKIP decides:

    - `first` (PAST LAST ROW): the first A of a room with the next B, both then used up; the A's between them are too.
    - `each` (TO NEXT ROW): every A with the next B of its room, so that one B may close several A's.

    MATCH_RECOGNIZE has no "all pairs": no A is told with a second B. Flink leaves out a distance of exactly 30 minutes.
    Where the first A is too old for the B, Flink takes the oldest one that is not. With `form="triples"` the pattern is
    "three A's in a row, same room, within 20 minutes" instead.

    The answer has `events`, `matches`, `seconds` of the better of two runs in a JVM that is up, `overhead` (the same
    for 1,000 events: planning, start and end of a job) and `rate`, the events per second of the difference, which is
    the friendliest way to put it. `first` and `first_rate` are those of the first of the two runs, which compiles as it
    goes and may well take twice as long. `reading` is what the same takes without the pattern, and `pattern_rate` the
    rate of the difference. `timeout` bounds the run, `INSTALL_LIMIT` the installation;
    where there is no Flink, the answer is `{"skipped": why}` and never an exception.
    """
    try:
        asked: dict[str, Any] = {"skip": _skip(most_pairs), "mode": mode, "listed": listed, "form": form}
        return _measure(Path(events_csv).resolve(), timeout=timeout, **asked)
    except (_UnavailableError, OSError, ValueError) as error:
        return {"skipped": str(error)}


def keyed_row(stream: Iterable[Any], *, timeout: float = 900) -> Answer:
    """A row for a table: first pairs of these events (which have a `type` a to d and a `room`) on Flink."""
    told = keyed_answer(stream, most_pairs="first", timeout=timeout)
    what = f"peer: Flink {VERSION} MATCH_RECOGNIZE from CSV, first pairs"
    if "skipped" in told:
        return {"what": what, "value": "skipped", "unit": "events/s", "note": told["skipped"]}
    note = f"{described(told)}; {told['first_rate']:,.0f} in the first pass, not yet warm"
    return {"what": f"{what} ({told['matches']:,})", "value": round(told["rate"]), "unit": "events/s", "note": note}


def triples_row(stream: Iterable[Any], *, timeout: float = 900) -> Answer:
    """A row for a table: every three A's in a row in one room on Flink."""
    told = keyed_answer(stream, most_pairs="each", timeout=timeout, form="triples")
    what = f"peer: Flink {VERSION} MATCH_RECOGNIZE from CSV, A{{3}}"
    if "skipped" in told:
        return {"what": what, "value": "skipped", "unit": "events/s", "note": told["skipped"]}
    rate = round(told["rate"])
    return {"what": f"{what} ({told['matches']:,})", "value": rate, "unit": "events/s", "note": described(told)}


def keyed_answer(stream: Iterable[Any], *, most_pairs: str, timeout: float = 900, form: str = "pairs") -> Answer:
    """The answer of `keyed_pattern` for events that have a `type` a to d and a `room`."""
    with tempfile.TemporaryDirectory(prefix="likewise-flink-") as folder:
        path = Path(folder) / "events.csv"
        write_events(path, map(_columns, stream))
        return keyed_pattern(path, most_pairs=most_pairs, timeout=timeout, form=form)


def described(told: Answer) -> str:
    """What a rate is made of."""
    note = f"{told['cores']} cores, {told['seconds']:.1f} s less {told['overhead']:.1f} s of planning and starting"
    return f"{note}; without the pattern {told['reading']:.1f} s, so {told['pattern_rate']:,.0f} for the pattern alone"


def _columns(event: Any) -> tuple[str, int, str, str]:
    held = dict(event.tuples)
    return event.id, event.end // 1000, held["type"].upper(), held["room"]


def write_events(path: Path, rows: Iterable[tuple[str, int, str, str]]) -> int:
    """Write id, milliseconds, type (A or B; others are noise) and room, with no header; give back how many.

    They must come in order of time: there is no allowance for late ones, which Flink would drop or not as it happens.
    """
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for count, row in enumerate(rows, start=1):  # noqa: B007 - the last number is the answer
            writer.writerow(row)
    return count


def _skip(most_pairs: str) -> str:
    if most_pairs not in SKIP:
        raise _UnavailableError(f"MATCH_RECOGNIZE has no {most_pairs!r} pairs, only {' or '.join(SKIP)}")
    return SKIP[most_pairs]


def _measure(events: Path, *, timeout: float, mode: str, **asked: Any) -> Answer:
    python, spent = _environment()
    with tempfile.TemporaryDirectory(prefix="likewise-flink-") as folder:
        tiny = Path(folder) / "tiny.csv"
        count = _copy_head(events, tiny)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        task = {"whole": str(events), "tiny": str(tiny), "mode": mode, "cores": cores, **asked}
        job = Path(__file__).with_name("_flink_job.py")
        output = _bounded([str(python), str(job), json.dumps(task)], timeout=timeout, folder=Path(folder))
    told: Answer = json.loads(output.strip().splitlines()[-1])
    rates = {"rate": _rate(count, told, "seconds"), "first_rate": _rate(count, told, "first")}
    rates["pattern_rate"] = count / max(told["seconds"] - told["reading"], 1e-3)
    return {"events": count, **rates, **told, "mode": mode, "cores": cores, "installation": spent}


def _rate(count: int, told: Answer, run: str) -> float:
    """Events per second without the overhead, unless the run is too short to tell the two apart."""
    net: float = told[run] - told["overhead"]
    return count / (net if net > told["overhead"] / 10 else told[run])


def _copy_head(events: Path, tiny: Path) -> int:
    """The first of the events in a file of their own; the number of all."""
    count = 0
    with events.open(encoding="utf-8") as source, tiny.open("w", encoding="utf-8") as target:
        for count, line in enumerate(source, start=1):
            if count <= TINY:
                target.write(line)
    return count


# --- the environment --------------------------------------------------------------------------


def _environment() -> tuple[Path, float]:
    """The Python that has Flink, installed if need be, and the seconds this took."""
    if os.environ.get("LIKEWISE_BENCH_FLINK") == "0":
        raise _UnavailableError("LIKEWISE_BENCH_FLINK is 0")
    _need_java()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "likewise" / "flink"
    home = cache / VERSION
    if _python(home).exists():
        return _python(home), 0.0
    cache.mkdir(parents=True, exist_ok=True)
    print(f"installing Flink {VERSION} below {cache}, once", file=sys.stderr, flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="new-", dir=cache) as made:
        _install(Path(made) / "env", Path(made))
        # Moved into place whole, so that a run cut short leaves nothing that looks ready.
        if not home.exists():
            os.replace(Path(made) / "env", home)
    return _python(home), time.monotonic() - started


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java") and not (home and (Path(home) / "bin" / "java").exists()):
        raise _UnavailableError("there is no Java (Flink needs 11 or newer)")


def _python(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _install(env: Path, folder: Path) -> None:
    """With uv where it is, which is three times as fast, else or when that fails with venv and pip."""
    ours = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]
    wanted = sys.executable if ours else "{}.{}".format(*PYTHONS[1])
    package = f"apache-flink=={VERSION}"
    python = str(_python(env))
    ways = []
    if uv := shutil.which("uv"):
        ways.append(([uv, "venv", "--python", wanted, str(env)], [uv, "pip", "install", "--python", python, package]))
    if ours:
        pip = [python, "-m", "pip", "install", "--no-input", package]
        ways.append(([sys.executable, "-m", "venv", "--clear", str(env)], pip))
    if not ways:
        raise _UnavailableError(f"Flink {VERSION} is not made for Python {sys.version_info[0]}.{sys.version_info[1]}")
    until = time.monotonic() + INSTALL_LIMIT
    for number, commands in enumerate(ways, start=1):
        try:
            for command in commands:
                _bounded(command, timeout=until - time.monotonic(), folder=folder)
            return
        except _UnavailableError:
            if number == len(ways):
                raise


# --- processes --------------------------------------------------------------------------------


def _bounded(command: Sequence[str], *, timeout: float, folder: Path) -> str:
    """The output of a command that may take so long and no longer, with whatever it started (Flink's is a JVM)."""
    name = " ".join(Path(part).name for part in command[:2])
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV", "FLINK_HOME"}}
    with (folder / "errors").open("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=clean,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(timeout, 0))
        except subprocess.TimeoutExpired:
            raise _UnavailableError(f"{name} took longer than {timeout:.0f} s") from None
        finally:
            _end(process)
        errors.seek(0)
        said = errors.read()
    if process.returncode:
        raise _UnavailableError(f"{name} failed: {_last_words(said)}")
    return output


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and all of its group, unless it has ended by itself: a JVM of Flink's goes with its parent."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _last_words(said: str) -> str:
    """The innermost cause of a Java trace, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["no word of why"])[-1][:300]


if __name__ == "__main__":
    print(json.dumps(keyed_pattern(Path(sys.argv[1]), most_pairs=(*sys.argv[2:], "first")[0])))
