"""`likewise dataset expand`: the data set of the matching experiments at any size, created on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.commands.trying import dataset
from likewise.cli.options import Json, SparkAddress, grouped
from likewise.cli.output import output, print_json


def register(_: typer.Typer) -> None:
    """Add `dataset expand`."""
    dataset.app.command("expand")(expand)


@grouped
def expand(
    *,
    out: Annotated[Path, typer.Option(help="Folder to write to; it must not exist yet.")],
    events: Annotated[int, typer.Option(min=1, help="Number of events.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same events.")] = 1,
    approximation: Annotated[float, typer.Option(min=0, max=1, help="Share of attributes and values with `~`.")] = 1.0,
    data: Annotated[Path | None, typer.Option(help="Folder with EuroVoc and appliances. [LIKEWISE_DATA]")] = None,
    where: SparkAddress,
    as_json: Json = False,
) -> None:
    """Create the data set of `dataset thematic` with millions of events, as Parquet, on Spark.

    Example: `likewise dataset expand --out data/many --events 10000000`
    """
    from likewise.cli.spark.session import progress_of, session
    from likewise.evaluation.datasets.job import expand_on_spark, truth_of
    from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic
    from likewise.language import format_subscription

    dataset_ = build_thematic(DatasetRecipe(seed=seed, approximation=approximation), data=data)
    started = time.perf_counter()
    folder = out.absolute()
    with session(where.master, where.remote) as spark, progress_of(spark):
        expand_on_spark(spark, dataset_, events).write.parquet(str(folder / "made"))
        stored = spark.read.parquet(str(folder / "made"))
        truth_of(stored).write.parquet(str(folder / "truth"))
        pairs = spark.read.parquet(str(folder / "truth")).count()
    text = "".join(f"{format_subscription(subscription)}\n" for subscription in dataset_.subscriptions)
    (folder / "subscriptions.lw").write_text(text, encoding="utf-8")
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"events": events, "relevant pairs": pairs, "seconds": seconds, "folder": str(folder)})
        return
    output.print(
        f"{events:,} events ({folder / 'made'}), {pairs:,} relevant pairs ({folder / 'truth'})", soft_wrap=True
    )
    output.print(f"{seconds:,.1f} s, {events / seconds:,.0f} events/s")
