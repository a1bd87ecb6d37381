"""`likewise check`: validate subscriptions and print them in their canonical form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._input import called, read_text
from likewise.cli._output import errors, print_json
from likewise.errors import BuildError, InputError, LikewiseError, ParseError

if TYPE_CHECKING:
    from likewise.language import Subscription

_BAD = 2


def register(app: typer.Typer) -> None:
    app.command("check")(check)


@dataclass
class _Report:
    """What was found in one file."""

    source: str
    subscriptions: list[Subscription] = field(default_factory=list)
    errors: list[LikewiseError] = field(default_factory=list)


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files of subscriptions; `-` reads stdin.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and notes only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document with structure and errors.")] = False,
) -> None:
    """Validate subscriptions and print them in their canonical form.

    Every mistake is shown on stderr with line, column, a caret and what was expected; the exit code is then 2.

    Example: `echo 'alert: {power} {device~: laptop~} threshold 0.6' | likewise check -`
    """
    reports = [_read(name) for name in files]
    notes = _notes(reports)
    if as_json:
        print_json(_document(reports, notes))
    else:
        _show(reports, notes, quiet=quiet)
    if any(report.errors for report in reports):
        raise typer.Exit(_BAD)


def _read(name: str) -> _Report:
    from likewise.language import circle, parse_lenient

    source = called(name)
    try:
        text = read_text(name)
    except InputError as error:
        return _Report(source, [], [error])
    good, mistakes = parse_lenient(text, source)
    report = _Report(source, good, list(mistakes))
    if not good and not mistakes:
        report.errors.append(InputError("there is no subscription in it", source=source, hint="it is empty"))
    names = circle(good)
    if names:
        report.errors.append(
            InputError(
                "patterns refer to each other in a circle: " + " → ".join(names),
                source=source,
                hint="a pattern can refer only to others that do not rest on it",
            )
        )
    else:
        report.errors += _unworkable(good, source)
    return report


def _unworkable(subscriptions: list[Subscription], source: str) -> list[LikewiseError]:
    """Patterns that are well written and yet can never be decided, such as a negation without a window."""
    from likewise.language import Composite, references

    known = {one.name: one for one in subscriptions}
    patterns = [one for one in subscriptions if isinstance(one.body, Composite)]
    if not patterns:
        return []
    from likewise.composite import build_plan
    from likewise.composite._catalogue import closure

    found: list[LikewiseError] = []
    for one in patterns:
        # What an engine must know already is not judged here.
        if all(name in known for other in (one, *closure(one, known)) for name in references(other)):
            try:
                build_plan(one, known)
            except BuildError as error:
                found.append(InputError(error.message, source=source, hint=error.hint))
    return found


def _notes(reports: list[_Report]) -> list[str]:
    """Names that patterns refer to and that no file defines: an engine must know them already."""
    from likewise.language import references

    known = {one.name for report in reports for one in report.subscriptions}
    return [
        f"{report.source}: `{one.name}` refers to `{name}`, which is not defined here"
        for report in reports
        for one in report.subscriptions
        for name in references(one)
        if name not in known
    ]


def _show(reports: list[_Report], notes: list[str], *, quiet: bool) -> None:
    from likewise.language import format_file

    for report in reports:
        if not quiet:
            head = f"# {report.source}\n" if len(reports) > 1 else ""
            typer.echo(head + format_file(report.subscriptions), nl=False)
        for error in report.errors:
            errors.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    for note in notes:
        errors.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)


def _document(reports: list[_Report], notes: list[str]) -> dict[str, Any]:
    from likewise.language import format_subscription, structure

    return {
        "subscriptions": [
            {"source": report.source, "text": format_subscription(one), **structure(one)}
            for report in reports
            for one in report.subscriptions
        ],
        "errors": [_error(report.source, error) for report in reports for error in report.errors],
        "notes": notes,
    }


def _error(source: str, error: LikewiseError) -> dict[str, Any]:
    found: dict[str, Any] = {"source": source, "message": error.message, "hint": error.hint}
    if isinstance(error, ParseError):
        return found | {"line": error.line, "column": error.column, "expected": list(error.expected)}
    return found | {"line": getattr(error, "line", None)}
