"""Scans a source from left to right: tokens, quoted texts, terms, durations.

The scanner is written by hand rather than with a grammar library: terms are unquoted phrases whose end depends on their
context, errors describe what was expected in plain words, and one regular expression per predicate is much faster than
a token stream in Python.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from likewise.events import Value
from likewise.language.durations import LONGEST, PART, UNITS, length
from likewise.language.literals import beyond_numbers, literal, ordered_literal
from likewise.language.model import Duration
from likewise.language.reading.source import Source
from likewise.language.words import KEYWORDS, suggestion

MAX_NESTING = 50
"""Deeper patterns are refused, as they would exhaust the stack."""

_TOKEN = re.compile(
    r"\s*+(?:(?P<word>[^\W\d][\w\-]*+)|(?P<number>[0-9]++(?:\.[0-9]++)?)|(?P<quote>[\"“‘'])"
    r"|(?P<symbol>\.\.|==|!=|!~|<=|>=|\|\||\S))"
)
_CLOSERS = {'"': '"”', "“": '"”', "‘": "’", "'": "'"}
_QUOTED = {
    opener: re.compile(rf"{opener}([^{closers}\\\n]*+(?:(?:\\[^\n]|\n(?![^\S\n]*\n))[^{closers}\\\n]*+)*)[{closers}]")
    for opener, closers in _CLOSERS.items()
}
_ESCAPE = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_SINGLE = re.compile(r"\s*+([^\s{}\[\]()\"“”‘',;|~=<>!]++)")
_WRAPPED = re.compile(r"[^\S\n]*+\n\s*+")


class Token(NamedTuple):
    """A word, number, quote or symbol of a pattern; kind "end" is the end of the text."""

    kind: str
    text: str
    start: int
    end: int


class Scanner:
    """A position in a source, and methods to read from it."""

    __slots__ = ("_peeked", "_peeked_at", "depth", "pos", "source", "text")

    def __init__(self, source: Source, pos: int = 0) -> None:
        self.source = source
        self.text = source.code
        self.pos = pos
        self.depth = 0
        self._peeked = Token("end", "", 0, 0)
        self._peeked_at = -1

    def fail(
        self,
        message: str,
        *,
        at: int | None = None,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> NoReturn:
        raise self.source.error(self.pos if at is None else at, message, expected=expected, hint=hint)

    def peek(self) -> Token:
        """The next token, without consuming it."""
        if self._peeked_at != self.pos:
            self._peeked, self._peeked_at = self._read(), self.pos
        return self._peeked

    def take(self) -> Token:
        """Consume the next token."""
        token = self.peek()
        self.pos = token.end
        return token

    def accept(self, *texts: str) -> Token | None:
        """Consume the next token if it is one of these words or symbols."""
        token = self.peek()
        return self.take() if token.text in texts and token.kind in {"word", "symbol"} else None

    def require(self, text: str) -> Token:
        """Consume the next token, which must be this one."""
        token = self.accept(text)
        if token is None:
            self.unexpected((f"`{text}`",), candidates=(text,))
        return token

    def unexpected(self, expected: tuple[str, ...], *, candidates: tuple[str, ...] = ()) -> NoReturn:
        """Refuse the next token, with a hint if it looks like a misspelt candidate."""
        token = self.peek()
        if token.kind == "end":
            self.fail("the text ends too early", at=len(self.text.rstrip()), expected=expected)
        hint = suggestion(token.text, candidates) if token.kind == "word" else None
        self.fail(f"unexpected {shown(token.text)}", at=token.start, expected=expected, hint=hint)

    def quoted(self) -> str:
        """Read the quoted text at this position; typographic quotes close straight ones, as in [002]."""
        opener = self.text[self.pos]
        match = _QUOTED[opener].match(self.text, self.pos)
        if match is None:
            self.fail("this quoted text has no end", expected=(f"a closing {_CLOSERS[opener][0]}",))
        self.pos = match.end()
        inner = match[1]
        if "\n" in inner:
            inner = _WRAPPED.sub(" ", inner)
        if "\\" not in inner:
            return inner
        inner = _ESCAPE.sub(_unescape, inner)
        if _HALF.search(inner):
            self.fail(
                "an incomplete surrogate pair is escaped here", at=match.start(), hint="write the character itself"
            )
        return inner

    def name(self, description: str) -> str:
        """Read a name: a bare word or a quoted text."""
        token = self.peek()
        if token.kind == "word":
            return self.take().text
        if token.kind != "quote":
            self.unexpected((description,))
        self.pos = token.start
        name = self.quoted()
        if not name:
            self.fail("a name cannot be empty", at=token.start, expected=(description,))
        return name

    def value(self, *, ordered: bool) -> Value:
        """Read an unquoted number, boolean, timestamp or other single word."""
        match = _SINGLE.match(self.text, self.pos)
        if match is None or match[1] in KEYWORDS:
            self.unexpected(("a value",))
        if ordered:
            self.check_finite(match[1], at=match.start(1))
        self.pos = match.end()
        return ordered_literal(match[1]) if ordered else literal(match[1])

    def check_finite(self, text: str, *, at: int) -> None:
        """Refuse NaN and infinities, which would otherwise be compared as text."""
        if beyond_numbers(text):
            shown = text[:40]
            hint = f'quote it to compare with the text: "{shown}"'
            self.fail(f"`{shown}` is not a number to compare with", at=at, expected=("a finite number",), hint=hint)

    def whole(self, description: str, *, least: int = 1) -> int:
        """Read an integer of at least `least`."""
        token = self.peek()
        if token.kind != "number" or "." in token.text or len(token.text) > 9:
            self.unexpected((description,))
        self.take()
        if int(token.text) < least:
            self.fail(
                f"{token.text} is too small here", at=token.start, expected=(f"{description} of at least {least}",)
            )
        return int(token.text)

    def duration(self) -> Duration:
        """Read a duration of one or more parts on one line, such as `1 hour 30 minutes`."""
        match = PART.match(self.text, self.peek().start)
        if match is None:
            self.unexpected(("a duration such as `30 minutes`",))
        total = 0
        while True:
            total += self._length(match)
            if total > LONGEST:
                self.fail("the duration is too long", at=match.start(1))
            self.pos = match.end()
            match = PART.match(self.text, self.pos)
            # `within 1 hour 3 times …`: a number without a unit of time does not belong to it.
            if match is None or match[2] not in UNITS:
                return total

    def _length(self, match: re.Match[str]) -> Duration:
        if match[2] not in UNITS:
            self.fail(
                f"unknown unit of time {shown(match[2])}",
                at=match.start(2),
                expected=("us", "ms", "s", "min", "h", "d", "a word such as `minutes`"),
                hint=suggestion(match[2], UNITS),
            )
        return length(match[1], match[2])

    def new_line_before(self, token: Token) -> bool:
        """Whether a line ends between this position and the token."""
        return "\n" in self.text[self.pos : token.start]

    def enter(self, at: int) -> None:
        """Enter a nested level; at most `MAX_NESTING`."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(
                f"nested more than {MAX_NESTING} levels deep", at=at, hint="name the inner parts and refer to them"
            )

    def leave(self) -> None:
        self.depth -= 1

    def _read(self) -> Token:
        match = _TOKEN.match(self.text, self.pos)
        if match is None:
            end = len(self.text)
            return Token("end", "", end, end)
        kind = match.lastgroup or "symbol"
        return Token(kind, match[kind], match.start(kind), match.end())


def shown(text: str) -> str:
    """A piece of the source for messages: shortened, without line ends."""
    line = " ".join(text.split()) or text
    return f"`{line[:40]}…`" if len(line) > 40 else f"`{line}`"


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    # JSON writes a character beyond 16 bits as two escapes.
    units = (int(unit, 16) for unit in code[1:].split("\\u"))
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")
