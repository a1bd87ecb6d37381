"""Reads terms: quoted or bare phrases, optionally followed by `~`."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from likewise.events import Value
from likewise.language.literals import literal, ordered_literal
from likewise.language.reading.scanner import Scanner

# Characters that end an unquoted term. A colon ends an attribute but not a value: `14:22:03` is one.
STOPS = r"{}\[\]()\"“”~=<>!,≤≥≠"
ATTRIBUTE = rf"(?![\s'‘])[^:{STOPS}]++"
VALUE = rf"(?![\s'‘])[^{STOPS}]++"

_ATTRIBUTE_HERE = re.compile(ATTRIBUTE)
_VALUE_HERE = re.compile(VALUE)
_BLANKS = re.compile(r"\s*+")
_QUOTES = frozenset("\"“‘'")
_QUOTE_IT = "quote a term that contains such a sign"
_DIVIDE = "separate predicates by commas; quote a term that contains such a sign"


class Term(NamedTuple):
    """A phrase as written, with single blanks."""

    text: str
    quoted: bool
    approximate: bool
    start: int


class TermReader:
    """Reads terms and the blanks between them."""

    __slots__ = ("scanner", "text")

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.text = scanner.text

    def attribute(self, description: str = "an attribute") -> Term:
        """Read the name of an attribute, or a theme tag."""
        term = self._term(_ATTRIBUTE_HERE, description)
        if not term.text:
            self.scanner.fail(f"{description} cannot be empty", at=term.start)
        return term

    def value(self) -> Term:
        """Read a value; a colon and a blank inside mean a forgotten comma."""
        term = self._term(_VALUE_HERE, "a value")
        if not term.quoted and (": " in term.text or term.text[-1] == ":"):
            at = self.text.index(":", term.start)
            hint = "put a comma before the next attribute, or quote the value"
            self.scanner.fail("a value contains a colon", at=at, hint=hint)
        return term

    def exact_value(self, where: str) -> Term:
        """Read a value that must not have a `~`."""
        return self.exact(self.value(), where)

    def exact(self, term: Term, where: str) -> Term:
        """The term; refused if it has a `~`."""
        if term.approximate:
            self.scanner.fail(f"{where} cannot be approximate", at=self.scanner.pos - 1, hint="remove this `~`")
        return term

    def compared(self, term: Term) -> Value:
        """The value for a comparison with `<`, `>` or a range; NaN and infinities are refused."""
        if not term.quoted:
            self.scanner.check_finite(term.text, at=term.start)
        return meaning(term, ordered=True)

    def skip(self) -> str:
        """Skip blanks; returns the character after them, "" at the end."""
        match = _BLANKS.match(self.text, self.scanner.pos)
        if match is not None:
            self.scanner.pos = match.end()
        return self.text[self.scanner.pos : self.scanner.pos + 1]

    def missing(self, message: str, expected: tuple[str, ...], *, signs: str = "([!") -> NoReturn:
        """Refuse the text at this position, with a hint if a symbol may belong to a term."""
        char = self.skip()
        if not char:
            self.scanner.fail("the text ends too early", at=len(self.text.rstrip()), expected=expected)
        hint = _DIVIDE if char in "=<>" and "`,`" in expected else _QUOTE_IT if char in signs else None
        self.scanner.fail(message, expected=expected, hint=hint)

    def _term(self, bare: re.Pattern[str], description: str) -> Term:
        scan = self.scanner
        quoted = self.skip() in _QUOTES
        start = scan.pos
        if quoted:
            text = scan.quoted()
        else:
            match = bare.match(self.text, start)
            if match is None:
                self.missing(f"{description} is missing", (description,))
            scan.pos = match.end()
            text = " ".join(match[0].split())
        approximate = self.skip() == "~"
        if approximate:
            scan.pos += 1
        return Term(text, quoted, approximate, start)


def meaning(term: Term, *, ordered: bool) -> Value:
    """The value of a term; `ordered` if it is compared with `<` or `>`."""
    if term.quoted:
        return term.text
    return ordered_literal(term.text) if ordered else literal(term.text)
