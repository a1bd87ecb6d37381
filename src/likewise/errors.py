"""The errors that Likewise raises on purpose, and a check of option names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

__all__ = [
    "BuildError",
    "DeliveryError",
    "InputError",
    "LikewiseError",
    "MissingError",
    "ParseError",
    "SpaceError",
    "named_options",
]


class LikewiseError(Exception):
    """Base of all errors that a user can cause and fix; `hint` says how to fix it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class BuildError(LikewiseError):
    """A subscription, pattern or engine that cannot be built as requested."""


class MissingError(LikewiseError):
    """A required extra, file or server is missing."""


class SpaceError(LikewiseError):
    """A space folder is corrupt, incomplete or of another version."""


class InputError(LikewiseError):
    """A bad input: its source and line, and what is wrong with it."""

    def __init__(
        self, message: str, *, source: str = "<input>", line: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.line = line

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {super().__str__()}"


class DeliveryError(LikewiseError):
    """A receiver did not accept its messages; they stay pending and are retried."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a source text; line and column count from 1."""

    line: int
    column: int


class ParseError(LikewiseError):
    """A syntax error in the subscription language, shown with a caret under its position."""

    def __init__(
        self,
        message: str,
        *,
        text: str,
        position: Position,
        source: str = "<text>",
        expected: tuple[str, ...] = (),
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.position = position
        self.expected = expected
        # Callers that know the line pass it: splitting a large text once per error would be quadratic.
        lines = text.splitlines() or [""] if excerpt is None else []
        self.excerpt = lines[min(position.line, len(lines)) - 1] if excerpt is None else excerpt

    @property
    def line(self) -> int:
        return self.position.line

    @property
    def column(self) -> int:
        return self.position.column

    def __str__(self) -> str:
        # Long lines are cut around the caret, so that it stays visible.
        start = max(0, self.column - 61)
        shown = self.excerpt[start : start + 120].replace("\t", " ")
        out = [f"{self.source}:{self.line}:{self.column}: {self.message}", f"  {shown}"]
        out.append("  " + " " * (self.column - 1 - start) + "^")
        if self.expected:
            out.append("  expected: " + ", ".join(self.expected))
        if self.hint:
            out.append(f"  hint: {self.hint}")
        return "\n".join(out)


P = ParamSpec("P")
R = TypeVar("R")


def named_options(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose unknown options are a `TypeError` that names the nearest known one.

    >>> @named_options
    ... def match(*, threshold=0.5):
    ...     return threshold
    >>> match(treshold=1)
    Traceback (most recent call last):
    ...
    TypeError: match() got an unexpected keyword argument 'treshold'. Did you mean 'threshold'?
    """
    known = [name for name in signature(function).parameters if name != "self"]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                more = f" Did you mean {near[0]!r}?" if near else f" It takes {', '.join(known)}."
                raise TypeError(f"{title}() got an unexpected keyword argument {name!r}.{more}")
        return function(*arguments, **options)

    return checked
