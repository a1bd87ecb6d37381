"""Latency of a live feed: from the write of one event to the line that answers it.

Each command is a process that reads an open pipe, or follows a growing file. Events are written one at a time, with
pauses, so that each is measured alone. Every event gets an answer and contains new words.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

EVENTS = 100
PAUSE = 0.03
PROFILE = "warm: {temperature~ > 30}\nsmoke: {kind~ = smoke~}\n"
PATTERN = "pair: {kind = door} as x then first {kind~ = smoke~} as y within 1 hour\n"


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    count = EVENTS // 5 if quick else EVENTS
    with tempfile.TemporaryDirectory(prefix="likewise-live-") as name:
        folder = Path(name)
        (folder / "s.lw").write_text(PROFILE, encoding="utf-8")
        (folder / "p.lw").write_text(PATTERN, encoding="utf-8")
        return [
            *_rows("match -", ["match", "-", str(folder / "s.lw"), "--json"], count),
            *_rows("detect -", ["detect", "-", str(folder / "p.lw"), "--json"], count, pairs=True),
            *_rows("match --follow", ["match", str(folder / "f.jsonl"), str(folder / "s.lw"), "--json", "-f"], count),
        ]


def _rows(what: str, command: list[str], count: int, *, pairs: bool = False) -> list[dict[str, object]]:
    print(f"live: {what}", file=sys.stderr, flush=True)
    followed = Path(command[1]) if command[1] != "-" else None
    if followed is not None:
        followed.write_bytes(b"")
    program = [sys.executable, "-c", "from likewise.cli.app import main; main()", *command]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None

    def write(line: str) -> None:
        if followed is None:
            assert process.stdin is not None
            process.stdin.write(line.encode())
            process.stdin.flush()
        else:
            with followed.open("ab") as file:
                file.write(line.encode())

    try:
        waits = [_wait(write, process.stdout.readline, at, pairs=pairs) for at in range(count + 1)]
    finally:
        process.stdin.close()
        process.terminate()
        process.wait()
        process.stdout.close()
    first, later = waits[0], sorted(waits[1:])
    names = ("median", "95th percentile", "longest")
    places = (len(later) // 2, int(len(later) * 0.95), len(later) - 1)
    rows: list[dict[str, object]] = [{"what": f"{what}, first answer, start-up included", "value": first, "unit": "ms"}]
    return rows + [
        {"what": f"{what}, {name}", "value": later[at], "unit": "ms"} for name, at in zip(names, places, strict=True)
    ]


def _wait(write: Callable[[str], None], read: Callable[[], bytes], at: int, *, pairs: bool) -> float:
    """Milliseconds from the write of an event to its answer."""
    time.sleep(PAUSE)
    if pairs:
        write(f'{{"ts": {1_772_355_600 + 2 * at}, "kind": "door"}}\n')
        time.sleep(PAUSE)
    begun = time.perf_counter()
    write(f'{{"ts": {1_772_355_601 + 2 * at}, "kind": "smoke", "place": "hall of house {at}"}}\n')
    if not read():
        raise RuntimeError("the command ended before its answer")
    return 1000 * (time.perf_counter() - begun)
