"""Matching on Spark, compared with the engine in one process.

`LIKEWISE_BENCH_GROWTH=1` adds the run over 20 million events.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import best, cpu, main, memory, row, say, session, task
from likewise.errors import LikewiseError, MissingError


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    count = 200_000 if quick else 5_000_000
    try:
        base, space = _inputs(folder)
    except LikewiseError as error:
        yield {"what": "matching", "value": None, "unit": "", "note": f"skipped: {error.message}"}
        return
    engine = _engine_rate(folder, space)
    yield row("matching, engine in process", engine, "events/s of one core")
    inputs = {"data": str(folder / "events"), "subscriptions": str(folder / "subscriptions.lw"), "space": space}
    _write(base, folder / "events", count)
    single = task(__file__, "match", cores=1, **inputs)
    yield row("matching, Spark, one core", single["rate"], "events/s by the clock")
    yield row("matching, Spark, one core", single["cpu_rate"], "events/s of one core", target=f">= {0.4 * engine:,.0f}")
    # Both rates are in processor time.
    yield row("matching, Spark / engine", single["cpu_rate"] / engine, "of the engine's rate", target=">= 0.4")
    yield row("matches found", single["rows"], "rows")
    full = task(__file__, "match", cores=1, counted=False, **inputs)
    yield row("with all columns of all matches", full["cpu_rate"], "events/s of one core")
    rows = task(__file__, "match", cores=1, direct=False, **inputs)
    yield row("from rows of Spark instead of files", rows["cpu_rate"], "events/s of one core", note="as after a filter")
    if (os.cpu_count() or 1) > 1:
        two = task(__file__, "match", cores=2, **inputs)
        yield row("matching, Spark, two cores", two["rate"], "events/s by the clock")
        yield row("two cores / one", two["rate"] / single["rate"], "times", target=">= 1.6")
        yield row("memory of all processes", two["memory"] / 1e6, "MB")
        if os.environ.get("LIKEWISE_BENCH_GROWTH"):
            yield from _growth(folder, base, inputs, two)


def _growth(folder: Path, base: Path, inputs: dict[str, str], two: dict[str, Any]) -> Iterator[dict[str, object]]:
    shutil.rmtree(inputs["data"])
    _write(base, folder / "many", 20_000_000)
    many = task(__file__, "match", cores=2, **{**inputs, "data": str(folder / "many")})
    what = "matching 20 million events"
    yield row(what, many["rate"], "events/s by the clock", target=f"about {two['rate']:,.0f} (linear)")
    yield row(what, many["cpu_rate"], "events/s of one core", target=f"about {two['cpu_rate']:,.0f} (linear)")
    yield row("memory at 20 million", many["memory"] / 1e6, "MB", target=f"about {two['memory'] / 1e6:,.0f} (flat)")
    early, late = (many[name] / 1e6 for name in ("early", "late"))
    yield row("memory, last third of the run", late, "MB", target=f"about {early:,.0f}, that of the second third")
    shutil.rmtree(folder / "many")


def _inputs(folder: Path) -> tuple[Path, str]:
    """The data set of the matching experiments as Parquet, its subscriptions, and a space."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.evaluation.datasets.thematic import build_thematic
    from likewise.language import format_subscription
    from likewise.pipeline.events.frame import batch_of

    space = _space()
    data = build_thematic()
    base = folder / "base.parquet"
    pq.write_table(pa.Table.from_batches([batch_of(data.events)]), base)
    text = "".join(f"{format_subscription(subscription)}\n" for subscription in data.subscriptions)
    (folder / "subscriptions.lw").write_text(text, encoding="utf-8")
    return base, space


def _space() -> str:
    from likewise.semantics import find_space

    for name in ("wikipedia", "wordnet"):
        try:
            return str(find_space(name).path)
        except LikewiseError:
            continue
    raise MissingError("there is no space", hint="likewise space build --corpus wordnet --out wordnet")


def _engine_rate(folder: Path, space: str) -> float:
    """Events per processor second, from events in memory to scores, with a warm vocabulary."""
    import pyarrow.parquet as pq

    from likewise.pipeline.events.frame import events_of
    from likewise.recipe import Recipe

    recipe = Recipe.of(folder / "subscriptions.lw", spaces=space, options={"approach": "approximate"})
    matcher = recipe.matcher()
    events = list(events_of(pq.read_table(folder / "base.parquet")))

    def once() -> None:
        for at in range(0, len(events), 5000):
            matcher.score_batch(matcher.encode(events[at : at + 5000]))

    once()
    return len(events) / min(cpu(once) for _ in range(5))


def _write(base: Path, folder: Path, count: int) -> None:
    """Write Parquet files of 250,000 events each: those of the base, repeated in different orders."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    say(f"writing {count:,} events")
    folder.mkdir()
    table, dice = pq.read_table(base).combine_chunks(), np.random.default_rng(7)
    for start in range(0, count, _FILE):
        numbers = np.arange(start, min(start + _FILE, count))
        part = table.take(pa.array(dice.permutation(numbers) % len(table)))
        ids = pc.binary_join_element_wise(part["id"], pa.array(numbers).cast(pa.string()), "-")
        pq.write_table(part.set_column(0, "id", ids), folder / f"{start:09}.parquet", row_group_size=_FILE // 2)


_FILE = 250_000


def _match(
    *, data: str, subscriptions: str, space: str, cores: int, counted: bool = True, direct: bool = True
) -> dict[str, Any]:
    from likewise.pipeline import match, read_events

    with session(cores) as spark:
        events = read_events(spark, data, format="parquet")
        # A derived frame has the same rows, but workers cannot read its files directly.
        frame = events if direct else events.select("*")
        found = match(frame, Path(subscriptions), spaces=space, approach="approximate", with_explanation=False)
        count = events.count()
        with memory() as used:
            seconds, busy, found_rows = best(found, 1 if count > 1_000_000 else 6, counted=counted)
    third = max(1, len(used) // 3)
    return {
        "rate": count / seconds,
        "cpu_rate": count / busy,
        "rows": found_rows,
        "memory": max(used, default=0),
        "early": max(used[third : 2 * third], default=0),
        "late": max(used[-third:], default=0),
    }


if __name__ == "__main__":
    main(match=_match)
