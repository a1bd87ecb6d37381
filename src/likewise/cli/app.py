"""Assembles the `likewise` command from the modules under `commands`.

A command module has `register(app)` and imports heavy parts (numba, pyspark) inside its functions,
so that `likewise --help` answers at once.
"""

from __future__ import annotations

import logging
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any

import typer

import likewise
from likewise._kernel_cache import are_kept
from likewise.cli import commands
from likewise.cli.ending import is_not_py4j_noise
from likewise.cli.output import PLAIN, errors
from likewise.cli.trouble import explained

USAGE = 2
INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells."""

PANELS = {
    "Match and detect": ("match", "detect", "why", "check", "tune"),
    "Events": ("convert", "vocabulary", "themes"),
    "What words mean": ("relate", "nearest", "space", "train"),
    "Live broker": ("serve", "publish", "subscribe", "tail", "history", "subscriptions"),
    "Federation": ("node", "overlay"),
    "On Spark": ("stream", "join"),
    "Demo and measurements": ("demo", "evaluate", "bench", "dataset"),
}
"""The headings of `likewise --help`; a command that is not listed appears under the last."""

COMPILED = ("detect", "match", "serve", "stream", "tune")
"""Commands that compile code on the first run, which takes a while; the result is cached."""

HELP = """Subscribe in your own words and get the right events, each with a score and a reason.

`likewise demo` shows how it works. With your own events: `likewise match EVENTS SUBSCRIPTIONS --explain`
"""


def build() -> typer.Typer:
    """The application with the commands of every module under `likewise.cli.commands`."""
    app = typer.Typer(
        name="likewise",
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in sorted(_command_modules(), key=lambda name: name.rpartition(".")[2]):
        import_module(module).register(app)
    _arrange(app)
    return app


def main() -> None:
    """Run the command; a user error prints one message and exits with code 2."""
    logging.getLogger().addFilter(is_not_py4j_noise)
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process, and return its exit code."""
    try:
        code = _application()(arguments, prog_name="likewise", standalone_mode=False)
    except SystemExit as end:
        # Typer exits with 1 when a pipe closes early (`likewise … | head`), which is no error.
        code = 0 if isinstance(end.__context__, BrokenPipeError) else end.code
    except Exception as error:  # anything but a user error is raised again
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # a class that Typer does not export
            return USAGE
        user_error = explained(error)
        if user_error is None:
            raise
        errors.print(f"error: {user_error}", style="red", highlight=False, markup=False, soft_wrap=True)
        code = USAGE
    if code == INTERRUPTED:
        errors.print("stopped")
    return code if isinstance(code, int) else 0


@cache
def _application() -> Any:
    """The Click command, with placeholders in its help: arguments as in the usage line, none for flags."""
    command: Any = typer.main.get_command(build())
    order = {name: at for at, name in enumerate(name for names in PANELS.values() for name in names)}
    names = sorted(command.commands, key=lambda name: order.get(name, len(order)))
    command.commands = {name: command.commands[name] for name in names}
    _name_parameters(command)
    if PLAIN:
        import typer.rich_utils as rich_help

        rich_help.COLOR_SYSTEM = None
    return command


def _name_parameters(command: Any) -> None:
    context = typer.Context(command, help_option_names=["-h", "--help"])
    for parameter in [*command.params, command.get_help_option(context)]:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
            parameter.display_type_rich = _no_type
            if parameter.required and parameter.nargs == 1:
                parameter.get_usage_pieces = partial(_usage_name, parameter.metavar)
        elif parameter.metavar is None:
            kind = parameter.bare_type()
            parameter.metavar = "" if parameter.is_flag else _METAVARS.get(kind)
    for subcommand in getattr(command, "commands", {}).values():
        _name_parameters(subcommand)


def _no_type(ctx: object) -> None:  # noqa: ARG001  # replaces a method of Typer
    return None


def _usage_name(name: str, ctx: object) -> list[str]:  # noqa: ARG001  # replaces a method of Typer
    return [name]


_METAVARS = {
    "str": "TEXT",
    "list[str]": "TEXT",
    "int": "N",
    "float": "NUMBER",
    "path": "PATH",
    "Path": "PATH",
    "list[Path]": "PATH",
}
"""The placeholders of option values in help."""


def _command_modules() -> Iterator[str]:
    """The full names of all modules under `commands`."""
    modules = pkgutil.walk_packages(commands.__path__, f"{commands.__name__}.")
    return (module.name for module in modules if not module.ispkg)


def _arrange(app: typer.Typer) -> None:
    """Put commands and groups of commands under their headings."""
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    entries: list[Any] = [*app.registered_commands, *app.registered_groups]
    for entry in entries:
        entry.rich_help_panel = panels.get(str(entry.name), list(PANELS)[-1])


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"likewise {likewise.__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    is_help = not {"-h", "--help"}.isdisjoint(sys.argv)
    if not is_help and context.invoked_subcommand in COMPILED and errors.is_terminal and not are_kept():
        errors.print("first run: compiling for this machine, which takes up to a minute")


_options.__doc__ = HELP
