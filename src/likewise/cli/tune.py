"""`likewise tune`: the approach and threshold that fit a user's own labelled pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli._output import errors, output, print_json


def register(app: typer.Typer) -> None:
    """Add the `tune` command."""
    app.command("tune")(tune)


def tune(
    events: Annotated[str, typer.Argument(help="File of events (JSON lines, CloudEvents, RDF), or - for stdin.")],
    subscriptions: Annotated[Path, typer.Argument(help="File of subscriptions.")],
    *,
    labels: Annotated[Path, typer.Option(help="TSV or JSON lines: subscription, event id, relevant (1 or 0).")],
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    approach: Annotated[list[str] | None, typer.Option(help="Try only these; may be repeated.")] = None,
    chart: Annotated[
        list[Path] | None, typer.Option(help="Precision and recall as .html, .png or .svg; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find the approach and the threshold with the best F1 on your own labelled pairs.

    Example: `likewise tune events.jsonl subscriptions.lw --labels labels.tsv --chart tuning.html`
    """
    from likewise.errors import BuildError, InputError
    from likewise.evaluation.charts import precision_recall, save
    from likewise.evaluation.labels import read_labels
    from likewise.evaluation.tuning import candidates, usage
    from likewise.evaluation.tuning import tune as search
    from likewise.events import read_events
    from likewise.language import parse

    try:
        text = subscriptions.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", source=str(subscriptions), hint="check the path"
        ) from None
    judged = read_labels(labels)
    happened = list(read_events(events))
    tried = candidates(happened, spaces=space or _shelf())
    if approach:
        known = {each.name: each for each in tried}
        if unknown := [name for name in approach if name not in known]:
            raise BuildError(f"{unknown[0]!r} cannot be tried", hint=f"here are: {', '.join(known)}")
        tried = [known[name] for name in approach]
    found = search(
        happened,
        parse(text, source=str(subscriptions)),
        judged,
        tried=tried,
        say=lambda message: errors.print(message, style="dim"),
    )
    for path in chart or ():
        save(precision_recall({each.approach: each.curve for each in found}, title="Precision and recall"), path)
    rows = [
        {
            "approach": each.approach,
            "f1": each.f1,
            "threshold": each.threshold,
            "precision": each.precision,
            "recall": each.recall,
        }
        for each in found
    ]
    best = found[0]
    if as_json:
        own = {name: {"f1": f1, "threshold": threshold} for name, (f1, threshold) in best.each.items()}
        print_json({"best": rows[0], "tried": rows, "subscriptions": own})
        return
    _show(rows)
    output.print(f"best: approach {best.approach}, threshold {best.threshold:.3f}")
    output.print(f"use it with {usage(best.approach, best.threshold)}", markup=False, soft_wrap=True)


def _shelf() -> list[str]:
    """All spaces that are built, WordNet's and Wikipedia's alike."""
    from likewise.semantics import Manifest, list_spaces

    return [str(path) for path, state in list_spaces() if isinstance(state, Manifest)]


def _show(rows: list[dict[str, object]]) -> None:
    from rich.table import Table

    table = Table(title="On your labels, best F1 first", title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "approach" else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values()))
    output.print(table)
