"""Reads the clauses after a profile or pattern: conditions between members, consumption, options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from likewise.events import Value
from likewise.language.literals import literal
from likewise.language.members import labels
from likewise.language.model import (
    AGGREGATIONS,
    APPROACHES,
    CONTRAST,
    UNCONTRASTED,
    Binding,
    Composite,
    Consumption,
    Field,
    Operator,
    Options,
    Pattern,
    Profile,
)
from likewise.language.reading.profiles import OPERATORS
from likewise.language.reading.scanner import Scanner
from likewise.language.words import CLAUSES, KEYWORDS, suggestion

_SPELLINGS = {"top-k": "top", "top_k": "top"}


class ClauseReader:
    """Reads clauses in any order, each at most once."""

    __slots__ = ("consumption", "options", "scanner", "seen", "where")

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.seen: dict[str, int] = {}
        self.where: list[tuple[Binding, int]] = []
        self.consumption: Consumption | None = None
        self.options: dict[str, Any] = {}

    def read(self, kind: str, at: int) -> None:
        """Read one clause, after its keyword."""
        clause = _SPELLINGS.get(kind, kind)
        if clause in self.seen:
            self.scanner.fail(f"`{clause}` is given twice", at=at, hint="keep one of them")
        self.seen[clause] = at
        getattr(self, f"_{clause}")()

    def body(self, body: Profile | Pattern) -> Profile | Composite:
        """The body with its clauses, after checks."""
        if isinstance(body, Profile):
            for clause in ("where", "consume"):
                if clause in self.seen:
                    self.scanner.fail(
                        f"`{clause}` is for patterns", at=self.seen[clause], hint="put predicates inside the braces"
                    )
            return body
        self._check_bindings(body)
        return Composite(body, tuple(binding for binding, _ in self.where), self.consumption)

    def check_approach(self, profiles: Iterable[Profile]) -> None:
        """Refuse `approach exact` for terms that are marked as approximate."""
        if self.options.get("approach") != "exact":
            return
        for profile in profiles:
            if any(predicate.attribute_approximate or predicate.value_approximate for predicate in profile.predicates):
                self.scanner.fail(
                    "`approach exact` contradicts the `~` in the predicates",
                    at=self.seen["approach"],
                    hint="remove one of them",
                )

    def given_options(self) -> Options:
        """The options that were given."""
        return Options(**self.options) if self.options else _NONE

    def _threshold(self) -> None:
        at, threshold = self.scanner.peek().start, self._number("a threshold from 0 to 1")
        if not 0 <= threshold <= 1:
            self.scanner.fail(f"{threshold:g} is not a threshold", at=at, expected=("a threshold from 0 to 1",))
        self.options["threshold"] = threshold

    def _number(self, description: str) -> float:
        """Read a number; on failure the error points to its start."""
        scan, at = self.scanner, self.scanner.peek().start
        number = scan.value(ordered=False)
        if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) > sys.float_info.max:
            scan.fail("this is not a valid number", at=at, expected=(description,))
        return float(number)

    def _top(self) -> None:
        self.options["top_k"] = self.scanner.whole("a number of mappings")

    def _approach(self) -> None:
        """`thematic`, `thematic+contrast`, or `contrast` or `evidence` alone."""
        scan = self.scanner
        approach = self._one_of((*APPROACHES, CONTRAST))
        if plus := scan.accept("+"):
            if approach in (*UNCONTRASTED, CONTRAST):
                scan.fail(f"`{approach}` takes no `+{CONTRAST}`", at=plus.start)
            approach += "+" + scan.require(CONTRAST).text
        self.options["approach"] = approach

    def _aggregation(self) -> None:
        self.options["aggregation"] = self._one_of(AGGREGATIONS)

    def _one_of(self, names: tuple[str, ...]) -> str:
        scan, token = self.scanner, self.scanner.peek()
        if token.kind != "word" or token.text not in names:
            scan.unexpected(tuple(f"`{name}`" for name in names), candidates=names)
        return scan.take().text

    def _consume(self) -> None:
        scan = self.scanner
        if scan.accept("unique"):
            self.consumption = Consumption.UNIQUE
        elif scan.accept("all"):
            self.consumption = Consumption.ALL_PAIRS
        else:
            scan.unexpected(("`unique`", "`all pairs`"), candidates=("unique", "all"))
        scan.accept("pairs")

    def _where(self) -> None:
        self._binding()
        while self.scanner.accept("and"):
            self._binding()

    def _binding(self) -> None:
        """`a.room = b.room`, `a.room ~ b.room`, `b.temperature > a.temperature + 5`."""
        start = self.scanner.peek().start
        left = self._field()
        operator, approximate = self._comparison()
        right = self._right(ordered=operator not in (Operator.EQ, Operator.NE))
        if approximate and isinstance(right, Field) and (left.offset or right.offset):
            self.scanner.fail("a number with an offset cannot be compared by meaning", at=start, hint="use `=`")
        self.where.append((Binding(left, operator, right, approximate), start))

    def _field(self) -> Field:
        scan = self.scanner
        alias = scan.name("a member and its attribute, such as `a.room`")
        if scan.accept(".") is None:
            scan.unexpected((f"`.` and an attribute of `{alias}`",))
        attribute = scan.name("an attribute")
        return Field(alias, attribute, self._offset())

    def _offset(self) -> float:
        scan = self.scanner
        sign = scan.accept("+", "-")
        if sign is None:
            return 0.0
        number = self._number("a number")
        return -number if sign.text == "-" else number

    def _comparison(self) -> tuple[Operator, bool]:
        token = self.scanner.accept(*OPERATORS, "~", "!~")
        if token is None or token.text == ":":
            self.scanner.unexpected(
                ("`=`", "`~`", "`!=`", "`<`", "`<=`", "`>`", "`>=`", 'quotes around several words: `a."fire alarm"`')
            )
        if token.text in ("~", "!~"):
            return (Operator.EQ if token.text == "~" else Operator.NE), True
        return OPERATORS[token.text], False

    def _right(self, *, ordered: bool) -> Field | Value:
        scan, token = self.scanner, self.scanner.peek()
        if token.kind != "quote" and (token.kind != "word" or token.text in KEYWORDS):
            return scan.value(ordered=ordered)
        scan.pos = token.start
        value = scan.quoted() if token.kind == "quote" else literal(scan.take().text)
        if scan.text[scan.pos : scan.pos + 1] != ".":
            if ordered and token.kind == "word":
                scan.check_finite(token.text, at=token.start)
            return value
        scan.pos = token.start
        return self._field()

    def _check_bindings(self, pattern: Pattern) -> None:
        names = list(labels(pattern)) if self.where else []
        for binding, start in self.where:
            for alias in _aliases(binding):
                if names.count(alias) == 1:
                    continue
                if alias in names:
                    self.scanner.fail(f"`{alias}` stands for two members", at=start, hint=f"name each: `{alias} as x`")
                known = tuple(f"`{name}`" for name in dict.fromkeys(names)) or ("a name given with `as`",)
                self.scanner.fail(
                    f"no member is named `{alias}`",
                    at=self._place(alias, start),
                    expected=known,
                    hint=suggestion(alias, names),
                )

    def _place(self, alias: str, start: int) -> int:
        """The position at which a condition that starts here names this member."""
        match = re.compile(rf"(?<!\w){re.escape(alias)}(?=\s*\.)").search(self.scanner.text, start)
        return start if match is None else match.start()


def _aliases(binding: Binding) -> Iterator[str]:
    yield binding.left.alias
    if isinstance(binding.right, Field):
        yield binding.right.alias


_NONE = Options()
CLAUSE_STARTS = frozenset((*CLAUSES, *_SPELLINGS))
