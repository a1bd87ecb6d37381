"""The source text: line positions, and errors that point into it."""

from __future__ import annotations

import re
from bisect import bisect_right

from likewise.errors import ParseError, Position

_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # what str.splitlines breaks at

# A quoted text may run over a line end but not over a blank line, so that one forgotten quote
# cannot swallow the rest of a file. The span is matched even where the closing quote is missing.
_QUOTED_SPAN = r'["“][^"”\\\n]*+(?:(?:\\[^\n]|\n(?![^\S\n]*\n))[^"”\\\n]*+)*["”]?'
_QUOTED_OR_COMMENT = re.compile(rf"{_QUOTED_SPAN}|(?<!\S)#[^\n]*+")


class Source:
    """A text with a name; `code` is the text with comments blanked out, at the same offsets."""

    __slots__ = ("_starts", "code", "name", "text")

    def __init__(self, text: str, name: str = "<text>") -> None:
        self.text = text
        self.name = name
        self.code = _QUOTED_OR_COMMENT.sub(_blank, text) if "#" in text else text
        self._starts: list[int] | None = None

    def check(self) -> None:
        """Refuse lone surrogates, which cannot be encoded."""
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise self.error(
                error.start, "the text contains a lone surrogate", hint="decode the text as UTF-8"
            ) from None

    def position(self, offset: int) -> Position:
        """Line and column of an offset, both from 1.

        >>> Source("a\\nbc").position(3)
        Position(line=2, column=2)
        """
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def error(
        self, offset: int, message: str, *, expected: tuple[str, ...] = (), hint: str | None = None
    ) -> ParseError:
        """An error that shows the line of `offset` with a caret under it."""
        position = self.position(offset)
        return ParseError(
            message,
            text="",
            excerpt=self._line(position.line),
            position=position,
            source=self.name,
            expected=expected,
            hint=hint,
        )

    def _line(self, number: int) -> str:
        starts = self._line_starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return (self.text[starts[number - 1] : end].splitlines() or [""])[0]

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *(end.end() for end in _LINE_END.finditer(self.text))]
        return self._starts


def _blank(match: re.Match[str]) -> str:
    span = match.group()
    return " " * len(span) if span[0] == "#" else span
