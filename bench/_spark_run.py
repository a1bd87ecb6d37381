"""Shared by the benchmarks on Spark: tasks in separate processes, and their measurement.

Every task is a separate process, pinned to its cores with all its children, so that "one core" means one.
Rates are those of a second pass over the data: sessions, workers and caches are warm. Both wall-clock time and the
processor time of driver, JVM and workers are measured; other work on the machine affects the latter less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Task = Callable[..., dict[str, Any]]


def task(file: str, name: str, *, cores: int | None, **arguments: Any) -> dict[str, Any]:
    """Run a task of a file in a process with this number of cores."""
    say(f"{name}, {cores or 'all'} cores")
    command = [sys.executable, file, name, json.dumps({**arguments, "cores": cores})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError(f"{name} failed: {done.stderr[-1500:]}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


@contextmanager
def session(cores: int | None) -> Iterator[Any]:
    from likewise.pipeline import spark_session

    if cores is not None and hasattr(os, "sched_setaffinity"):
        # Inherited by the JVM and all workers.
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    settings = {"spark.sql.shuffle.partitions": str(cores or 2), "spark.sql.files.maxPartitionBytes": "16m"}
    spark = spark_session(master=f"local[{cores or '*'}]", settings=settings)
    yield spark
    spark.stop()


def main(**tasks: Task) -> None:
    """The child process of `task`: `python FILE NAME ARGUMENTS`."""
    print(json.dumps(tasks[sys.argv[1]](**json.loads(sys.argv[2]))))


def best(frame: Any, rounds: int, *, counted: bool = True) -> tuple[float, float, int]:
    """Wall-clock seconds, processor seconds and number of rows: the best of some passes after a warm-up.

    Unless rows are `counted`, all their columns are computed and discarded, and the number is 0.
    """
    rows, times, cpu = 0, [], []
    for _ in range(rounds + 1):
        started, used = time.perf_counter(), processor_time()
        if counted:
            rows = frame.count()
        else:
            frame.write.format("noop").mode("overwrite").save()
        times.append(time.perf_counter() - started)
        cpu.append(processor_time() - used)
    return min(times[1:]), min(cpu[1:]), int(rows)


def processor_time() -> float:
    """Processor seconds of this process and all its children so far."""
    import psutil

    me, total = psutil.Process(), 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return total


@contextmanager
def memory() -> Iterator[list[int]]:
    """Samples of the memory of this process and all its children, twice a second; shared pages count for each."""
    import psutil

    samples: list[int] = []
    over = threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(0.5):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            samples.append(total)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield samples
    over.set()
    thread.join()


def row(what: str, value: float, unit: str, **more: object) -> dict[str, object]:
    return {"what": what, "value": value, "unit": unit, **more}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cpu(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before
