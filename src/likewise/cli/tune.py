"""`likewise tune`: the approach and threshold that fit a user's own labelled pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli._guard import guard
from likewise.cli._input import Rejects, event_batches, read_subscriptions
from likewise.cli._options import DeadLetters
from likewise.cli._output import errors, output, print_json


def register(app: typer.Typer) -> None:
    """Add the `tune` command."""
    app.command("tune")(tune)


def tune(
    events: Annotated[str, typer.Argument(help="File of events (JSON lines, CloudEvents, RDF), or - for stdin.")],
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    labels: Annotated[Path, typer.Option(help="TSV or JSON lines: subscription, event id, relevant (1 or 0).")],
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    approach: Annotated[list[str] | None, typer.Option(help="Try only these; may be repeated.")] = None,
    chart: Annotated[
        list[Path] | None, typer.Option(help="Precision and recall as .html, .png or .svg; may be repeated.")
    ] = None,
    dead_letters: DeadLetters = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find the threshold and approach that fit your own labels.

    Example: `likewise tune events.jsonl subscriptions.lw --labels labels.tsv --chart tuning.html`
    """
    from likewise.charts import check_chart, save
    from likewise.errors import BuildError
    from likewise.evaluation.charts import precision_recall
    from likewise.evaluation.labels import read_labels
    from likewise.evaluation.tuning import candidates, usage
    from likewise.evaluation.tuning import tune as search

    guard(
        reads={"EVENTS": events, "SUBSCRIPTIONS": subscriptions, "--labels": labels},
        writes={"--chart": chart, "--dead-letters": dead_letters},
    )
    for path in chart or ():
        check_chart(path)
    rejects = Rejects(dead_letters)
    interests = read_subscriptions(subscriptions, rejects)
    judged = read_labels(labels)
    happened = [event for batch in event_batches(events, rejects) for event in batch]
    tried = candidates(happened, spaces=space or _shelf())
    if approach:
        known = {each.name: each for each in tried}
        if unknown := [name for name in approach if name not in known]:
            raise BuildError(f"{unknown[0]!r} cannot be tried", hint=f"here are: {', '.join(known)}")
        tried = [known[name] for name in approach]
    found = search(
        happened,
        interests,
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
    else:
        _show(rows)
        output.print(f"best: approach {best.approach}, threshold {best.threshold:.3f}")
        output.print(f"use it with {usage(best.approach, best.threshold)}", markup=False, soft_wrap=True)
    rejects.conclude()


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
