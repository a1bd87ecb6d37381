"""Building a space on Spark, compared with gensim on the same file: time, memory, growth, disk and opening.

Processor times (`CPU s`) are given besides wall-clock times, because the latter include other work on the machine.
"""

from __future__ import annotations

import bz2
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ARTICLES = Path(os.environ.get("LIKEWISE_DATA", "../shared/data")) / "wikipedia" / "articles-400w.jsonl.bz2"
MASTER = "local[2,4]"
GIGABYTE = 1 << 30

GENSIM = """
import bz2, json, sys
from gensim.corpora import Dictionary
from gensim.models import TfidfModel
from gensim.utils import simple_preprocess

def texts():
    with bz2.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        for line in lines:
            yield simple_preprocess(json.loads(line)["text"])

dictionary = Dictionary(texts(), prune_at=None)
bags = [dictionary.doc2bow(text) for text in texts()]
model = TfidfModel(bags)
vectors = [model[bag] for bag in bags]
print(len(dictionary), sum(map(len, vectors)))
"""

LIKEWISE = "from likewise.cli import main; main()"


@dataclass(frozen=True)
class Cost:
    """The cost of a program, including its child processes."""

    seconds: float
    cpu: float
    memory: int


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table; `quick` uses a sixteenth of the articles, for which Spark's start dominates."""
    if not ARTICLES.exists():
        return [{"what": "space", "value": "skipped", "unit": f"no {ARTICLES}"}]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parts = [1 / 16] if quick else [1 / 4, 1 / 2, 1]
        corpora = {part: _corpus(folder, part) for part in parts}
        costs = {part: _build(corpora[part], folder / f"space-{part}") for part in parts}
        rows = _peer_rows(corpora[parts[-1]], costs[parts[-1]])
        if len(parts) > 1:
            rows += _growth_rows(costs)
        return rows + _space_rows(folder / f"space-{parts[-1]}")


def _peer_rows(corpus: Path, ours: Cost) -> list[dict[str, object]]:
    rows = [
        _row("build", ours.seconds, "s", "<= gensim"),
        _row("build, processor time", ours.cpu, "CPU s"),
        _row("build, memory of all processes", ours.memory / GIGABYTE, "GB", "<= 4"),
    ]
    if importlib.util.find_spec("gensim") is None:
        return [*rows, {"what": "gensim", "value": "skipped", "unit": "not installed"}]
    peer = _measure([sys.executable, "-c", GENSIM, str(corpus)])
    return [
        *rows,
        _row("gensim dictionary + bags + TF-IDF", peer.seconds, "s"),
        _row("gensim, processor time", peer.cpu, "CPU s"),
        _row("gensim, memory", peer.memory / GIGABYTE, "GB"),
        _row("build / gensim", ours.seconds / peer.seconds, "x", "<= 1"),
    ]


def _growth_rows(costs: dict[float, Cost]) -> list[dict[str, object]]:
    rows = [_row(f"build of {part:g} of the articles", cost.seconds, "s") for part, cost in costs.items()]
    rows += [_row(f"processor time of {part:g}", cost.cpu, "CPU s") for part, cost in costs.items()]
    # Differences cancel the start of Spark; with linear growth the second half costs twice the second quarter.
    slope = (costs[1].cpu - costs[1 / 2].cpu) / (2 * (costs[1 / 2].cpu - costs[1 / 4].cpu))
    return [*rows, _row("growth, second half / second quarter (linear = 1)", slope, "x", "about 1")]


def _space_rows(folder: Path) -> list[dict[str, object]]:
    from likewise.semantics import Space

    started = time.perf_counter()
    space = Space.open(folder)
    opened = time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.iterdir())
    return [
        _row("concepts", space.concepts, ""),
        _row("postings", space.postings, ""),
        _row("disk / (postings x 6 bytes)", size / (6 * space.postings), "x", "<= 1.5"),
        _row("opening", opened * 1000, "ms", "< 1000"),
    ]


def _corpus(folder: Path, part: float) -> Path:
    if part == 1:
        return ARTICLES
    path = folder / f"articles-{part}.jsonl.bz2"
    step = round(1 / part)
    with bz2.open(ARTICLES) as articles, bz2.open(path, "wb") as chosen:
        chosen.writelines(line for number, line in enumerate(articles) if number % step == 0)
    return path


def _build(corpus: Path, out: Path) -> Cost:
    command = ["space", "build", "--corpus", str(corpus), "--out", str(out), "--master", MASTER]
    return _measure([sys.executable, "-c", LIKEWISE, *command])


def _measure(command: list[str]) -> Cost:
    """Run a program; memory is the largest sampled sum of resident sets, in which shared pages count several times."""
    print("measuring", " ".join(part.split("\n")[0][:60] or "gensim" for part in command[2:]), file=sys.stderr)
    started = time.perf_counter()
    cpu: dict[int, float] = {}
    most = 0
    with psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        while program.poll() is None:
            most = max(most, _sample(program, cpu))
            time.sleep(0.2)
        if program.returncode:
            raise RuntimeError(program.stderr.read())
    cost = Cost(time.perf_counter() - started, sum(cpu.values()), most)
    print(f"  {cost.seconds:.1f} s, {cost.cpu:.1f} CPU s, {cost.memory / GIGABYTE:.2f} GB", file=sys.stderr)
    return cost


def _sample(program: psutil.Popen, cpu: dict[int, float]) -> int:
    total = 0
    for process in [program, *program.children(recursive=True)]:
        try:
            total += process.memory_info().rss
            times = process.cpu_times()
        except psutil.Error:
            # The process has ended meanwhile.
            continue
        cpu[process.pid] = times.user + times.system
    return total


def _row(what: str, value: float, unit: str, target: str | None = None) -> dict[str, object]:
    row: dict[str, object] = {"what": what, "value": round(value, 3), "unit": unit}
    return row if target is None else {**row, "target": target}
