"""Reads themes and predicates: `{power, computers}, {device~= laptop~, floor > 2}`.

[000 sec 3.4] and [004 sec 5.1]; [003 sec 2.1] writes `profile(…)`.
"""

from __future__ import annotations

import re

from likewise.events import Value
from likewise.language.literals import beyond_numbers, literal, ordered_literal
from likewise.language.model import Operator, Predicate, Profile, Range
from likewise.language.reading.scanner import shown
from likewise.language.reading.terms import ATTRIBUTE, STOPS, VALUE, Term, TermReader, meaning

OPERATORS: dict[str, Operator] = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    ":": Operator.EQ,
    "!=": Operator.NE,
    "≠": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    "≤": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
    "≥": Operator.GE,
}
_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_RISING = (Operator.LT, Operator.LE)
_CLOSED = (Operator.LE, Operator.GE)
_OPERATOR = r"==?|:|!=|<=?|>=?|[≤≥≠]"

# Matches the common predicate in one step; any other is read piece by piece.
_PREDICATE = re.compile(rf"\s*+({ATTRIBUTE})(~?)\s*+({_OPERATOR})\s*+({VALUE})(~?)\s*+([,}})])")
_TAGS = re.compile(rf"\{{([^:'‘{STOPS.replace(',', '')}]*+)\}}")
_OPERATOR_HERE = re.compile(rf"\s*+({_OPERATOR})")
_RANGE_HERE = re.compile(r"\s*+in\s*+([\[(])")
_OPENING = re.compile(r"profile\s*+\(|event\s*+\(")


class ProfileReader(TermReader):
    """Reads one theme and one set of predicates at the scanner's position."""

    __slots__ = ()

    def profile(self) -> Profile:
        """`{theme}, {predicates}`, `{predicates}` or `profile(predicates)`."""
        theme = self.theme() if self.skip() == "{" else ()
        predicates = self._predicates()
        self.extra_brace()
        return Profile(predicates, theme)

    def theme(self) -> tuple[str, ...]:
        """Read the theme before the predicates, () if there is none; stops before the next set."""
        scan, start = self.scanner, self.scanner.pos
        tags = self.tags()
        if tags is None:
            return ()
        end = scan.pos
        if not self.go_to_next_set():
            if tags:
                expected = ("`{` and predicates after the theme",)
                scan.fail("a theme alone is not a subscription", at=end, expected=expected)
            scan.fail("there are no predicates here", at=start, expected=("predicates such as `type= parking~`",))
        return tuple(dict.fromkeys(tags))

    def tags(self) -> list[str] | None:
        """Read the theme tags of the set that starts here; None, with nothing read, if it holds predicates."""
        scan, start = self.scanner, self.scanner.pos
        match = _TAGS.match(self.text, start)
        if match is None:
            return None if _PREDICATE.match(self.text, start + 1) else self._careful_tags() or None
        scan.pos = match.end()
        tags = [" ".join(tag.split()) for tag in match[1].split(",")] if match[1].strip() else []
        if "" in tags:
            scan.fail("a theme tag is missing", at=start, expected=("a theme tag between the commas",))
        return tags

    def go_to_next_set(self) -> bool:
        """Skip a comma to the set after a theme; returns whether there is one."""
        end = self.scanner.pos
        if self.skip() == ",":
            self.scanner.pos += 1
        if self.skip() == "{":
            return True
        self.scanner.pos = end
        return False

    def _careful_tags(self) -> list[str]:
        """Read theme tags one by one; empty, with nothing read, if the set holds predicates."""
        scan, start, tags = self.scanner, self.scanner.pos, list[str]()
        scan.pos += 1
        while True:
            tag = self.attribute("a theme tag or an attribute")
            end = self.skip()
            if end not in (",", "}") or tag.approximate:
                if tags:
                    hint = "write `{tag, tag}, {attribute= value}`"
                    scan.fail("theme tags and predicates are mixed in one set", hint=hint)
                scan.pos = start
                return []
            tags.append(tag.text)
            scan.pos += 1
            if end == "}":
                return tags

    def _predicates(self) -> tuple[Predicate, ...]:
        scan, text = self.scanner, self.text
        closer = self.open()
        predicates = []
        while True:
            match = _PREDICATE.match(text, scan.pos)
            predicate = None if match is None else _common(match)
            if match is None or predicate is None:
                predicate = self._careful()
            else:
                scan.pos = match.end() - 1
            predicates.append(predicate)
            if self.ends_set(closer):
                return tuple(predicates)

    def open(self) -> str:
        """Enter the set that starts here; returns the bracket that will close it."""
        scan = self.scanner
        if self.skip() == "{":
            scan.pos += 1
            return "}"
        match = _OPENING.match(self.text, scan.pos)
        if match is None:
            scan.unexpected(("`{` and predicates",))
        scan.pos = match.end()
        return ")"

    def ends_set(self, closer: str) -> bool:
        """Skip the comma or bracket after an entry; returns whether it was the bracket."""
        end = self.skip()
        if end not in (",", closer):
            self.missing("this set is not closed here", ("`,`", f"`{closer}`"), signs='([])!~=<>:"“')
        self.scanner.pos += 1
        return end == closer

    def extra_brace(self) -> None:
        """Skip one extra closing brace, as printed in [000 sec 3.3, 3.4]."""
        before = self.scanner.pos
        self.scanner.pos = self.scanner.pos + 1 if self.skip() == "}" else before

    def _careful(self) -> Predicate:
        """Read a predicate piece by piece: quoted terms, comparisons, ranges, and all errors."""
        left = self.attribute()
        ranged = self._range_start(left)
        if ranged is not None:
            return self._range(*ranged)
        if left.approximate and not _OPERATOR_HERE.match(self.text, self.scanner.pos):
            hint = f"write `{left.text[:40]}~= value~`"
            at = self.scanner.pos - 1
            self.scanner.fail("`~` marks a term and is not an operator", at=at, expected=("`=`",), hint=hint)
        operator, _ = self.operator(left.text)
        right = self.value()
        if operator not in _FLIPPED:
            value = meaning(right, ordered=False)
            return Predicate(left.text, operator, value, left.approximate, right.approximate)
        if _OPERATOR_HERE.match(self.text, self.scanner.pos):
            return self._chain(left, operator, right)
        if not left.quoted and not right.quoted and _value_comes_first(left.text, right.text):
            if _is_number(right.text):
                self.scanner.fail("both sides are numbers", at=left.start, expected=("an attribute on one side",))
            left, right, operator = right, left, _FLIPPED[operator]
        self.exact(right, f"a value after `{operator}`")
        return Predicate(left.text, operator, self.compared(right), left.approximate)

    def operator(self, attribute: str) -> tuple[Operator, int]:
        """Read the operator after an attribute; also returns its position."""
        match = _OPERATOR_HERE.match(self.text, self.scanner.pos)
        if match is None:
            expected = ("`=`", "`!=`", "`<`", "`<=`", "`>`", "`>=`", "`in [low, high]`")
            self.missing(f"the attribute {shown(attribute)} has no operator", expected, signs="()[]!")
        self.scanner.pos = match.end()
        return OPERATORS[match[1]], match.start(1)

    def _range_start(self, left: Term) -> tuple[Term, str] | None:
        """Read the attribute and the opening bracket of `attribute in [`; None if there is no range."""
        scan = self.scanner
        if left.quoted or left.approximate:
            match = _RANGE_HERE.match(self.text, scan.pos)
            if match is not None:
                scan.pos = match.end()
                return left, match[1]
        elif self.text[scan.pos : scan.pos + 1] in ("[", "(") and left.text.endswith(" in"):
            scan.pos += 1
            return left._replace(text=left.text.removesuffix(" in")), self.text[scan.pos - 1]
        return None

    def _range(self, attribute: Term, bracket: str) -> Predicate:
        """Read `temperature in [10, 20)`, from after the bracket."""
        scan, start = self.scanner, self.scanner.pos - 1
        low = self.compared(self.exact_value("an end of a range"))
        if self.skip() != ",":
            self.missing("a range has two ends", ("`,` and the high end",))
        scan.pos += 1
        high = self.compared(self.exact_value("an end of a range"))
        end = self.skip()
        if end not in ("]", ")"):
            self.missing("this range is not closed", ("`]`", "`)`"))
        scan.pos += 1
        return self._ranged(attribute, Range(low, high, bracket == "[", end == "]"), start)

    def _chain(self, low: Term, operator: Operator, attribute: Term) -> Predicate:
        """Read `10 <= temperature < 20`, from after the attribute."""
        second, at = self.operator(attribute.text)
        high = self.exact_value("an end of a range")
        if second not in _FLIPPED or (operator in _RISING) != (second in _RISING):
            expected = ("two signs that point the same way, as in `10 <= attribute < 20`",)
            self.scanner.fail("this is not a range", at=at, expected=expected)
        if not attribute.text:
            self.scanner.fail("an attribute cannot be empty", at=attribute.start)
        ends = (self.compared(self.exact(low, "an end of a range")), self.compared(high))
        closed = (operator in _CLOSED, second in _CLOSED)
        if operator not in _RISING:
            ends, closed = ends[::-1], closed[::-1]
        return self._ranged(attribute, Range(*ends, *closed), low.start)

    def _ranged(self, attribute: Term, span: Range, start: int) -> Predicate:
        scan = self.scanner
        if _kind(span.low) != _kind(span.high):
            scan.fail(
                "the ends of a range must have the same type", at=start, expected=("two numbers", "two timestamps")
            )
        if span.low > span.high:  # type: ignore[operator]  # of the same type, as just checked
            scan.fail("the low end of this range is above its high end", at=start, hint="swap them")
        if span.low == span.high and not (span.low_closed and span.high_closed):
            scan.fail("this range is empty", at=start, hint="close both ends: `[`, `]`")
        return Predicate(attribute.text, Operator.IN, span, attribute.approximate)


def starts_profile(text: str, pos: int) -> bool:
    """Whether a profile starts exactly here."""
    return text[pos : pos + 1] == "{" or _OPENING.match(text, pos) is not None


def _common(match: re.Match[str]) -> Predicate | None:
    """The predicate of a quick match; None if it must be read piece by piece."""
    attribute, loose_attribute, sign, value, loose_value, _ = match.groups()
    operator, attribute, value = OPERATORS[sign], " ".join(attribute.split()), " ".join(value.split())
    if ": " in value or value[-1] == ":":
        return None
    if operator in _FLIPPED:
        if loose_value or _is_number(attribute) or beyond_numbers(attribute) or beyond_numbers(value):
            return None
        return Predicate(attribute, operator, ordered_literal(value), loose_attribute == "~")
    return Predicate(attribute, operator, literal(value), loose_attribute == "~", loose_value == "~")


def _value_comes_first(left: str, right: str) -> bool:
    """Whether a comparison has its value first: `10 < x`; `inf < 10` is about an attribute."""
    return _is_number(left) or (beyond_numbers(left) and not _is_number(right))


def _is_number(text: str) -> bool:
    return isinstance(ordered_literal(text), int | float)


def _kind(value: Value) -> str:
    """The type by which a value can be compared."""
    if isinstance(value, bool):
        return "truth value"
    return "number" if isinstance(value, int | float) else type(value).__name__
