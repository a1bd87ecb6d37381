"""`likewise dataset`: create the data sets of the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.options import Json
from likewise.cli.output import output, print_json

app = typer.Typer(help="Create the data sets of the experiments.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Add the `dataset` commands."""
    parent.add_typer(app, name="dataset")


@app.callback()
def _dataset() -> None:
    """Create the data sets of the experiments."""


@app.command()
def thematic(
    *,
    out: Annotated[Path, typer.Option(help="Folder to write to; created if needed.")],
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same files.")] = 1,
    events: Annotated[int, typer.Option(min=1, help="Number of expanded events.")] = 14_743,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seed events.")] = 166,
    subscriptions: Annotated[int, typer.Option(min=1, help="Number of subscriptions.")] = 94,
    approximation: Annotated[float, typer.Option(min=0, max=1, help="Share of attributes and values with `~`.")] = 1.0,
    replace: Annotated[float, typer.Option(min=0.01, max=1, help="Probability that a term is replaced.")] = 0.5,
    variants: Annotated[int, typer.Option(min=1, help="Most alternatives for a term.")] = 6,
    typed: Annotated[bool, typer.Option("--typed", help="Add the event's type to every subscription.")] = False,
    thesaurus: Annotated[
        Path | None,
        typer.Option(help="SKOS file, or `wordnet`, to make events and alternatives from. [default: EuroVoc]"),
    ] = None,
    city: Annotated[
        bool, typer.Option("--city", help="Keep the city events; take only the alternatives from --thesaurus.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with EuroVoc and appliances. [LIKEWISE_DATA]")] = None,
    as_json: Json = False,
) -> None:
    """Create heterogeneous events, subscriptions and the exact truth, as in "Thematic Event Processing", section 5.2.

    Example: `likewise dataset thematic --out data/thematic --events 500 --approximation 0.5`
    """
    from likewise.evaluation.datasets.files import write_thematic
    from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic, describe

    guard(reads={"--data": data, "--thesaurus": thesaurus}, makes={"--out": out})
    recipe = DatasetRecipe(
        seed=seed,
        events=events,
        seeds=seeds,
        subscriptions=subscriptions,
        approximation=approximation,
        replace=replace,
        most_variants=variants,
        typed=typed,
        thesaurus="" if thesaurus is None else str(thesaurus),
        city=city,
    )
    dataset = build_thematic(recipe, data=data)
    files = write_thematic(dataset, out)
    if as_json:
        print_json(describe(dataset) | {"files": {name: str(path) for name, path in files.items()}})
        return
    for name, value in dataset.facts.items():
        output.print(f"{name:34} {value:,.6g}")
    output.print(f"written to {out}")
