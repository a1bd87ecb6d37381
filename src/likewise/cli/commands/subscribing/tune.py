"""`likewise tune`: find the approach and threshold that fit labelled pairs of a user."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from likewise.cli.commands.events.vocabulary import read_background
from likewise.cli.guard import guard
from likewise.cli.meaning import OFF, command_line, settings_text, settled, spark_options
from likewise.cli.options import (
    DeadLetters,
    Json,
    MeaningOptions,
    NoSample,
    OwnGlossary,
    Sample,
    Settings,
    Spaces,
    grouped,
)
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.input import Rejects, event_batches, read_subscriptions
from likewise.cli.reading.records import Records
from likewise.files import write_whole

if TYPE_CHECKING:
    from likewise.evaluation.quality.tuning import Candidate, Tuned
    from likewise.events import Event

_PLAIN = ("approach", "threshold", "space")
"""Settings that are also plain arguments in Python."""
_DEFAULTS = MeaningOptions()


@dataclass(frozen=True, slots=True)
class TriedOptions:
    """What `tune` tries: `MeaningOptions` with several approaches and without a threshold."""

    panel: ClassVar[str] = "Meaning"
    approach: Annotated[
        list[str] | None, typer.Option(help="Try only this approach; may be repeated. [default: all]")
    ] = None
    measure: Annotated[
        str | None, typer.Option(help="Try only approaches that use this measure, such as esa or embedding.")
    ] = None
    space: Spaces = None
    background: Sample = None
    no_background: NoSample = False
    glossary: OwnGlossary = None
    settings: Settings = None

    def settled(self) -> MeaningOptions:
        """The options as `MeaningOptions`, with the settings file applied."""
        names = ("measure", "space", "background", "no_background", "glossary", "settings")
        return settled(MeaningOptions(**{name: getattr(self, name) for name in names}))


def register(app: typer.Typer) -> None:
    """Add the `tune` command."""
    app.command("tune")(tune)


@grouped
def tune(
    events: Annotated[
        str, typer.Argument(help="File of events (JSON, CSV, Parquet, logs, CloudEvents or RDF), or - for stdin.")
    ],
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    records: Records,
    labels: Annotated[
        Path, typer.Option(help="Labelled pairs as TSV or JSON lines: subscription, event id, relevant (1 or 0).")
    ],
    tried: TriedOptions,
    chart: Annotated[
        list[Path] | None,
        typer.Option(help="Write a precision and recall chart: .html, .png or .svg; may be repeated."),
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", help="Write the best settings here, for `--settings` of other commands.")
    ] = None,
    dead_letters: DeadLetters = None,
    as_json: Json = False,
) -> None:
    """Find the approach and threshold with the best F1 on pairs that you labelled.

    A label is a line such as `hot<tab>event-7<tab>1`: the subscription, the event, and whether it should match.

    Example: `likewise tune events.jsonl subscriptions.lw --labels labels.tsv --chart tuning.html`
    """
    from likewise.charts import check_chart
    from likewise.evaluation.quality.labels import read_labels
    from likewise.evaluation.quality.tuning import tune as search

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
    labelled = read_labels(labels)
    all_events = [event for batch in event_batches(events, rejects, records=records) for event in batch]
    spaces = meaning.space or _built_spaces()
    names = tried.approach or ([meaning.approach] if meaning.approach else [])
    chosen = _chosen(_candidates(all_events, spaces, meaning), names)
    results = search(
        all_events, interests, labelled, tried=chosen, say=lambda message: errors.print(message, style="dim")
    )
    _draw(results, chart or ())
    best = results[0]
    winner = next(candidate.settings for candidate in chosen if candidate.name == best.approach)
    settings = recommended(winner, best.threshold, spaces, meaning)
    if save_to is not None:
        write_whole(save_to, settings_text(settings))
    if as_json:
        print_json(_plain(results) | {"settings": settings})
    else:
        _show(_rows(results))
        output.print(f"best: approach {best.approach}, threshold {best.threshold:.3f}")
        files = [events, subscriptions, *records.command_line()]
        for line in _usage(settings, shlex.join(files), save_to):
            output.print(line, markup=False, soft_wrap=True)
    rejects.conclude()


def _candidates(events: list[Event], spaces: list[str], meaning: MeaningOptions) -> list[Candidate]:
    """All approaches that can be tried with these options."""
    from likewise.evaluation.quality.tuning import candidates
    from likewise.semantics import Glossary

    return candidates(
        events,
        spaces=spaces,
        glossary=None if meaning.glossary is None else Glossary.from_file(meaning.glossary),
        measure_name=meaning.measure,
        background=spark_options(meaning).get("background"),
        learning=not meaning.no_background,
    )


def _draw(results: Sequence[Tuned], paths: Iterable[Path]) -> None:
    """Draw precision and recall of all candidates."""
    from likewise.charts import save
    from likewise.evaluation.charts import precision_recall

    for path in paths:
        curves = {result.approach: result.curve for result in results}
        save(precision_recall(curves, title="Precision and recall"), path)


def _rows(results: Sequence[Tuned]) -> list[dict[str, Any]]:
    columns = ("approach", "f1", "threshold", "precision", "recall")
    return [{name: getattr(result, name) for name in columns} for result in results]


def _plain(results: Sequence[Tuned]) -> dict[str, Any]:
    rows = _rows(results)
    by_subscription = {name: {"f1": f1, "threshold": at} for name, (f1, at) in results[0].subscriptions.items()}
    return {"best": rows[0], "tried": rows, "subscriptions": by_subscription}


def _chosen(available: list[Candidate], names: list[str]) -> list[Candidate]:
    """The candidates with these names or approaches; without names, all."""
    from likewise.errors import BuildError

    known = {name: option for option in reversed(available) for name in (option.settings["approach"], option.name)}
    known |= {option.name: option for option in available}
    if unknown := [name for name in names if name not in known]:
        hint = f"available here: {', '.join(option.name for option in available)}"
        raise BuildError(f"{unknown[0]!r} cannot be tried", hint=hint)
    return [known[name] for name in dict.fromkeys(names)] or available


def recommended(
    candidate: Mapping[str, Any], threshold: float, spaces: list[str], meaning: MeaningOptions = _DEFAULTS
) -> dict[str, Any]:
    """The settings of a candidate, with the threshold, spaces, background and glossary that it was tried with.

    >>> recommended({"approach": "contrast"}, 0.25, ["wordnet"])
    {'approach': 'contrast', 'threshold': 0.25, 'space': ['wordnet']}
    >>> recommended({"approach": "contrast", "measure": "embedding"}, 0.56789, ["wordnet"])
    {'approach': 'contrast', 'threshold': 0.5678, 'measure': 'embedding'}
    >>> recommended({"approach": "evidence", "background": None}, 0.5, [])
    {'approach': 'evidence', 'threshold': 0.5, 'background': 'none'}
    """
    from likewise.semantics import needs_space

    approach, measure = candidate["approach"], candidate.get("measure")
    # Rounded down, so that an event exactly at the threshold still matches.
    settings: dict[str, Any] = {"approach": approach, "threshold": floor(threshold * 1e4) / 1e4}
    if measure is not None:
        settings["measure"] = measure
    if spaces and approach != "exact" and (measure is None or needs_space(measure)):
        settings["space"] = spaces
    if approach != "evidence":
        return settings
    # The first events are the background unless it is given or switched off.
    if "background" in candidate:
        settings["background"] = OFF
    elif meaning.background is not None:
        settings["background"] = str(meaning.background.absolute())
    if meaning.glossary is not None:
        settings["glossary"] = str(meaning.glossary.absolute())
    return settings


def _usage(settings: dict[str, Any], files: str, saved: Path | None) -> Iterator[str]:
    """How to use the settings: on the command line, in Python and as a file."""
    yield f"command line: likewise match {files} {command_line(settings)}"
    yield f"Python:       {python_line(settings)}"
    yield (
        f"settings:     --settings {saved}" if saved is not None else "settings:     --save FILE writes them to a file"
    )


def python_line(settings: Mapping[str, Any]) -> str:
    """Python code for an engine with these settings; `events` is a sample of the stream.

    >>> python_line({"approach": "contrast", "threshold": 0.56, "measure": "embedding"})
    "Engine(approach='contrast', threshold=0.56, measure=measure('embedding'))"
    >>> python_line({"approach": "evidence", "threshold": 0.5, "space": ["wordnet"]})
    "Engine(approach='evidence', threshold=0.5, spaces=['wordnet'], background=Background.of(events))"
    """
    names = {"space": "spaces"}
    arguments = [f"{names.get(name, name)}={value!r}" for name, value in settings.items() if name in _PLAIN]
    measure = settings.get("measure", "evidence" if "glossary" in settings else None)
    if measure is not None:
        inner = [repr(measure), *([f"spaces={settings['space']!r}"] if "space" in settings else ())]
        inner += [f"glossary=Glossary.from_file(Path({settings['glossary']!r}))"] if "glossary" in settings else []
        arguments.append(f"measure=measure({', '.join(inner)})")
    if settings["approach"] == "evidence":
        arguments.append(f"background={_background(settings.get('background'))}")
    return f"Engine({', '.join(arguments)})"


def _background(background: str | None) -> str:
    """Python code for the background: None, a vocabulary, a sample file, or the events themselves."""
    from likewise.matching import Background

    if background is None or background == OFF:
        return "Background.of(events)" if background is None else "None"
    if isinstance(read_background(Path(background)), Background):
        return f"Background.of(read_events({background!r}, unique_ids=False))"
    return f"Competitors.from_text(Path({background!r}).read_text(), source={background!r})"


def _built_spaces() -> list[str]:
    """The paths of all built spaces."""
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
