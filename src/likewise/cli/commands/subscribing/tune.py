"""`likewise tune`: the approach and threshold that fit a user's own labelled pairs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from likewise.cli.commands.events.vocabulary import read_background
from likewise.cli.guard import guard
from likewise.cli.meaning import OFF, command_line, settings_text, settled, spark_options
from likewise.cli.options import DeadLetters, MeaningOptions, NoSample, OwnGlossary, Sample, Settings, Spaces, grouped
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.input import Rejects, event_batches, read_subscriptions
from likewise.cli.reading.records import Records
from likewise.files import write_whole

if TYPE_CHECKING:
    from likewise.evaluation.quality.tuning import Candidate

_PLAIN = ("approach", "threshold", "space")
"""Settings that Python takes as they are."""
_USUAL = MeaningOptions()


@dataclass(frozen=True, slots=True)
class TriedOptions:
    """What is tried; the threshold is what `tune` finds."""

    panel: ClassVar[str] = "Meaning"
    approach: Annotated[list[str] | None, typer.Option(help="Try only these; may be repeated.")] = None
    measure: Annotated[
        str | None, typer.Option(help="Measure for `~`, such as esa or embedding: try only what stands on it.")
    ] = None
    space: Spaces = None
    background: Sample = None
    no_background: NoSample = False
    glossary: OwnGlossary = None
    settings: Settings = None

    def settled(self) -> MeaningOptions:
        """The same as other commands have it, with the settings file filled in."""
        names = ("measure", "space", "background", "no_background", "glossary", "settings")
        return settled(MeaningOptions(**{name: getattr(self, name) for name in names}))


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
    tried: TriedOptions,
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
    from likewise.evaluation.charts import precision_recall
    from likewise.evaluation.quality.labels import read_labels
    from likewise.evaluation.quality.tuning import candidates
    from likewise.evaluation.quality.tuning import tune as search
    from likewise.semantics import Glossary

    meaning = tried.settled()
    guard(
        reads={
            "EVENTS": events,
            "SUBSCRIPTIONS": subscriptions,
            "--labels": labels,
            "--background": meaning.background,
            "--glossary": meaning.glossary,
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
    spaces = meaning.space or _shelf()
    given = spark_options(meaning).get("background")
    found_here = candidates(
        happened,
        spaces=spaces,
        glossary=None if meaning.glossary is None else Glossary.from_file(meaning.glossary),
        measure_name=meaning.measure,
        background=given,
        learning=not meaning.no_background,
    )
    chosen = _chosen(found_here, tried.approach or ([meaning.approach] if meaning.approach else []))
    found = search(
        happened,
        interests,
        judged,
        tried=chosen,
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
    told = next(each.settings for each in chosen if each.name == best.approach)
    settings = recommended(told, best.threshold, spaces, meaning)
    if save_to is not None:
        write_whole(save_to, settings_text(settings))
    if as_json:
        own = {name: {"f1": f1, "threshold": threshold} for name, (f1, threshold) in best.each.items()}
        print_json({"best": rows[0], "tried": rows, "subscriptions": own, "settings": settings})
    else:
        _show(rows)
        output.print(f"best: approach {best.approach}, threshold {best.threshold:.3f}")
        files = [events, subscriptions, *records.command_line()]
        for line in _usage(settings, shlex.join(files), save_to):
            output.print(line, markup=False, soft_wrap=True)
    rejects.conclude()


def _chosen(found: list[Candidate], wanted: list[str]) -> list[Candidate]:
    """The candidates of some approaches, by their names or by what is set for them."""
    from likewise.errors import BuildError

    known = {name: each for each in reversed(found) for name in (each.settings["approach"], each.name)}
    known |= {each.name: each for each in found}
    if unknown := [name for name in wanted if name not in known]:
        raise BuildError(f"{unknown[0]!r} cannot be tried", hint=f"here are: {', '.join(each.name for each in found)}")
    return [known[name] for name in dict.fromkeys(wanted)] or found


def recommended(
    told: Mapping[str, Any], threshold: float, spaces: list[str], meaning: MeaningOptions = _USUAL
) -> dict[str, Any]:
    """The settings of a candidate, with what it was given.

    >>> recommended({"approach": "contrast"}, 0.25, ["wordnet"])
    {'approach': 'contrast', 'threshold': 0.25, 'space': ['wordnet']}
    >>> recommended({"approach": "contrast", "measure": "embedding"}, 0.56789, ["wordnet"])
    {'approach': 'contrast', 'threshold': 0.5678, 'measure': 'embedding'}
    >>> recommended({"approach": "evidence", "background": None}, 0.5, [])
    {'approach': 'evidence', 'threshold': 0.5, 'background': 'none'}
    """
    from likewise.semantics import needs_space

    approach, named = told["approach"], told.get("measure")
    # Rounded down, so that the event at the very threshold stays in.
    found: dict[str, Any] = {"approach": approach, "threshold": floor(threshold * 1e4) / 1e4}
    if named is not None:
        found["measure"] = named
    if spaces and approach != "exact" and (named is None or needs_space(named)):
        found["space"] = spaces
    if approach != "evidence":
        return found
    # The first events are the background unless it is given or switched off.
    if "background" in told:
        found["background"] = OFF
    elif meaning.background is not None:
        found["background"] = str(meaning.background.absolute())
    if meaning.glossary is not None:
        found["glossary"] = str(meaning.glossary.absolute())
    return found


def _usage(settings: dict[str, Any], files: str, saved: Path | None) -> Iterator[str]:
    """How to use what was found: as a command line, in Python and as a file."""
    yield f"command line: likewise match {files} {command_line(settings)}"
    yield f"Python:       {python_line(settings)}"
    yield f"settings:     --settings {saved}" if saved is not None else "settings:     --save FILE keeps them"


def python_line(settings: Mapping[str, Any]) -> str:
    """The engine that has these settings; `events` are those that it will get.

    >>> python_line({"approach": "contrast", "threshold": 0.56, "measure": "embedding"})
    "Engine(approach='contrast', threshold=0.56, measure=measure('embedding'))"
    >>> python_line({"approach": "evidence", "threshold": 0.5, "space": ["wordnet"]})
    "Engine(approach='evidence', threshold=0.5, spaces=['wordnet'], background=Background.of(events))"
    """
    names = {"space": "spaces"}
    told = [f"{names.get(name, name)}={value!r}" for name, value in settings.items() if name in _PLAIN]
    named = settings.get("measure", "evidence" if "glossary" in settings else None)
    if named is not None:
        inner = [repr(named), *([f"spaces={settings['space']!r}"] if "space" in settings else ())]
        inner += [f"glossary=Glossary.from_file(Path({settings['glossary']!r}))"] if "glossary" in settings else []
        told.append(f"measure=measure({', '.join(inner)})")
    if settings["approach"] == "evidence":
        told.append(f"background={_background(settings.get('background'))}")
    return f"Engine({', '.join(told)})"


def _background(given: str | None) -> str:
    """The background in Python: none, words, a sample, or the events themselves."""
    from likewise.matching import Background

    if given is None or given == OFF:
        return "Background.of(events)" if given is None else "None"
    if isinstance(read_background(Path(given)), Background):
        return f"Background.of(read_events({given!r}, unique_ids=False))"
    return f"Competitors.from_text(Path({given!r}).read_text(), source={given!r})"


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
