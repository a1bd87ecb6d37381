"""Subscriptions as plain dictionaries, for JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from likewise.language.model import Subscription


def structure(subscription: Subscription) -> dict[str, Any]:
    """A subscription as dictionaries, lists and scalars; `kind` names each node, None is omitted.

    >>> from likewise.language import parse_subscription
    >>> structure(parse_subscription("a: {slot > 0}"))["body"]["predicates"]
    [{'kind': 'predicate', 'attribute': 'slot', 'operator': '>', 'value': 0}]
    """
    plain: dict[str, Any] = _plain(subscription)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {"kind": _kind(value), **{key: _plain(item) for key, item in _set_fields(value)}}
    return value


def _set_fields(node: Any) -> list[tuple[str, Any]]:
    """The fields that differ from the default (None, False or empty)."""
    named = ((field.name, getattr(node, field.name)) for field in fields(node))
    return [(name, item) for name, item in named if not (item is None or item == () or _is_default_false(name, item))]


def _is_default_false(name: str, item: Any) -> bool:
    return item is False and (name.endswith("approximate") or name == "longest")


def _kind(node: Any) -> str:
    name = type(node).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
