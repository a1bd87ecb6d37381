"""Patterns as plain values, so that a snapshot carries the patterns it belongs to."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, cast

from likewise import language
from likewise.errors import InputError

_CLASSES: Final = {name: getattr(language, name) for name in language.__all__}
_KIND: Final = "$"


def to_plain(value: Any) -> Any:
    """Dataclasses, enumerations, tuples and datetimes as dicts, lists and scalars.

    >>> to_plain(language.Duplicates(language.Keep.FIRST))["keep"]
    {'$': 'Keep', 'value': 'first'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {_KIND: type(value).__name__} | {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return {_KIND: type(value).__name__, "value": value.value}
    if isinstance(value, datetime):
        return {_KIND: "datetime", "value": value.isoformat()}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain`."""
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind == "datetime":
        return datetime.fromisoformat(value["value"])
    known = _CLASSES.get(cast("str", kind))
    if not isinstance(known, type):
        raise InputError(f"a snapshot names an unknown part {kind!r}", hint="it was written by another version")
    if issubclass(known, Enum):
        return known(value["value"])
    return known(**{name: from_plain(item) for name, item in value.items() if name != _KIND})
