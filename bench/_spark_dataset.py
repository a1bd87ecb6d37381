"""The data set of the matching experiments, created on Spark with its truth.

`LIKEWISE_BENCH_GROWTH=1` also creates 10 million events, after 2 million.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import main, memory, processor_time, row, session, task

SAMPLE = 2_000


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    sizes = [100_000] if quick else [2_000_000, *([10_000_000] if os.environ.get("LIKEWISE_BENCH_GROWTH") else [])]
    before: dict[str, Any] | None = None
    for size in sizes:
        try:
            result = task(__file__, "expand", cores=2, folder=str(folder / f"made-{size}"), count=size)
        except RuntimeError as error:
            yield {"what": "data set job", "value": None, "unit": "", "note": f"failed: {str(error).splitlines()[-1]}"}
            return
        what, agree = (
            f"data set job, {size:,} events with truth",
            f"{result['agree']:,} of {SAMPLE:,} sampled truths agree",
        )
        linear = {"target": f"about {before['cpu_rate']:,.0f} (linear)"} if before else {}
        flat = {"target": f"about {before['memory'] / 1e6:,.0f} (flat)"} if before else {}
        yield row(what, result["cpu_rate"], "events/s of one core", **linear, note=agree)
        yield row(what, result["memory"] / 1e6, "MB of all processes", **flat)
        before = result


def _expand(*, folder: str, count: int, cores: int) -> dict[str, Any]:
    """Write the events, as `likewise dataset expand` does, and compare a sample with the data set in memory."""
    from likewise.evaluation.datasets.job import expand_on_spark, truth_of
    from likewise.evaluation.datasets.thematic import build_thematic

    data = build_thematic()
    with session(cores) as spark, memory() as used:
        # A small run warms up compilers and workers.
        expand_on_spark(spark, data, 50_000).write.parquet(f"{folder}-first")
        truth_of(spark.read.parquet(f"{folder}-first")).count()
        before = processor_time()
        expand_on_spark(spark, data, count).write.parquet(folder)
        made = spark.read.parquet(folder)
        pairs = truth_of(made).count()
        busy = processor_time() - before
        # Every n-th event of the whole set.
        sample = made.where(f"cast(substr(id, 2) as bigint) % {count // SAMPLE} = 0").toArrow()
    for made_before in (folder, f"{folder}-first"):
        shutil.rmtree(made_before)
    result = {"cpu_rate": count / busy, "pairs": pairs, "memory": max(used, default=0)}
    return result | {"sampled": len(sample), "agree": _agree(data, sample)}


def _agree(data: Any, sample: Any) -> int:
    from dataclasses import replace

    from likewise.evaluation.datasets.thematic import relevant
    from likewise.pipeline.events.frame import events_of

    same = replace(data, events=tuple(events_of(sample)), origins=tuple(sample["origin"].to_pylist()))
    wanted: list[set[str]] = [set() for _ in same.events]
    for subscription, profile in zip(data.subscriptions, data.profiles, strict=True):
        for at in relevant(profile, same).nonzero()[0]:
            wanted[at].add(subscription.name)
    return sum(set(found) == right for found, right in zip(sample["relevant"].to_pylist(), wanted, strict=True))


if __name__ == "__main__":
    main(expand=_expand)
