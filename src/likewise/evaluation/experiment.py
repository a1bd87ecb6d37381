"""What an experiment is: a module under `experiments` with a name `experiment`, run by `likewise evaluate`."""

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
    """What a user may say to any experiment; each reads what it needs."""

    spaces: tuple[str, ...] = ()
    """Names or paths of spaces; empty leaves the choice to the experiment."""
    data: Path | None = None
    """The folder of the data sets; None for the usual place."""
    quick: bool = False
    out: Path | None = None
    """Where charts and tables go; None for nowhere."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What only this experiment knows, from `--set key=value`."""
    say: Callable[[str], None] = _silent
    """Tells the user what goes on."""


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """One table, a row per thing that was compared, and what to know when reading it."""

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
    """A name, a line of what it shows, and how it runs."""

    name: str
    summary: str
    run: Callable[[ExperimentSettings], Sequence[ExperimentReport]]
    knows: tuple[str, ...] = ()
    """The names that `--set` may give it."""
    guide: str = ""
    """What `likewise evaluate NAME --help` says of it: what it shows, what `--set` takes, how it is called."""

    def check(self, settings: ExperimentSettings) -> None:
        """Refuse, before a run of minutes, what would have no effect."""
        unknown = [name for name in settings.options if name not in self.knows]
        if unknown:
            known = ", ".join(self.knows) or "it has none"
            raise BuildError(f"{self.name} knows no option {unknown[0]!r}", hint=known)


def experiments() -> dict[str, Experiment]:
    """Every experiment of this package by its name."""
    package = import_module("likewise.evaluation.experiments")
    found = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        made = getattr(import_module(f"{package.__name__}.{module}"), "experiment", None)
        if isinstance(made, Experiment):
            found[made.name] = made
    return found


def find_experiment(name: str) -> Experiment:
    """The experiment of a name, or an error that names the nearest."""
    known = experiments()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise BuildError(f"no experiment {name!r}", hint=f"{guess}known: {', '.join(known)}")
    return known[name]
