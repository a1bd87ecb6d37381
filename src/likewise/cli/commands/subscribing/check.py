"""`likewise check`: validate subscriptions and print them in their canonical form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.output import errors, print_json
from likewise.cli.reading.input import display_name, read_text
from likewise.errors import BuildError, InputError, LikewiseError, MissingError, ParseError

if TYPE_CHECKING:
    from likewise.language import Placed, Subscription

_BAD = 2


def register(app: typer.Typer) -> None:
    app.command("check")(check)


@dataclass
class _Report:
    """The subscriptions and errors of one file."""

    source: str
    subscriptions: list[Subscription] = field(default_factory=list)
    errors: list[LikewiseError] = field(default_factory=list)


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files of subscriptions, or - for stdin.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and notes only.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with the structure and the errors.")
    ] = False,
) -> None:
    """Validate subscriptions and print them in canonical form.

    Every mistake is shown with line, column, a caret and what was expected; the exit code is then 2.

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
    from likewise.language import parse_placed

    source = display_name(name)
    try:
        text = read_text(name)
    except InputError as error:
        return _Report(source, [], [error])
    placed, mistakes = parse_placed(text, source)
    report = _Report(source, [], list(mistakes))
    if not placed and not mistakes:
        report.errors.append(
            InputError("there is no subscription in it", source=source, hint="write one, such as {type = parking}")
        )
    circles, bad = _circles(placed)
    refused = circles + _refused([item for item in placed if item.subscription.name not in bad])
    report.errors += [item.error(error.message, hint=error.hint) for item, error in refused]
    bad |= {item.subscription.name for item, _ in refused}
    report.subscriptions = [item.subscription for item in placed if item.subscription.name not in bad]
    report.errors.sort(key=lambda error: (getattr(error, "line", None) or 0, getattr(error, "column", 0)))
    return report


def _circles(placed: list[Placed]) -> tuple[list[tuple[Placed, LikewiseError]], set[str]]:
    """One error for each circle of references between patterns, and the names of all patterns that depend on one."""
    from likewise.language import circle, references

    circles: list[tuple[Placed, LikewiseError]] = []
    bad: set[str] = set()
    while named := circle([item.subscription for item in placed if item.subscription.name not in bad]):
        first = next(item for item in placed if item.subscription.name in named)
        message = "patterns refer to each other in a circle: " + " → ".join(named)
        hint = "a pattern can refer only to patterns that do not depend on it"
        circles.append((first, BuildError(message, hint=hint)))
        bad.update(named)
        while (
            more := {item.subscription.name for item in placed if not bad.isdisjoint(references(item.subscription))}
            - bad
        ):
            bad |= more
    return circles, bad


def _refused(placed: list[Placed]) -> list[tuple[Placed, LikewiseError]]:
    """The subscriptions that parse but that `match` or `detect` would refuse, with the errors."""
    known = {item.subscription.name: item.subscription for item in placed}
    refusals = ((item, _refusal(item.subscription, known)) for item in placed)
    return [(item, error) for item, error in refusals if error is not None]


def _refusal(subscription: Subscription, known: dict[str, Subscription]) -> LikewiseError | None:
    from likewise.composite import build_plan, closure
    from likewise.language import Composite, profiles_of, references
    from likewise.matching import Matcher
    from likewise.testing import TableMeasure

    # An empty measure: whether a space is built does not make a subscription valid or invalid.
    matcher = Matcher(TableMeasure({}))
    body = subscription.body
    try:
        if not isinstance(body, Composite):
            matcher.add(body, options=subscription.options)
            return None
        for profile in profiles_of(body):
            matcher.add(profile)
        # References to other files cannot be checked here.
        scope = (subscription, *closure(subscription, known))
        if all(name in known for other in scope for name in references(other)):
            build_plan(subscription, known)
    except MissingError:
        return None
    except LikewiseError as error:
        return error
    return None


def _notes(reports: list[_Report]) -> list[str]:
    """A note for each name that a pattern refers to and no file defines: it must be subscribed elsewhere."""
    from likewise.language import references

    known = {subscription.name for report in reports for subscription in report.subscriptions}
    return [
        f"{report.source}: `{subscription.name}` refers to `{name}`, which is not defined here"
        for report in reports
        for subscription in report.subscriptions
        for name in references(subscription)
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
            {"source": report.source, "text": format_subscription(subscription), **structure(subscription)}
            for report in reports
            for subscription in report.subscriptions
        ],
        "errors": [_error(report.source, error) for report in reports for error in report.errors],
        "notes": notes,
    }


def _error(source: str, error: LikewiseError) -> dict[str, Any]:
    document: dict[str, Any] = {"source": source, "message": error.message, "hint": error.hint}
    if isinstance(error, ParseError):
        return document | {"line": error.line, "column": error.column, "expected": list(error.expected)}
    return document | {"line": getattr(error, "line", None)}
