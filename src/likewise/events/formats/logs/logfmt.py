"""logfmt: one record per line, `ts=2026-03-01T09:00:00Z level=warn msg="door open" temp=21.5 alarm`.

A key alone is true, a repeated key has several values, and an empty value is absent. An unquoted value is typed by its
look, like the cell of a table; a quoted one is text with JSON escapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from likewise.errors import InputError
from likewise.events.table_columns import value_of_cell

_KEY: Final = r'[^\s="]+'
_PAIR: Final = re.compile(rf'\s*({_KEY})(?:=("(?:[^"\\]|\\.)*"|[^\s"]*))?(?=\s|\Z)')
_START: Final = re.compile(rf'\s*[A-Za-z_@]{_KEY}=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+{_KEY}(?:=|\s|\Z)|\s*\Z)')
_decode_text = msgspec.json.Decoder(str).decode


def parse_logfmt(line: bytes, kinds: Mapping[str, str] | None = None) -> dict[str, object]:
    """Parse a line into a record; `kinds` gives the types of values whose look is misleading.

    >>> parse_logfmt(b'ts=1 room=2.14 msg="door \\\\"A\\\\" open" alarm tag=a tag=b note=')
    {'ts': 1, 'room': 2.14, 'msg': 'door "A" open', 'alarm': True, 'tag': ['a', 'b'], 'note': None}
    >>> parse_logfmt(b"room=2.14", {"room": "text"})
    {'room': '2.14'}
    """
    text = decoded(line)
    record: dict[str, object] = {}
    place, named = 0, False
    while place < len(text):
        pair = _PAIR.match(text, place)
        if pair is None:
            raise _flaw(text[place:])
        key, raw = pair.groups()
        value = True if raw is None else _value(raw, (kinds or {}).get(key))
        named, place = named or raw is not None, pair.end()
        before = record.get(key)
        if key not in record or before is None:
            record[key] = value
        elif value is not None:
            record[key] = [*(before if isinstance(before, list) else [before]), value]
    if not named:
        raise InputError(
            "the line has no key=value pair", hint='such as ts=2026-03-01T09:00:00Z level=info msg="door open"'
        )
    return record


def looks_like_logfmt(line: bytes) -> bool:
    """Whether a line begins with a key and its value.

    >>> [looks_like_logfmt(line) for line in (b'ts=1 msg="x y"', b"a,b=c,d", b"x = 1", b"just words")]
    [True, True, False, False]
    """
    return _START.match(line.decode("utf-8", errors="replace")) is not None


def decoded(line: bytes) -> str:
    """The text of a line, without surrounding white space."""
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-8 at byte {error.start + 1}", hint="write the file as UTF-8") from None


def _value(raw: str, kind: str | None) -> object:
    if not raw.startswith('"'):
        return value_of_cell(raw, kind)
    try:
        text = _decode_text(raw)
    except msgspec.MsgspecError:
        text = re.sub(r"\\(.)", r"\1", raw[1:-1])
    return (value_of_cell(text, kind) if kind else text) or None


def _flaw(rest: str) -> InputError:
    rest = rest.strip()
    if rest.startswith("="):
        return InputError(f"a value without a key at {rest[:30]!r}", hint="write key=value")
    if rest.count('"') % 2:
        return InputError("this quoted text has no end", hint='close it with "')
    return InputError(f"not key=value: {rest[:30]!r}", hint="put values with spaces or quotes in quotes")
