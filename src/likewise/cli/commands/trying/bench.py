"""`likewise bench`: run a benchmark of the source repository."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from likewise.cli.options import Json
from likewise.cli.output import errors, output
from likewise.errors import LikewiseError, MissingError

Rows = list[dict[str, Any]]


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    name: Annotated[str, typer.Argument(help="Name of a benchmark; `list` shows all.")],
    quick: Annotated[bool, typer.Option(help="Run with smaller sizes.")] = False,
    as_json: Json = False,
) -> None:
    """Measure speed and memory, and compare with other tools in the same run.

    The benchmarks are in a checkout of the source repository. `likewise bench list` shows them all.

    Example: `likewise bench events --quick`
    """
    folder = _folder()
    names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    if name == "list":
        typer.echo(json.dumps(names) if as_json else "\n".join(names))
        return
    if name not in names:
        raise LikewiseError(f"there is no benchmark {name!r}", hint="one of: " + ", ".join(names))
    rows = _load(folder / f"{name}.py")(quick=quick)
    if as_json:
        typer.echo(json.dumps({"bench": name, "machine": _machine(), "date": str(date.today()), "rows": rows}))
    else:
        _show(name, rows)
    if any(str(row.get("note", "")).startswith("failed: ") for row in rows):
        raise typer.Exit(1)


def _folder() -> Path:
    """The repository's bench folder: LIKEWISE_BENCH, or beside the source of an editable install."""
    candidates = [Path(os.environ["LIKEWISE_BENCH"])] if "LIKEWISE_BENCH" in os.environ else []
    candidates += [Path(__file__).resolve().parents[5] / "bench", Path.cwd() / "bench"]
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise MissingError("the benchmarks were not found", hint="run this in a checkout of the source repository")


def _load(path: Path) -> Callable[..., Rows]:
    spec = importlib.util.spec_from_file_location(f"likewise_bench_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MissingError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return cast(Callable[..., Rows], module.run)


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def _show(name: str, rows: Rows) -> None:
    from rich.table import Table

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=f"{name} on {_machine()}, {date.today()}", title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in {"what", "unit", "note"} else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    output.print(table)
    if not rows:
        errors.print("no rows: the benchmark measured nothing")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
