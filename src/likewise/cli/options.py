"""Options that several commands have: the same name, the same meaning and the same help everywhere.

A group is a frozen dataclass whose fields are options; a command takes whole groups, and `grouped` spreads them.
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
    typer.Option(
        "--dead-letters", "--dead-letter", help="Append bad records to this file, with their reasons, and go on."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Spaces = Annotated[list[str] | None, typer.Option("--space", help="Space for `~`, by name or path; may be repeated.")]
Settings = Annotated[
    Path | None, typer.Option(help="File of these options, as `likewise tune --save` writes it; options override it.")
]
Sample = Annotated[
    Path | None, typer.Option(help="A sample of the stream, instead of the first events: JSON lines, or words.")
]
NoSample = Annotated[
    bool, typer.Option("--no-background", help="Do not learn from the first events how common answers are.")
]
OwnGlossary = Annotated[Path | None, typer.Option(help="Your own abbreviations and synonyms.")]


@dataclass(frozen=True, slots=True)
class MeaningOptions:
    """How words are compared."""

    panel: ClassVar[str] = "Meaning"
    approach: Annotated[str | None, typer.Option(help="exact, approximate, thematic, …")] = None
    measure: Annotated[str | None, typer.Option(help="Measure for `~`, such as esa or embedding.")] = None
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Lowest score of a match.")] = None
    space: Spaces = None
    background: Sample = None
    no_background: NoSample = False
    glossary: OwnGlossary = None
    settings: Settings = None


@dataclass(frozen=True, slots=True)
class Mappings:
    """How predicates and tuples are paired."""

    panel: ClassVar[str] = "Meaning"
    aggregation: Annotated[str | None, typer.Option(help="joint, cautious, geometric, product or mean.")] = None
    top: Annotated[int, typer.Option(min=1, help="Mappings per match.")] = 1
    distinct: Annotated[bool, typer.Option("--distinct", help="A tuple answers one predicate only.")] = False


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How events are read."""

    panel: ClassVar[str] = "Input"
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more events at the end of the file, as `tail -f` does.")
    ] = False
    dead_letters: DeadLetters = None


@dataclass(frozen=True, slots=True)
class Timing:
    """What patterns do with time, and how much they hold."""

    panel: ClassVar[str] = "Time and limits"
    lateness: Annotated[str, typer.Option(help="How late events may come, such as `30 s` or `5 minutes`.")] = "0 s"
    max_ahead: Annotated[
        str, typer.Option("--max-ahead", "--max-jump", help="Events further ahead than this are refused.")
    ] = "366 days"
    until: Annotated[str | None, typer.Option(help="Go on to this time after the last event (ISO 8601).")] = None
    limit: Annotated[int, typer.Option(min=1, help="Instances held per pattern, at most.")] = 100_000
    full: Annotated[str, typer.Option(help="At the limit: `drop oldest` or `refuse`.")] = "drop oldest"
    relatedness: Annotated[
        float | None, typer.Option(min=0, max=1, help="Lowest relatedness in `a.x ~ b.x`; depends on the measure.")
    ] = None
    two_step: Annotated[bool, typer.Option("--two-step", help="Use the two-step method, to compare.")] = False
    snapshot: Annotated[
        Path | None, typer.Option(help="Go on from this snapshot, and write it at the end; time stays open.")
    ] = None


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Where Spark runs, if it is wanted."""

    panel: ClassVar[str] = "Spark"
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark: for more than one machine can hold.")] = False
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None

    @property
    def wanted(self) -> bool:
        """Whether the command runs on Spark."""
        return bool(self.spark or self.master or self.remote)


def chosen(group: Any) -> list[str]:
    """The options of a group that differ from their defaults, as a user writes them.

    >>> chosen(Timing(until="2026-01-01", two_step=True))
    ['--until', '--two-step']
    """
    return [
        f"--{field.name.replace('_', '-')}"
        for field in fields(group)
        if getattr(group, field.name) not in (field.default, [])
    ]


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """A command with the fields of its groups as options of its own."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @wraps(function)
    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = _gathered(kind, given)
        function(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer looks at
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _gathered(kind: Any, given: dict[str, Any]) -> Any:
    """A group of what was given, taken out of it; a group may hold others."""
    hints = get_type_hints(kind)
    inner = {field.name: hints[field.name] for field in fields(kind)}
    return kind(**{n: _gathered(hint, given) if is_dataclass(hint) else given.pop(n) for n, hint in inner.items()})


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
    """A command in which `--explain full` says more than `--explain`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base does, once the two words are one option."""
        joined: list[str] = []
        for word in args:
            if joined and joined[-1] == "--explain" and word in ("full", "short"):
                joined[-1] = "--explain-full" if word == "full" else "--explain"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)
