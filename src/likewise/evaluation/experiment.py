"""Experiments: each is a module under `experiments` with an object `experiment`, run by `likewise evaluate`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from likewise.errors import BuildError

Cell: TypeAlias = str | float | int | None
Row: TypeAlias = Mapping[str, Cell]


def _silent(_message: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """The options of a user; each experiment reads those that it needs."""

    spaces: tuple[str, ...] = ()
    """Names or paths of spaces; empty for the experiment's default."""
    data: Path | None = None
    """The folder of the data sets; None for the default folder."""
    quick: bool = False
    out: Path | None = None
    """The folder for charts and tables; None to write none."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of this experiment only, from `--set key=value`."""
    say: Callable[[str], None] = _silent
    """Receives progress messages."""


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """A table of results, with notes for the reader."""

    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """All columns, in order of first appearance.

        >>> ExperimentReport("t", [{"a": 1}, {"b": 2}]).columns
        ['a', 'b']
        """
        return list(dict.fromkeys(column for row in self.rows for column in row))


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its name, a summary, and the function that runs it."""

    name: str
    summary: str
    run: Callable[[ExperimentSettings], Sequence[ExperimentReport]]
    knows: tuple[str, ...] = ()
    """The names of its options for `--set`."""
    guide: str = ""
    """The text of `likewise evaluate NAME --help`: what it shows, the options of `--set`, an example."""

    def check(self, settings: ExperimentSettings) -> None:
        """Raise an error for unknown options before a run of minutes starts."""
        unknown = [name for name in settings.options if name not in self.knows]
        if unknown:
            known = ", ".join(self.knows)
            hint = f"its options are {known}" if known else "it has no options"
            raise BuildError(f"{self.name} has no option {unknown[0]!r}", hint=hint)


def experiments() -> dict[str, Experiment]:
    """All experiments by name."""
    package = import_module("likewise.evaluation.experiments")
    by_name = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        experiment = getattr(import_module(f"{package.__name__}.{module}"), "experiment", None)
        if isinstance(experiment, Experiment):
            by_name[experiment.name] = experiment
    return by_name


def find_experiment(name: str) -> Experiment:
    """The experiment with this name; the error for an unknown name suggests the nearest."""
    known = experiments()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise BuildError(f"no experiment {name!r}", hint=f"{guess}known: {', '.join(known)}")
    return known[name]
