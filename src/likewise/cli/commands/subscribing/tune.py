"""`likewise tune`: the approach and threshold that fit a user's own labelled pairs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import OFF, command_line, settings_text
from likewise.cli.options import DeadLetters, grouped
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.input import Rejects, event_batches, read_subscriptions
from likewise.cli.reading.records import Records
from likewise.files import write_whole

_PLAIN = ("approach", "threshold", "space")
"""Settings that Python takes as they are."""


def register(app: typer.Typer) -> None:
    """Add the `tune` command."""
    app.command("tune")(tune)


@grouped
def tune(
    events: Annotated[str, typer.Argument(help="Events (JSON, CSV, Parquet, CloudEvents or RDF), or - for stdin.")],
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    records: Records,
    labels: Annotated[Path, typer.Option(help="TSV or JSON lines: subscription, event id, relevant (1 or 0).")],
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    approach: Annotated[list[str] | None, typer.Option(help="Try only these; may be repeated.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="Your own abbreviations and synonyms.")] = None,
    chart: Annotated[
        list[Path] | None, typer.Option(help="Precision and recall as .html, .png or .svg; may be repeated.")
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", help="Write the best settings here, for `--settings` of other commands.")
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
    from likewise.evaluation.quality.labels import read_labels
    from likewise.evaluation.quality.tuning import candidates
    from likewise.evaluation.quality.tuning import tune as search
    from likewise.semantics import Glossary

    guard(
        reads={
            "EVENTS": events,
            "SUBSCRIPTIONS": subscriptions,
            "--labels": labels,
            "--glossary": glossary,
            "--mapping": records.mapping,
        },
        writes={
            "--chart": chart,
            "--save": save_to,
            "--dead-letters": dead_letters,
            "--save-mapping": records.save_mapping,
        },
    )
    for path in chart or ():
        check_chart(path)
    rejects = Rejects(dead_letters)
    interests = read_subscriptions(subscriptions, rejects)
    judged = read_labels(labels)
    happened = [event for batch in event_batches(events, rejects, records=records) for event in batch]
    spaces = space or _shelf()
    tried = candidates(happened, spaces=spaces, glossary=None if glossary is None else Glossary.from_file(glossary))
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
    settings = recommended(best.approach, best.threshold, spaces)
    if glossary is not None and settings["approach"] == "evidence":
        settings["glossary"] = str(glossary.absolute())
    if save_to is not None:
        write_whole(save_to, settings_text(settings))
    if as_json:
        own = {name: {"f1": f1, "threshold": threshold} for name, (f1, threshold) in best.each.items()}
        print_json({"best": rows[0], "tried": rows, "subscriptions": own, "settings": settings})
    else:
        _show(rows)
        output.print(f"best: approach {best.approach}, threshold {best.threshold:.3f}")
        for line in _usage(settings, events, subscriptions, save_to):
            output.print(line, markup=False, soft_wrap=True)
    rejects.conclude()


def recommended(name: str, threshold: float, spaces: list[str]) -> dict[str, Any]:
    """The settings of what was tried under a name.

    >>> recommended("contrast", 0.25, ["wordnet"])
    {'approach': 'contrast', 'threshold': 0.25, 'space': ['wordnet']}
    >>> recommended("embedding+contrast", 0.56789, [])
    {'approach': 'contrast', 'threshold': 0.5678, 'measure': 'embedding'}
    >>> recommended("evidence", 0.5, []), recommended("evidence+background", 0.5, [])
    ({'approach': 'evidence', 'threshold': 0.5, 'background': 'none'}, {'approach': 'evidence', 'threshold': 0.5})
    """
    parts = name.split("+")
    words = [part for part in parts if part not in ("embedding", "background")]
    # Rounded down, so that the event at the very threshold stays in.
    found: dict[str, Any] = {"approach": "+".join(words) or "approximate", "threshold": floor(threshold * 1e4) / 1e4}
    if "embedding" in parts:
        found["measure"] = "embedding"
    elif spaces and found["approach"] != "exact":
        found["space"] = spaces
    # The first events are the background unless it is switched off.
    return found | ({"background": OFF} if name == "evidence" else {})


def _usage(settings: dict[str, Any], events: str, subscriptions: str, saved: Path | None) -> Iterator[str]:
    """How to use what was found: as a command line, in Python and as a file."""
    files = shlex.join([events, subscriptions])
    yield f"command line: likewise match {files} {command_line(settings)}"
    names = {"space": "spaces"}
    python = [f"{names.get(name, name)}={value!r}" for name, value in settings.items() if name in _PLAIN]
    python += ['measure=measure("embedding")'] if "measure" in settings else []
    if "glossary" in settings:
        words = f'Glossary.from_file(Path("{settings["glossary"]}"))'
        python.append(f'measure=measure("evidence", spaces={settings.get("space", [])!r}, glossary={words})')
    python += ["background=None"] if "background" in settings else []
    yield f"Python:       Engine({', '.join(python)})"
    yield f"settings:     --settings {saved}" if saved is not None else "settings:     --save FILE keeps them"


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
