"""Options that several commands share, with the same name, meaning and help everywhere.

A group is a frozen dataclass whose fields are options. A command takes groups as parameters, and `grouped` turns their
fields into options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

DeadLetters = Annotated[
    Path | None,
    typer.Option(help="Append bad records, with reasons, to this file instead of reporting them."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Spaces = Annotated[
    list[str] | None,
    typer.Option("--space", help="Space for `~`, by name or path; may be repeated. [default: the largest built]"),
]
Settings = Annotated[
    Path | None,
    typer.Option(help="File with these options, from `likewise tune --save`; the command line overrides it."),
]
Sample = Annotated[
    Path | None,
    typer.Option(
        help="Learn how common words are from this file (events, or a vocabulary), not from the first events."
    ),
]
NoSample = Annotated[
    bool, typer.Option("--no-background", help="Do not learn from the first events how common words are.")
]
OwnGlossary = Annotated[
    Path | None, typer.Option(help="File with your abbreviations and synonyms, one `FLRP = flow rate of pump` a line.")
]


@dataclass(frozen=True, slots=True)
class MeaningOptions:
    """How words are compared."""

    panel: ClassVar[str] = "Meaning"
    approach: Annotated[
        str | None,
        typer.Option(
            help="evidence, exact, approximate, thematic, hybrid, concept, clustered or contrast. [default: evidence]"
        ),
    ] = None
    measure: Annotated[str | None, typer.Option(help="Measure for `~`, such as esa or embedding.")] = None
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Lowest score of a match. [default: 0.5, with evidence]")
    ] = None
    space: Spaces = None
    background: Sample = None
    no_background: NoSample = False
    glossary: OwnGlossary = None
    settings: Settings = None


@dataclass(frozen=True, slots=True)
class Mappings:
    """How predicates are mapped to tuples, and their scores combined."""

    panel: ClassVar[str] = "Meaning"
    aggregation: Annotated[
        str | None,
        typer.Option(help="How the scores of predicates are combined: joint, cautious, geometric, product or mean."),
    ] = None
    top: Annotated[int, typer.Option(min=1, help="Mappings per match.")] = 1
    distinct: Annotated[bool, typer.Option("--distinct", help="Let a tuple answer one predicate only.")] = False


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How events are read."""

    panel: ClassVar[str] = "Input"
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more events at the end of the file, like `tail -f`.")
    ] = False
    dead_letters: DeadLetters = None


@dataclass(frozen=True, slots=True)
class Timing:
    """How patterns treat event time, and how many instances they hold."""

    panel: ClassVar[str] = "Time and limits"
    lateness: Annotated[
        str, typer.Option(help="How late events may arrive, such as `30 s` or `5 minutes`; later ones are refused.")
    ] = "0 s"
    max_ahead: Annotated[str, typer.Option(help="Refuse events that are further ahead of the last one than this.")] = (
        "366 days"
    )
    until: Annotated[
        str | None, typer.Option(help="Advance event time to this time after the last event (ISO 8601).")
    ] = None
    limit: Annotated[int, typer.Option(min=1, help="Most instances that a pattern holds.")] = 100_000
    full: Annotated[str, typer.Option(help="At the limit: `drop oldest` or `refuse`.")] = "drop oldest"
    relatedness: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Lowest relatedness for `a.x ~ b.x`. [default: depends on the measure]"),
    ] = None
    two_step: Annotated[
        bool, typer.Option("--two-step", help="Use the two-step method of paper 003, for comparison.")
    ] = False
    snapshot: Annotated[
        Path | None,
        typer.Option(help="Continue from this file if it exists, and write it at the end; open windows stay open."),
    ] = None


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """Where Spark runs; by default on all cores of this machine."""

    panel: ClassVar[str] = "Spark"
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None


@dataclass(frozen=True, slots=True)
class OnSpark(SparkAddress):
    """Whether and where to run on Spark."""

    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark, for data that one machine cannot hold.")] = False

    @property
    def wanted(self) -> bool:
        """Whether the command runs on Spark."""
        return bool(self.spark or self.master or self.remote)


def chosen(group: Any) -> list[str]:
    """The names of a group's options that differ from their defaults.

    >>> chosen(Timing(until="2026-01-01", two_step=True))
    ['--until', '--two-step']
    """
    return [
        f"--{field.name.replace('_', '-')}"
        for field in fields(group)
        if getattr(group, field.name) not in (field.default, [])
    ]


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are groups are replaced by the options in them."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @wraps(function)
    def command(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = _gathered(kind, values)
        function(**values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _gathered(kind: Any, values: dict[str, Any]) -> Any:
    """Build a group from the given options and remove them there; a group may contain groups."""
    hints = get_type_hints(kind)
    inner = {field.name: hints[field.name] for field in fields(kind)}
    return kind(**{n: _gathered(hint, values) if is_dataclass(hint) else values.pop(n) for n, hint in inner.items()})


def _options(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    out: list[inspect.Parameter] = []
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            out += _options(hints[field.name])
            continue
        [option] = hints[field.name].__metadata__
        option.rich_help_panel = kind.panel
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        out.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
        )
    return out


class Explaining(typer.core.TyperCommand):
    """A command that accepts `--explain full` as well as `--explain`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse after joining the two words into one option."""
        joined: list[str] = []
        for word in args:
            if joined and joined[-1] == "--explain" and word in ("full", "short"):
                joined[-1] = "--explain-full" if word == "full" else "--explain"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)
