"""Reading terms: quoted or bare phrases with an optional `~` after them."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from likewise.events import Value
from likewise.language.literals import literal, ordered_literal
from likewise.language.reading.scanner import Scanner

# What ends an unquoted term. A colon ends an attribute but not a value: `14:22:03` is one.
STOPS = r"{}\[\]()\"“”~=<>!,≤≥≠"
ATTRIBUTE = rf"(?![\s'‘])[^:{STOPS}]++"
VALUE = rf"(?![\s'‘])[^{STOPS}]++"

_ATTRIBUTE_HERE = re.compile(ATTRIBUTE)
_VALUE_HERE = re.compile(VALUE)
_BLANKS = re.compile(r"\s*+")
_QUOTES = frozenset("\"“‘'")
_QUOTE_IT = "quote a term that holds such a sign"
_DIVIDE = "divide predicates with commas; quote a term that holds such a sign"


class Term(NamedTuple):
    """A phrase as written, with blanks made single."""

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

    def attribute(self, what: str = "an attribute") -> Term:
        """The name of an attribute, or a theme tag."""
        term = self._term(_ATTRIBUTE_HERE, what)
        if not term.text:
            self.scanner.fail(f"{what} cannot be empty", at=term.start)
        return term

    def value(self) -> Term:
        """A value; a colon and a blank in it are a forgotten comma."""
        term = self._term(_VALUE_HERE, "a value")
        if not term.quoted and (": " in term.text or term.text[-1] == ":"):
            at = self.text.index(":", term.start)
            hint = "put a comma before the next attribute, or quote the value"
            self.scanner.fail("a value holds a colon", at=at, hint=hint)
        return term

    def exact_value(self, where: str) -> Term:
        """A value that cannot have a `~`."""
        return self.exact(self.value(), where)

    def exact(self, term: Term, where: str) -> Term:
        """The term, refused if it has a `~`."""
        if term.approximate:
            self.scanner.fail(f"{where} cannot be approximate", at=self.scanner.pos - 1, hint="leave out this `~`")
        return term

    def compared(self, term: Term) -> Value:
        """The value that `<`, `>` or a range compares with; what only looks like a number is refused."""
        if not term.quoted:
            self.scanner.check_finite(term.text, at=term.start)
        return meaning(term, ordered=True)

    def skip(self) -> str:
        """Go over blanks; the character after them, "" at the end."""
        found = _BLANKS.match(self.text, self.scanner.pos)
        if found is not None:
            self.scanner.pos = found.end()
        return self.text[self.scanner.pos : self.scanner.pos + 1]

    def missing(self, message: str, expected: tuple[str, ...], *, signs: str = "([!") -> NoReturn:
        """Refuse what stands here, with a hint where a sign of the language may belong to a term."""
        here = self.skip()
        if not here:
            self.scanner.fail("the text ends too early", at=len(self.text.rstrip()), expected=expected)
        hint = _DIVIDE if here in "=<>" and "`,`" in expected else _QUOTE_IT if here in signs else None
        self.scanner.fail(message, expected=expected, hint=hint)

    def _term(self, bare: re.Pattern[str], what: str) -> Term:
        scan = self.scanner
        quoted = self.skip() in _QUOTES
        start = scan.pos
        if quoted:
            text = scan.quoted()
        else:
            found = bare.match(self.text, start)
            if found is None:
                self.missing(f"{what} is missing", (what,))
            scan.pos = found.end()
            text = " ".join(found[0].split())
        approximate = self.skip() == "~"
        if approximate:
            scan.pos += 1
        return Term(text, quoted, approximate, start)


def meaning(term: Term, *, ordered: bool) -> Value:
    """The value a term stands for; `ordered` where it is compared with `<` or `>`."""
    if term.quoted:
        return term.text
    return ordered_literal(term.text) if ordered else literal(term.text)
