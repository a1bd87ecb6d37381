"""Edit the text of a subscription: show its errors, switch `~` on and off, change the threshold, build its link."""

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
"""Names and texts of the example subscriptions."""


def problem(text: str) -> dict[str, Any] | None:
    """The error of a text, for the line below the editor; None if the text is valid."""
    if not text.strip():
        return {"message": "Write a subscription, or choose an example.", "hint": "", "line": "", "column": 1}
    try:
        parse_subscription(text)
    except LikewiseError as error:
        return error_fields(error)
    return None


def error_fields(error: LikewiseError) -> dict[str, Any]:
    """An error as the editor shows it; long lines are shortened around the caret."""
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


def is_approximate(subscription: Subscription) -> bool:
    """Whether any term has `~`."""
    return any(_approximations(subscription.body))


def with_approximation(text: str, *, on: bool) -> str:
    """The text with `~` everywhere, or nowhere.

    >>> with_approximation("p: {type~ = parking~, slots > 0}", on=False)
    'p: {type = parking, slots > 0}'
    >>> with_approximation("p: {type = parking, slots > 0}", on=True)
    'p: {type~ = parking~, slots~ > 0}'
    """
    subscription = parse_subscription(text)
    return format_subscription(replace(subscription, body=_changed(subscription.body, on)))


def with_threshold(text: str, threshold: float | None) -> str:
    """The text with a new threshold.

    >>> with_threshold("p: {type~ = parking~}", 0.6)
    'p: {type~ = parking~} threshold 0.6'
    """
    subscription = parse_subscription(text)
    options = replace(subscription.options, threshold=threshold)
    return format_subscription(replace(subscription, options=options))


def without_threshold(options: Options) -> Options:
    """The options of a subscription without its threshold."""
    return replace(options, threshold=None)


def address(**state: str | float | None) -> str:
    """The URL of the playground with a state, for sharing.

    >>> address(q="{a = 1}", threshold=None)
    '/playground?q=%7Ba+%3D+1%7D'
    """
    query = {name: str(value) for name, value in state.items() if value not in (None, "")}
    return f"/playground?{urlencode(query)}" if query else "/playground"


def _approximations(node: Any) -> list[bool]:
    if isinstance(node, Predicate):
        return [node.attribute_approximate or node.value_approximate]
    if isinstance(node, Binding):
        return [node.approximate]
    inner = [getattr(node, field.name) for field in fields(node)] if _is_part(node) else []
    parts = node if isinstance(node, tuple) else inner
    return [approximate for part in parts for approximate in _approximations(part)]


def _changed(node: T, on: bool) -> T:
    """A copy of a syntax tree with all terms approximate, or none."""
    changed: Any = node
    if isinstance(node, Predicate):
        approximate = on and node.operator in (Operator.EQ, Operator.NE) and isinstance(node.value, str)
        changed = replace(node, attribute_approximate=on, value_approximate=approximate)
    elif isinstance(node, Binding):
        changed = replace(node, approximate=on and node.operator is Operator.EQ)
    elif isinstance(node, tuple):
        changed = tuple(_changed(part, on) for part in node)
    elif _is_part(node):
        part: Any = node
        changed = replace(part, **{field.name: _changed(getattr(part, field.name), on) for field in fields(part)})
    result: T = changed
    return result


def _is_part(node: Any) -> bool:
    return is_dataclass(node) and not isinstance(node, type) and not isinstance(node, Options)


__all__ = [
    "EXAMPLES",
    "address",
    "error_fields",
    "is_approximate",
    "problem",
    "with_approximation",
    "with_threshold",
    "without_threshold",
]
