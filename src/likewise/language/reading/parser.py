"""Parses text into subscriptions and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from likewise.errors import ParseError
from likewise.language.model import Composite, Member, Profile, Subscription
from likewise.language.reading.scanner import MAX_NESTING, Scanner
from likewise.language.reading.source import Source
from likewise.language.reading.statements import Statement, StatementReader

_STARTS_ANYWHERE = re.compile(r"[^\S\n]*+(?:\w[\w.\-]*+|\"[^\"\n]*+\")\s*+:\s*+[{(]")
_STARTS_OUTSIDE = re.compile(r"[^\S\n]*+(?:(?:\w[\w.\-]*+|\"[^\"\n]*+\")\s*+:|\{|\??event\s|\w[\w.\-]*+\s*+=\s*+[({])")
_STARTS_AT_MARGIN = re.compile(r"(?:\w[\w.\-]*+|\"[^\"\n]*+\")[^\S\n]*+:")
_LABEL = re.compile(r"\s*+(\w[\w.\-]*+)\s*+:")
_QUOTE = re.compile(r"'([^']+)'|`([^`]+)`")
_BLANK_LINE = re.compile(r"[^\S\n]*+\n")
_BRACKETS = re.compile(r"[\"“][^\"”\n]*+[\"”]?|[{(\[]|[})\]]|\n")


def parse(text: str, *, source: str = "<text>") -> list[Subscription]:
    """Parse all subscriptions of a text; the first error is raised.

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
    """Parse a text into its valid subscriptions, and one error for each invalid one.

    >>> good, errors = parse_lenient("a: {type= x}\\nb: {type= }\\nc: {type= y}")
    >>> [subscription.name for subscription in good], [error.line for error in errors]
    (['a', 'c'], [2])
    """
    placed, errors = parse_placed(text, source, most_errors=most_errors)
    return [item.subscription for item in placed], errors


class Placed(NamedTuple):
    """A subscription and its position in the text."""

    subscription: Subscription
    source: Source
    start: int
    end: int

    def error(self, message: str, *, hint: str | None = None) -> ParseError:
        """An error with a caret: at the first word that the message quotes, or at the beginning."""
        text = self.source.code[self.start : self.end]
        quoted = (a or b for a, b in _QUOTE.findall(message))
        at = next((place for word in quoted if word != self.subscription.name and (place := text.find(word)) >= 0), 0)
        return self.source.error(self.start + at, message, hint=hint)


def parse_placed(
    text: str, source: str = "<text>", *, most_errors: int | None = None
) -> tuple[list[Placed], list[ParseError]]:
    """Like `parse_lenient`, with the position of each subscription."""
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
    """Parse the single subscription of a text, named "s1" if it has no name."""
    subscriptions = parse(text, source=source)
    if len(subscriptions) != 1:
        count = len(subscriptions)
        message = f"{count} subscriptions where one was expected" if count else "there is no subscription here"
        raise Source(text, source).error(0, message, expected=("one subscription",))
    return subscriptions[0]


def parse_pattern(text: str, *, source: str = "<text>") -> Composite:
    """Parse a pattern without a name or options.

    >>> parse_pattern("a then b within 30 minutes").root.within
    1800000000
    """
    subscription = parse_subscription(text, source=source)
    origin = Source(text, source)
    if subscription.options != type(subscription.options)():
        raise origin.error(0, "a pattern alone has no options", hint="remove threshold, top and approach")
    return Composite(Member(subscription.body)) if isinstance(subscription.body, Profile) else subscription.body


def _outcomes(reader: StatementReader) -> Iterator[Statement | ParseError]:
    """Yield each statement, or its error."""
    scan = reader.scanner
    while scan.peek().kind != "end":
        start = scan.peek().start
        try:
            yield reader.statement()
        except ParseError as error:
            stopped = scan.pos
            following = _next_start(scan.text, start, stopped)
            # Without tracebacks, so that thousands of errors do not keep their frames.
            flaw = None if "has no end" in error.message else _unclosed(scan, start, following)
            yield flaw or reader.explain(error.with_traceback(None), start)
            scan.pos = following
        except RecursionError:
            hint = f"nest at most {MAX_NESTING} levels"
            yield scan.source.error(start, "nested too deeply for the room left on the stack", hint=hint)
            scan.pos = _next_start(scan.text, start, start + 1)


def _unclosed(scan: Scanner, start: int, end: int) -> ParseError | None:
    """The error for a brace that is not closed before the next statement."""
    open_braces: list[int] = []
    for bracket in _BRACKETS.finditer(scan.text, start, end):
        if bracket[0] == "{":
            open_braces.append(bracket.start())
        elif bracket[0] == "}" and open_braces:
            open_braces.pop()
    if not open_braces:
        return None
    named = _LABEL.match(scan.text, start)
    of = f" of `{named[1]}`" if named is not None else ""
    return scan.source.error(open_braces[-1], f"this brace{of} is never closed", expected=("`}`",))


def _next_start(text: str, start: int, stopped: int) -> int:
    """Where to resume after an error: at a line that clearly starts a subscription.

    `name: {` at the start of a line always does, since braces do not nest. A mere `name:` could be a predicate, so it
    counts only outside brackets, or at the margin after a line that does not continue. A blank line after the error
    ends every statement.
    """
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        sign = bracket[0]
        if sign in "{([":
            depth += 1
        elif sign in "})]":
            depth -= 1
        elif sign == "\n":
            after = bracket.end()
            if _STARTS_ANYWHERE.match(text, after):
                return after
            if depth > 0 and _STARTS_AT_MARGIN.match(text, after) and not _continues(text, bracket.start()):
                return after
            outside = depth <= 0 and _STARTS_OUTSIDE.match(text, after)
            if after > stopped and (outside or _BLANK_LINE.match(text, after)):
                return after
    return len(text)


def _continues(text: str, end: int) -> bool:
    """Whether the line that ends here continues on the next."""
    line = text[text.rfind("\n", 0, end) + 1 : end].rstrip()
    return line.endswith((",", "{", "(", "[", "=", ";"))


def _name(statements: list[Statement], origin: Source) -> tuple[list[Placed], list[ParseError]]:
    """Name the subscriptions; unnamed ones get `s` and their number in the text."""
    taken = {statement.name for statement in statements if statement.name is not None}
    seen, good, clashes = set[str](), list[Placed](), list[ParseError]()
    ends = [*(statement.start for statement in statements[1:]), len(origin.text)]
    for number, (name, body, options, start) in enumerate(statements, 1):
        label = name or _free_name(number, taken)
        if label in seen:
            clashes.append(origin.error(start, f"the name `{label}` is taken already", hint="choose different names"))
            continue
        seen.add(label)
        good.append(Placed(Subscription(label, body, options), origin, start, ends[number - 1]))
    return good, clashes


def _free_name(number: int, taken: set[str]) -> str:
    name = f"s{number}"
    while name in taken:
        name += "_"
    return name
