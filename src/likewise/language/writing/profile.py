"""Writes profiles as text: `{power, computers} {device~ = laptop~, floor in [1, 3)}`.

Terms, values and names are written so that the parser reads them back: bare if that is safe, else quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from likewise.errors import BuildError
from likewise.events import Value
from likewise.language.literals import beyond_numbers, literal, ordered_literal, write_literal
from likewise.language.model import Operator, Predicate, Profile, Range
from likewise.language.words import KEYWORDS

_PLAIN = re.compile(r"\w[\w.\-/°%'’]*+(?: [\w.\-/°%'’]++)*")
_WORD = re.compile(r"[^\W\d][\w\-]*+")
_HEADER = re.compile(r"\w[\w.\-]*+")
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\u201d]")
_HALF = re.compile("[\ud800-\udfff]")
_RESERVED = KEYWORDS | {"event", "profile"}


def write_quoted(text: str) -> str:
    """Quote a text, with JSON escapes.

    >>> write_quoted('a "b"')
    '"a \\\\"b\\\\""'
    """
    if _HALF.search(text):
        raise BuildError(f"{text[:40]!r} contains a lone surrogate")
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def write_attribute(text: str) -> str:
    """Write an attribute; one that looks like a number is quoted, as it would be read as the end of a range."""
    if not text:
        raise BuildError("an attribute cannot be empty")
    safe = _PLAIN.fullmatch(text) and isinstance(ordered_literal(text), str) and not beyond_numbers(text)
    return text if safe else write_quoted(text)


def write_theme(tags: Iterable[str]) -> str:
    """Write a theme in braces."""
    return "{" + ", ".join(tag if _PLAIN.fullmatch(tag) else write_quoted(tag) for tag in tags) + "}"


def write_value(value: Value, *, ordered: bool = False) -> str:
    """Write a value, quoting text that would be read as another type."""
    if not isinstance(value, str):
        return write_literal(value)
    if ordered and beyond_numbers(value):
        return write_quoted(value)
    read = ordered_literal(value) if ordered else literal(value)
    return value if isinstance(read, str) and _PLAIN.fullmatch(value) else write_quoted(value)


def write_name(name: str) -> str:
    """Write a name as patterns refer to it."""
    if not name:
        raise BuildError("a name cannot be empty")
    return name if _WORD.fullmatch(name) and name not in _RESERVED else write_quoted(name)


def write_header(name: str) -> str:
    """Write a name before its colon."""
    if not name:
        raise BuildError("a name cannot be empty")
    return name if _HEADER.fullmatch(name) else write_quoted(name)


def format_profile(profile: Profile) -> str:
    """Write the theme, if any, and the predicates."""
    if not profile.predicates:
        raise BuildError("a profile without predicates cannot be written")
    predicates = "{" + ", ".join(format_predicate(predicate) for predicate in profile.predicates) + "}"
    return f"{write_theme(profile.theme)} {predicates}" if profile.theme else predicates


def format_predicate(predicate: Predicate) -> str:
    """Write one predicate.

    >>> format_predicate(Predicate("device", Operator.EQ, "laptop", True, True))
    'device~ = laptop~'
    """
    attribute = write_attribute(predicate.attribute) + "~" * predicate.attribute_approximate
    if isinstance(predicate.value, Range):
        return f"{attribute} in {_range(predicate.value)}"
    ordered = predicate.operator not in (Operator.EQ, Operator.NE)
    value = write_value(predicate.value, ordered=ordered) + "~" * predicate.value_approximate
    return f"{attribute} {predicate.operator} {value}"


def _range(span: Range) -> str:
    low, high = write_value(span.low, ordered=True), write_value(span.high, ordered=True)
    return f"{'[' if span.low_closed else '('}{low}, {high}{']' if span.high_closed else ')'}"
