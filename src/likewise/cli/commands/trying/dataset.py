"""`likewise dataset`: make the data sets of the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.output import output, print_json

app = typer.Typer(help="Make the data sets of the experiments.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Add the `dataset` commands."""
    parent.add_typer(app, name="dataset")


@app.callback()
def _dataset() -> None:
    """Make the data sets of the experiments."""


@app.command()
def thematic(
    *,
    out: Annotated[Path, typer.Option(help="Folder to write to; made if need be.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 1,
    events: Annotated[int, typer.Option(min=1, help="Expanded events.")] = 14_743,
    seeds: Annotated[int, typer.Option(min=1, help="Seed events.")] = 166,
    subscriptions: Annotated[int, typer.Option(min=1, help="Subscriptions.")] = 94,
    approximation: Annotated[float, typer.Option(min=0, max=1, help="Share of attributes and values with `~`.")] = 1.0,
    replace: Annotated[float, typer.Option(min=0.01, max=1, help="How often a term is said in other words.")] = 0.5,
    variants: Annotated[int, typer.Option(min=1, help="At most so many other words for a term.")] = 6,
    typed: Annotated[bool, typer.Option("--typed", help="Every subscription asks for the event's type.")] = False,
    thesaurus: Annotated[
        Path | None, typer.Option(help="SKOS file, or `wordnet`, that events and other words are made of.")
    ] = None,
    city: Annotated[bool, typer.Option("--city", help="City events, only said in the thesaurus's words.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of EuroVoc and appliances (LIKEWISE_DATA).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output.")] = False,
) -> None:
    """The data set of "Thematic event processing", section 5.2: heterogeneous events with exact truth.

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
    made = build_thematic(recipe, data=data)
    files = write_thematic(made, out)
    if as_json:
        print_json(describe(made) | {"files": {what: str(path) for what, path in files.items()}})
        return
    for what, value in made.facts.items():
        output.print(f"{what:34} {value:,.6g}")
    output.print(f"written to {out}")
