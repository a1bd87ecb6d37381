"""A peer for the keyed pattern: Flink's MATCH_RECOGNIZE over a CSV file, in a separate Python environment.

Flink's pinned dependencies conflict with ours, so the first use installs it in the user's cache folder (850 MB), where
later uses find it. `LIKEWISE_BENCH_FLINK=0` skips Flink.

On its own: `python bench/_flink.py EVENTS.csv first`.
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
"""The oldest and the newest Python that this version of Flink supports."""
INSTALL_LIMIT = 900.0
TINY = 1_000
SKIP = {"first": "PAST LAST ROW", "each": "TO NEXT ROW"}

Answer = dict[str, Any]


class _UnavailableError(Exception):
    """Why Flink cannot run here."""


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

    `most_pairs` selects the reported pairs, through AFTER MATCH SKIP:

    - `first` (PAST LAST ROW): the first A of a room with the next B; both are consumed, and the A's between them, too.
    - `each` (TO NEXT ROW): every A with the next B of its room, so one B may complete several A's.

    MATCH_RECOGNIZE has no "all pairs": an A is never reported with a second B. Flink excludes a distance of exactly 30
    minutes. If the first A is too old for the B, Flink takes the oldest one that is not. With `form="triples"` the
    pattern is "three A's in a row, same room, within 20 minutes" instead.

    The answer has `events`, `matches`, `seconds` of the better of two runs in a running JVM, `overhead` (the same for
    1,000 events: planning, start and end of a job) and `rate`, the events per second of the difference, the most
    favourable rate for Flink. `first` and `first_rate` are those of the first run, which includes compilation and may
    take twice as long. `reading` is the time without the pattern, and `pattern_rate` the rate of the difference.
    `timeout` limits the run, `INSTALL_LIMIT` the installation; without Flink the answer is `{"skipped": why}`, never an
    exception.
    """
    try:
        job: dict[str, Any] = {"skip": _skip(most_pairs), "mode": mode, "listed": listed, "form": form}
        return _measure(Path(events_csv).resolve(), timeout=timeout, **job)
    except (_UnavailableError, OSError, ValueError) as error:
        return {"skipped": str(error)}


def keyed_row(stream: Iterable[Any], *, timeout: float = 900) -> Answer:
    """A row for a table: first pairs of these events (which have a `type` a to d and a `room`) on Flink."""
    answer = keyed_answer(stream, most_pairs="first", timeout=timeout)
    what = f"peer: Flink {VERSION} MATCH_RECOGNIZE from CSV, first pairs"
    if "skipped" in answer:
        return {"what": what, "value": "skipped", "unit": "events/s", "note": answer["skipped"]}
    note = f"{described(answer)}; {answer['first_rate']:,.0f} in the first pass, not yet warm"
    return {"what": f"{what} ({answer['matches']:,})", "value": round(answer["rate"]), "unit": "events/s", "note": note}


def triples_row(stream: Iterable[Any], *, timeout: float = 900) -> Answer:
    """A row for a table: every three A's in a row in one room on Flink."""
    answer = keyed_answer(stream, most_pairs="each", timeout=timeout, form="triples")
    what = f"peer: Flink {VERSION} MATCH_RECOGNIZE from CSV, A{{3}}"
    if "skipped" in answer:
        return {"what": what, "value": "skipped", "unit": "events/s", "note": answer["skipped"]}
    rate = round(answer["rate"])
    return {"what": f"{what} ({answer['matches']:,})", "value": rate, "unit": "events/s", "note": described(answer)}


def keyed_answer(stream: Iterable[Any], *, most_pairs: str, timeout: float = 900, form: str = "pairs") -> Answer:
    """The answer of `keyed_pattern` for events that have a `type` a to d and a `room`."""
    with tempfile.TemporaryDirectory(prefix="likewise-flink-") as folder:
        path = Path(folder) / "events.csv"
        write_events(path, map(_columns, stream))
        return keyed_pattern(path, most_pairs=most_pairs, timeout=timeout, form=form)


def described(answer: Answer) -> str:
    """How a rate was computed."""
    note = f"{answer['cores']} cores, {answer['seconds']:.1f} s less {answer['overhead']:.1f} s of start-up"
    return f"{note}; without the pattern {answer['reading']:.1f} s, so the pattern alone {answer['pattern_rate']:,.0f}"


def _columns(event: Any) -> tuple[str, int, str, str]:
    held = dict(event.tuples)
    return event.id, event.end // 1000, held["type"].upper(), held["room"]


def write_events(path: Path, rows: Iterable[tuple[str, int, str, str]]) -> int:
    """Write id, milliseconds, type (A or B; others are noise) and room, without a header; returns the number of rows.

    They must be in order of time: Flink may drop late events, depending on timing.
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


def _measure(events: Path, *, timeout: float, mode: str, **options: Any) -> Answer:
    python, spent = _environment()
    with tempfile.TemporaryDirectory(prefix="likewise-flink-") as folder:
        tiny = Path(folder) / "tiny.csv"
        count = _copy_head(events, tiny)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        task = {"whole": str(events), "tiny": str(tiny), "mode": mode, "cores": cores, **options}
        job = Path(__file__).with_name("_flink_job.py")
        output = _bounded([str(python), str(job), json.dumps(task)], timeout=timeout, folder=Path(folder))
    answer: Answer = json.loads(output.strip().splitlines()[-1])
    rates = {"rate": _rate(count, answer, "seconds"), "first_rate": _rate(count, answer, "first")}
    rates["pattern_rate"] = count / max(answer["seconds"] - answer["reading"], 1e-3)
    return {"events": count, **rates, **answer, "mode": mode, "cores": cores, "installation": spent}


def _rate(count: int, answer: Answer, run: str) -> float:
    """Events per second without the overhead, unless the run is too short to subtract it."""
    net: float = answer[run] - answer["overhead"]
    return count / (net if net > answer["overhead"] / 10 else answer[run])


def _copy_head(events: Path, tiny: Path) -> int:
    """Copy the first events to another file; returns the number of all events."""
    count = 0
    with events.open(encoding="utf-8") as source, tiny.open("w", encoding="utf-8") as target:
        for count, line in enumerate(source, start=1):
            if count <= TINY:
                target.write(line)
    return count


# --- the environment --------------------------------------------------------------------------


def _environment() -> tuple[Path, float]:
    """The Python with Flink, which is installed if needed, and the seconds of the installation."""
    if os.environ.get("LIKEWISE_BENCH_FLINK") == "0":
        raise _UnavailableError("LIKEWISE_BENCH_FLINK is 0")
    _need_java()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "likewise" / "flink"
    home = cache / VERSION
    if _python(home).exists():
        return _python(home), 0.0
    cache.mkdir(parents=True, exist_ok=True)
    print(f"installing Flink {VERSION} in {cache}, once", file=sys.stderr, flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="new-", dir=cache) as made:
        _install(Path(made) / "env", Path(made))
        # Moved when complete, so that an interrupted installation is not used.
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
    """Install with uv, which is three times as fast; without it, or if it fails, with venv and pip."""
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
        raise _UnavailableError(f"Flink {VERSION} does not support Python {sys.version_info[0]}.{sys.version_info[1]}")
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
    """The output of a command with a time limit, which also applies to its child processes (Flink starts a JVM)."""
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
        log = errors.read()
    if process.returncode:
        raise _UnavailableError(f"{name} failed: {_cause(log)}")
    return output


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process and its group, unless it has ended: Flink's JVM ends with its parent."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _cause(log: str) -> str:
    """The innermost cause of a Java trace, else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["no error message"])[-1][:300]


if __name__ == "__main__":
    print(json.dumps(keyed_pattern(Path(sys.argv[1]), most_pairs=(*sys.argv[2:], "first")[0])))
