"""Matching on Spark beside the engine in one process.

`LIKEWISE_BENCH_GROWTH=1` adds the run over 20 million events.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import best, cpu, main, memory, row, say, session, task


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    count = 200_000 if quick else 5_000_000
    try:
        base, space = _inputs(folder)
    except Exception as error:
        yield {"what": "matching", "value": None, "unit": "", "note": f"skipped: {error}"}
        return
    engine = _engine_rate(folder, space)
    yield row("matching, engine in process", engine, "events/s of one core")
    data = folder / "events.parquet"
    say(f"writing {count:,} events")
    task(__file__, "write", cores=None, base=str(base), out=str(data), count=count)
    given = {"data": str(data), "subscriptions": str(folder / "subscriptions.lw"), "space": space}
    one = task(__file__, "match", cores=1, **given)
    yield row("matching, Spark, one core", one["rate"], "events/s by the clock")
    yield row("matching, Spark, one core", one["cpu_rate"], "events/s of one core", target=f">= {0.4 * engine:,.0f}")
    # Like with like: the engine's rate is one of processor time too.
    yield row("matching, Spark beside the engine", one["cpu_rate"] / engine, "of the engine's rate", target=">= 0.4")
    yield row("matches found", one["rows"], "rows")
    if (os.cpu_count() or 1) > 1:
        two = task(
            __file__, "match", cores=2, data=str(data), subscriptions=str(folder / "subscriptions.lw"), space=space
        )
        yield row("matching, Spark, two cores", two["rate"], "events/s by the clock")
        yield row("two cores beside one", two["rate"] / one["rate"], "times", target=">= 1.6")
        yield row("memory of all processes", two["memory"] / 1e6, "MB")
        if os.environ.get("LIKEWISE_BENCH_GROWTH"):
            yield from _growth(folder, base, space, two)


def _growth(folder: Path, base: Path, space: str, two: dict[str, Any]) -> Iterator[dict[str, object]]:
    data = folder / "many.parquet"
    say("writing 20,000,000 events")
    task(__file__, "write", cores=None, base=str(base), out=str(data), count=20_000_000)
    many = task(__file__, "match", cores=2, data=str(data), subscriptions=str(folder / "subscriptions.lw"), space=space)
    yield row("matching 20 million events", many["rate"], "events/s", target=f"about {two['rate']:,.0f} (linear)")
    yield row("memory at 20 million", many["memory"] / 1e6, "MB", target=f"about {two['memory'] / 1e6:,.0f} (flat)")


def _inputs(folder: Path) -> tuple[Path, str]:
    """The data set of the matching experiments as Parquet, its subscriptions, and a space."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.evaluation.thematic_dataset import build_thematic
    from likewise.language import format_subscription
    from likewise.pipeline._frame import batch_of

    space = _space()
    data = build_thematic()
    base = folder / "base.parquet"
    pq.write_table(pa.Table.from_batches([batch_of(data.events)]), base)
    text = "".join(f"{format_subscription(each)}\n" for each in data.subscriptions)
    (folder / "subscriptions.lw").write_text(text, encoding="utf-8")
    return base, space


def _space() -> str:
    from likewise.errors import LikewiseError
    from likewise.semantics import find_space

    for name in ("wikipedia", "wordnet"):
        try:
            return str(find_space(name).path)
        except LikewiseError:
            continue
    raise RuntimeError("there is no space (likewise space build --corpus wordnet --out wordnet)")


def _engine_rate(folder: Path, space: str) -> float:
    """Events per second of CPU time, from events in memory to scores, the vocabulary warm."""
    import pyarrow.parquet as pq

    from likewise.pipeline._frame import events_of
    from likewise.pipeline._worker import Recipe

    recipe = Recipe.of(folder / "subscriptions.lw", spaces=space, options={"approach": "approximate"})
    matcher = recipe.matcher()
    events = list(events_of(pq.read_table(folder / "base.parquet")))

    def once() -> None:
        for at in range(0, len(events), 5000):
            matcher.score_batch(matcher.encode(events[at : at + 5000]))

    once()
    return len(events) / min(cpu(once) for _ in range(5))


def _write(*, base: str, out: str, count: int, cores: int | None) -> dict[str, Any]:
    from pyspark.sql import functions as F  # noqa: N812

    with session(cores) as spark:
        told = spark.read.parquet(base)
        copies = -(-count // told.count())
        numbers = spark.range(copies).withColumnRenamed("id", "copy")
        many = numbers.crossJoin(F.broadcast(told)).limit(count).withColumn("id", F.concat_ws("-", "id", "copy"))
        parts = max(8, count // 250_000)
        many.drop("copy").repartition(parts).write.parquet(out)
    return {}


def _match(*, data: str, subscriptions: str, space: str, cores: int) -> dict[str, Any]:
    from likewise.pipeline import match, read_events

    with session(cores) as spark, memory() as used:
        events = read_events(spark, data, format="parquet")
        found = match(events, Path(subscriptions), space=space, approach="approximate", explain=False)
        count = events.count()
        found.limit(1000).count()
        seconds, busy, found_rows = best(found, 1 if count > 1_000_000 else 6)
    return {"rate": count / seconds, "cpu_rate": count / busy, "rows": found_rows, "memory": used["most"]}


if __name__ == "__main__":
    main(write=_write, match=_match)
