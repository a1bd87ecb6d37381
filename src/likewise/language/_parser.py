"""Text to subscriptions, patterns and events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from likewise.errors import ParseError
from likewise.language._model import Composite, Member, Profile, Subscription
from likewise.language._scanner import MOST_NESTED, Scanner
from likewise.language._source import Source
from likewise.language._statements import Statement, StatementReader

_STARTS_ANYWHERE = re.compile(r"[^\S\n]*+(?:\w[\w.\-]*+|\"[^\"\n]*+\")\s*+:\s*+[{(]")
_STARTS_OUTSIDE = re.compile(r"[^\S\n]*+(?:(?:\w[\w.\-]*+|\"[^\"\n]*+\")\s*+:|\{|\??event\s|\w[\w.\-]*+\s*+=\s*+[({])")
_BLANK_LINE = re.compile(r"[^\S\n]*+\n")
_BRACKETS = re.compile(r"[\"“][^\"”\n]*+[\"”]?|[{(\[]|[})\]]|\n")


def parse(text: str, *, source: str = "<text>") -> list[Subscription]:
    """All subscriptions of a text; the first mistake raises.

    >>> [alert] = parse("alert: {power} {device~= laptop~, floor > 2} threshold 0.6")
    >>> alert.name, alert.options.threshold, len(alert.body.predicates)
    ('alert', 0.6, 2)
    """
    subscriptions, errors = parse_lenient(text, source, most_errors=1)
    if errors:
        raise errors[0]
    return subscriptions


def parse_lenient(
    text: str, source: str = "<text>", *, most_errors: int | None = None
) -> tuple[list[Subscription], list[ParseError]]:
    """The good subscriptions of a text, and an error for each bad one.

    >>> good, errors = parse_lenient("a: {type= x}\\nb: {type= }\\nc: {type= y}")
    >>> [one.name for one in good], [error.line for error in errors]
    (['a', 'c'], [2])
    """
    origin = Source(text, source)
    try:
        origin.check()
    except ParseError as error:
        return [], [error]
    reader = StatementReader(Scanner(origin))
    statements, errors = list[Statement](), list[ParseError]()
    for outcome in _outcomes(reader):
        if isinstance(outcome, ParseError):
            errors.append(outcome)
            if most_errors is not None and len(errors) >= most_errors:
                return [], errors
        else:
            statements.append(outcome)
    good, clashes = _name(statements, origin)
    return good, sorted([*errors, *clashes], key=lambda error: (error.line, error.column))


def parse_subscription(text: str, *, source: str = "<text>") -> Subscription:
    """The one subscription of a text, named "s1" if it has no name."""
    found = parse(text, source=source)
    if len(found) != 1:
        message = "there is no subscription here" if not found else f"{len(found)} subscriptions where one was expected"
        raise Source(text, source).error(0, message, expected=("one subscription",))
    return found[0]


def parse_pattern(text: str, *, source: str = "<text>") -> Composite:
    """The pattern of a text, without a name or options.

    >>> parse_pattern("a then b within 30 minutes").root.within
    1800000000
    """
    found = parse_subscription(text, source=source)
    origin = Source(text, source)
    if found.options != type(found.options)():
        raise origin.error(0, "a pattern alone has no options", hint="leave out threshold, top and approach")
    return Composite(Member(found.body)) if isinstance(found.body, Profile) else found.body


def _outcomes(reader: StatementReader) -> Iterator[Statement | ParseError]:
    """Each statement, or what is wrong with it."""
    scan = reader.scanner
    while scan.peek().kind != "end":
        start = scan.peek().start
        try:
            yield reader.statement()
        except ParseError as error:
            stopped = scan.pos
            # Thousands of errors must not keep the frames they came from.
            yield reader.explain(error.with_traceback(None), start)
            scan.pos = _next_start(scan.text, start, stopped)
        except RecursionError:
            hint = f"nest at most {MOST_NESTED} levels"
            yield scan.source.error(start, "nested too deeply for the room left on the stack", hint=hint)
            scan.pos = _next_start(scan.text, start, start + 1)


def _next_start(text: str, start: int, stopped: int) -> int:
    """Where reading can go on after a mistake: at a line that clearly starts a subscription.

    `name: {` at the start of a line does so anywhere, since braces do not nest; a mere `name:` could be a
    predicate and does so only outside brackets; and a blank line past the mistake ends every statement.
    """
    depth = 0
    for found in _BRACKETS.finditer(text, start):
        sign = found[0]
        if sign in "{([":
            depth += 1
        elif sign in "})]":
            depth -= 1
        elif sign == "\n":
            after = found.end()
            if _STARTS_ANYWHERE.match(text, after):
                return after
            outside = depth <= 0 and _STARTS_OUTSIDE.match(text, after)
            if after > stopped and (outside or _BLANK_LINE.match(text, after)):
                return after
    return len(text)


def _name(statements: list[Statement], origin: Source) -> tuple[list[Subscription], list[ParseError]]:
    """Subscriptions with their names; those without get `s` and their number in the text."""
    given = {statement.name for statement in statements if statement.name is not None}
    seen, good, clashes = set[str](), list[Subscription](), list[ParseError]()
    for number, (name, body, options, start) in enumerate(statements, 1):
        label = name or _free_name(number, given)
        if label in seen:
            clashes.append(origin.error(start, f"the name `{label}` is taken already", hint="give each its own name"))
            continue
        seen.add(label)
        good.append(Subscription(label, body, options))
    return good, clashes


def _free_name(number: int, given: set[str]) -> str:
    name = f"s{number}"
    while name in given:
        name += "_"
    return name


__all__ = ["parse", "parse_lenient", "parse_pattern", "parse_subscription"]
