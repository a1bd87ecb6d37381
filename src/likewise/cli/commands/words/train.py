"""`likewise train`: learn the weights of evidence from labelled pairs, derived from thesauri."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json


def register(app: typer.Typer) -> None:
    """Add the `train` command."""
    app.command("train")(train)


def train(
    *,
    out: Annotated[Path, typer.Option(help="File to write the weights to (JSON).")],
    adaptation: Annotated[
        Path | None, typer.Option(help="File to write the adaptation of the sentence encoder to (.npz).")
    ] = None,
    space: Annotated[
        list[str] | None, typer.Option(help="Space by name or path; may be repeated. [default: all built]")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets. [LIKEWISE_DATA]")] = None,
    per_kind: Annotated[int, typer.Option(min=10, help="Number of pairs of each kind from each source.")] = 800,
    seed: Annotated[int, typer.Option(help="Random seed; another seed draws other pairs.")] = 1,
    as_json: Json = False,
) -> None:
    """Learn the weights of evidence from thesauri, and test them on held-out concepts.

    First the adaptation of the sentence encoder is learned from other names, descriptions and translations of things:
    weights of its layers that bring the names of a thing together. This takes about ten minutes. Then the weights of
    evidence are learned from pairs of WordNet, EuroVoc, IPTC Media Topics, appliance types, the glossary, other names,
    descriptions and titles of Wikipedia, split by concept. Pairs of names that were adapted are measured with an
    adaptation that was learned without them.

    The calibration is fitted on the half of the hand-written pairs that is not held out. The prior, and how much an
    attribute tells beside its value, are those with the best F1 on written feeds and pairs that are not held out.

    `likewise relate --model` and `Evidence(model=…)` read the weights, with the shipped adaptation;
    `Evidence(encoder=SentenceEncoder.from_file(…))` reads the adaptation.

    Example: `likewise train --out weights.json --per-kind 400`
    """
    from likewise.cli.commands.words.relate import shelved
    from likewise.evaluation.learning.adaptation import learn_shipped
    from likewise.evaluation.learning.choosing import chosen
    from likewise.evaluation.learning.fitting import learn, report
    from likewise.evaluation.learning.hand_pairs import calibrated
    from likewise.evaluation.learning.training_pairs import training_pairs
    from likewise.semantics import Evidence, Model

    adaptations = learn_shipped(seed=seed, say=_progress)
    if adaptation is not None and adaptations is not None:
        adaptations.save(adaptation)
    pairs = training_pairs(data=data, seed=seed, per_kind=per_kind, adaptations=adaptations)
    errors.print(f"{len(pairs):,} pairs", style="dim")
    encoder = None if adaptations is None else adaptations.encoders()[-1]
    sources = Evidence(shelved(space), encoder=encoder, model=Model.blank()).sources
    model, learned = learn(pairs, sources, adaptations=adaptations, seed=seed, say=_progress)
    model = chosen(calibrated(model, sources), sources, say=_progress)
    out.write_text(model.to_text(), encoding="utf-8")
    rows = report(model, learned)
    if as_json:
        print_json({"model": str(out), "pairs": len(pairs), "held_out": rows})
        return
    _show(rows)
    output.print(f"wrote {out}", soft_wrap=True)


def _progress(message: str) -> None:
    errors.print(message, style="dim")


def _show(rows: list[dict[str, str | float | int]]) -> None:
    from rich.table import Table

    table = Table(title="On pairs of held-out concepts", title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "source" else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values()))
    output.print(table)
