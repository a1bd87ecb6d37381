"""Experiments: each is a module under `experiments` with an object `experiment`, run by `likewise evaluate`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, TypeVar

from likewise.charts import Spec, save
from likewise.errors import BuildError

Cell: TypeAlias = str | float | int | None
Row: TypeAlias = Mapping[str, Cell]
N = TypeVar("N", int, float)


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

    def numbers(self, name: str, default: Iterable[N]) -> list[N]:
        """The numbers of an option, separated by commas; they have the type of the default."""
        numbers, text = list(default), self.options.get(name)
        return numbers if text is None else [type(numbers[0])(part) for part in text.split(",")]

    def names(self, name: str, default: Iterable[str]) -> list[str]:
        """The names of an option, separated by semicolons."""
        text = self.options.get(name)
        return list(default) if text is None else [part.strip() for part in text.split(";") if part.strip()]

    def draw(self, name: str, spec: Spec) -> None:
        """Write a chart as HTML, PNG and SVG, if there is a folder for charts."""
        if self.out is not None:
            for ending in ("html", "png", "svg"):
                save(spec, self.out / f"{name}.{ending}")


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
