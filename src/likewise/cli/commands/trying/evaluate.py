"""`likewise evaluate`: run an experiment and print its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.evaluation.experiment import Cell, ExperimentReport


WIDE = 160


class EvaluateCommand(TyperCommand):
    """A command whose help also describes the experiment that is named."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Remember the words, since help is printed before the name is parsed."""
        ctx.meta["words"] = list(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Print the usual help, then the guide of the experiment that is named."""
        from likewise.evaluation.experiment import experiments

        super().format_help(ctx, formatter)
        named = [word for word in ctx.meta.get("words", ()) if not word.startswith("-")]
        experiment = experiments().get(named[0]) if named else None
        if experiment is not None:
            short = f"{experiment.summary}\n--set takes: {', '.join(experiment.knows) or 'nothing'}"
            output.print(f"{experiment.name}: {experiment.guide or short}\n", highlight=False, markup=False)


def register(app: typer.Typer) -> None:
    """Add the `evaluate` command."""
    app.command("evaluate", cls=EvaluateCommand)(evaluate)


def evaluate(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Name of an experiment; `list` shows all.")],
    *,
    space: Annotated[list[str] | None, typer.Option(help="Space by name or path; may be repeated.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets. [LIKEWISE_DATA]")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run with smaller sizes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for charts and tables.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an option of the experiment; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run an experiment and compare its figures with those of the papers.

    `likewise evaluate list` shows all; `likewise evaluate approximate --help` explains one and its options.

    Example: `likewise evaluate relatedness --space wordnet`
    """
    from likewise.evaluation.experiment import ExperimentSettings, experiments, find_experiment

    if name == "list":
        _list({experiment.name: experiment.summary for experiment in experiments().values()}, as_json=as_json)
        return
    chosen = ExperimentSettings(
        spaces=tuple(space or ()),
        data=data,
        quick=quick,
        out=out,
        options=dict(map(_pair, settings or ())),
        say=lambda message: errors.print(message, style="dim"),
    )
    experiment = find_experiment(name)
    try:
        reports = experiment.run(chosen)
    except ValueError as error:
        # Experiments parse only the numbers of --set.
        if chosen.options and str(error).startswith(("invalid literal", "could not convert")):
            raise BuildError(f"--set: {error}", hint=f"{name} takes {', '.join(experiment.knows)}") from None
        raise
    if as_json:
        print_json({"experiment": name, "reports": reports})
    else:
        _show(reports)


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise BuildError(f"--set takes KEY=VALUE, not {text!r}", hint="for example --set seed=2")
    return key, value


def _list(summaries: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(summaries)
        return
    for name, summary in summaries.items():
        output.print(f"{name:<14} {summary}")


def _show(reports: Sequence[ExperimentReport]) -> None:
    from rich.console import Console
    from rich.table import Table

    # A pipe has no width: long lines are better there than truncated figures.
    console = output if output.is_terminal else Console(width=WIDE, highlight=False)
    for report in reports:
        table = Table(title=report.title, title_justify="left")
        for column in report.columns:
            numeric = all(not isinstance(row.get(column), str) for row in report.rows)
            table.add_column(column, justify="right" if numeric else "left")
        for row in report.rows:
            table.add_row(*(_cell(row.get(column)) for column in report.columns))
        console.print(table)
        for note in report.notes:
            console.print(note, style="dim")


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
