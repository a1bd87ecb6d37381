"""Puts the command together: every public module here registers its own commands.

A command module has `register(app)` and imports heavy parts (numba, pyspark) inside its functions,
so that `likewise --help` answers at once.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import Annotated

import typer

import likewise
from likewise.cli._output import errors
from likewise.errors import LikewiseError

USAGE = 2


def build() -> typer.Typer:
    """The whole application, with the commands of every module of this package."""
    app = typer.Typer(
        name="likewise",
        help="Semantic publish/subscribe and composite events: subscribe in your own words.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_options)
    for module in sorted(info.name for info in pkgutil.iter_modules(_package_path())):
        if not module.startswith("_"):
            import_module(f"likewise.cli.{module}").register(app)
    return app


def main() -> None:
    """Run the command; a user's mistake is one clear message and exit code 2."""
    try:
        build()()
    except LikewiseError as error:
        errors.print(f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(USAGE)
    except BrokenPipeError:
        # The reader of our output went away (`likewise … | head`): nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(130)


def _package_path() -> list[str]:
    return list(import_module("likewise.cli").__path__)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"likewise {likewise.__version__}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Semantic publish/subscribe and composite events: subscribe in your own words."""
