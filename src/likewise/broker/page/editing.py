"""Working on the text of a subscription: errors for the caret, `~` on and off, another threshold, its address."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from likewise.errors import LikewiseError, ParseError
from likewise.language import (
    Binding,
    Operator,
    Options,
    Predicate,
    Subscription,
    format_subscription,
    parse_subscription,
)

T = TypeVar("T")
EXAMPLES: Final = (
    ("Free parking", "free-parking: {type~ = parking~, free spaces~ > 0}"),
    ("Slow traffic", "slow-traffic: {type~ = traffic~, speed~ < 20}"),
    (
        "Two in a row",
        "break-in: {type~ = window broken~} as w then {type~ = presence~} as p within 2 minutes",
    ),
    ("What did not happen", "no-bus: not {type~ = bus arrival~} for 1 minute"),
    ("Same words only", "exact: {type = parking, free spaces > 0}"),
)
"""What a visitor may begin with."""


def problem(text: str) -> dict[str, Any] | None:
    """What is wrong with a text, for the line below the editor; None if it can be read."""
    if not text.strip():
        return {"message": "Write what you look for, or take an example.", "hint": "", "line": "", "column": 1}
    try:
        parse_subscription(text)
    except LikewiseError as error:
        return said(error)
    return None


def said(error: LikewiseError) -> dict[str, Any]:
    """An error as the editor shows it; long lines are cut around the caret."""
    if not isinstance(error, ParseError):
        return {"message": error.message, "hint": error.hint or "", "line": "", "column": 1}
    start = max(0, error.column - 40)
    expected = f"expected {', '.join(error.expected[:4])}" if error.expected else ""
    return {
        "message": error.message,
        "hint": error.hint or expected,
        "line": error.excerpt[start : start + 70].replace("\t", " "),
        "column": error.column - start,
    }


def is_about(subscription: Subscription) -> bool:
    """Whether any word may be approximated."""
    return any(_approximations(subscription.body))


def with_about(text: str, *, on: bool) -> str:
    """The text with `~` everywhere, or nowhere.

    >>> with_about("p: {type~ = parking~, slots > 0}", on=False)
    'p: {type = parking, slots > 0}'
    >>> with_about("p: {type = parking, slots > 0}", on=True)
    'p: {type~ = parking~, slots~ > 0}'
    """
    found = parse_subscription(text)
    return format_subscription(replace(found, body=_changed(found.body, on)))


def with_threshold(text: str, threshold: float | None) -> str:
    """The text with another threshold.

    >>> with_threshold("p: {type~ = parking~}", 0.6)
    'p: {type~ = parking~} threshold 0.6'
    """
    found = parse_subscription(text)
    return format_subscription(replace(found, options=replace(found.options, threshold=threshold)))


def without_threshold(options: Options) -> Options:
    """The other options of a subscriber."""
    return replace(options, threshold=None)


def address(**state: str | float | None) -> str:
    """The playground with a state, to be shared.

    >>> address(q="{a = 1}", threshold=None)
    '/playground?q=%7Ba+%3D+1%7D'
    """
    kept = {name: str(value) for name, value in state.items() if value not in (None, "")}
    return f"/playground?{urlencode(kept)}" if kept else "/playground"


def _approximations(node: Any) -> list[bool]:
    if isinstance(node, Predicate):
        return [node.attribute_approximate or node.value_approximate]
    if isinstance(node, Binding):
        return [node.approximate]
    inner = [getattr(node, one.name) for one in fields(node)] if _is_part(node) else []
    parts = node if isinstance(node, tuple) else inner
    return [found for part in parts for found in _approximations(part)]


def _changed(node: T, on: bool) -> T:
    """The same with all words approximate or none, however deep they are."""
    changed: Any = node
    if isinstance(node, Predicate):
        about = on and node.operator in (Operator.EQ, Operator.NE) and isinstance(node.value, str)
        changed = replace(node, attribute_approximate=on, value_approximate=about)
    elif isinstance(node, Binding):
        changed = replace(node, approximate=on and node.operator is Operator.EQ)
    elif isinstance(node, tuple):
        changed = tuple(_changed(part, on) for part in node)
    elif _is_part(node):
        part: Any = node
        changed = replace(part, **{one.name: _changed(getattr(part, one.name), on) for one in fields(part)})
    found: T = changed
    return found


def _is_part(node: Any) -> bool:
    return is_dataclass(node) and not isinstance(node, type) and not isinstance(node, Options)


__all__ = [
    "EXAMPLES",
    "address",
    "is_about",
    "problem",
    "said",
    "with_about",
    "with_threshold",
    "without_threshold",
]
