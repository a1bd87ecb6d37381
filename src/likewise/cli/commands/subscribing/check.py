"""`likewise check`: validate subscriptions and print them in their canonical form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.output import errors, print_json
from likewise.cli.reading.input import called, read_text
from likewise.errors import BuildError, InputError, LikewiseError, MissingError, ParseError

if TYPE_CHECKING:
    from likewise.language import Placed, Subscription

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
    from likewise.language import parse_placed

    source = called(name)
    try:
        text = read_text(name)
    except InputError as error:
        return _Report(source, [], [error])
    placed, mistakes = parse_placed(text, source)
    report = _Report(source, [], list(mistakes))
    if not placed and not mistakes:
        report.errors.append(InputError("there is no subscription in it", source=source, hint="it is empty"))
    circles, bad = _circles(placed)
    refused = circles + _refused([each for each in placed if each.subscription.name not in bad])
    report.errors += [each.error(error.message, hint=error.hint) for each, error in refused]
    bad |= {each.subscription.name for each, _ in refused}
    report.subscriptions = [each.subscription for each in placed if each.subscription.name not in bad]
    report.errors.sort(key=lambda error: (getattr(error, "line", None) or 0, getattr(error, "column", 0)))
    return report


def _circles(placed: list[Placed]) -> tuple[list[tuple[Placed, LikewiseError]], set[str]]:
    """Patterns that refer to each other in a circle, one mistake each, and the names of all that rest on them."""
    from likewise.language import circle, references

    found: list[tuple[Placed, LikewiseError]] = []
    bad: set[str] = set()
    while named := circle([each.subscription for each in placed if each.subscription.name not in bad]):
        first = next(each for each in placed if each.subscription.name in named)
        message = "patterns refer to each other in a circle: " + " → ".join(named)
        hint = "a pattern can refer only to others that do not rest on it"
        found.append((first, BuildError(message, hint=hint)))
        bad.update(named)
        while (
            more := {each.subscription.name for each in placed if not bad.isdisjoint(references(each.subscription))}
            - bad
        ):
            bad |= more
    return found, bad


def _refused(placed: list[Placed]) -> list[tuple[Placed, LikewiseError]]:
    """The subscriptions that are well written and that `match` or `detect` would refuse all the same."""
    known = {each.subscription.name: each.subscription for each in placed}
    found = ((each, _refusal(each.subscription, known)) for each in placed)
    return [(each, error) for each, error in found if error is not None]


def _refusal(subscription: Subscription, known: dict[str, Subscription]) -> LikewiseError | None:
    from likewise.composite import build_plan, closure
    from likewise.language import Composite, Member, members, references
    from likewise.matching import Matcher
    from likewise.testing import TableMeasure

    # A measure that knows no word: whether there is a space is nothing that a file of subscriptions can say.
    matcher = Matcher(TableMeasure({}))
    body = subscription.body
    try:
        if not isinstance(body, Composite):
            matcher.add(body, options=subscription.options)
            return None
        for leaf in members(body.root):
            if isinstance(leaf, Member):
                matcher.add(leaf.profile)
        # What an engine must know already is not judged here.
        scope = (subscription, *closure(subscription, known))
        if all(name in known for other in scope for name in references(other)):
            build_plan(subscription, known)
    except MissingError:
        return None
    except LikewiseError as error:
        return error
    return None


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
