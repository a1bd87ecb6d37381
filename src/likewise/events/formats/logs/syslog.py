"""Syslog lines: RFC 5424, RFC 3164, and lines without a priority as daemons write them to files.

The fields of a record are `timestamp`, `host`, `app`, `pid`, `type` (the MSGID), `facility`, `severity`, `message`, and
`data`, the structured data by id. A time of RFC 3164 has no year: the latest one that is not in the future is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from likewise.errors import InputError
from likewise.events.formats.logs.logfmt import decoded
from likewise.events.mapping import RecordMapping
from likewise.events.table_columns import value_of_cell

SYSLOG_MAPPING: Final = RecordMapping(time="timestamp")
"""The time field; all others are attributes."""

SEVERITIES: Final = ("emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug")
FACILITIES: Final = (
    *("kernel", "user", "mail", "daemon", "security", "syslog", "printer", "news", "uucp", "clock", "authorization"),
    *("ftp", "ntp", "audit", "log alert", "scheduling", *(f"local{number}" for number in range(8))),
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PRIORITY: Final = re.compile(r"(?:\d{1,6} (?=<))?<(\d{1,3})>")
_MODERN: Final = re.compile(r"1 (\S+) (\S+) (\S+) (\S+) (\S+)(?: |\Z)")
_ISO: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_OLD: Final = rf"(?:{'|'.join(_MONTHS)}) [ \d]\d \d\d:\d\d:\d\d"
_CLASSIC: Final = re.compile(rf"(?:({_ISO})|({_OLD})) (\S+)(?: (?:([^\s\[:]+)(?:\[([^\]]*)\])?: ?)?(.*))?", re.DOTALL)
_ELEMENT: Final = re.compile(r'\[([^\s=\]"]+)((?: [^\s=\]"]+="(?:[^"\\\]]|\\.)*")*) ?\]', re.DOTALL)
_PARAMETER: Final = re.compile(r'([^\s=\]"]+)="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
_LOOK: Final = re.compile(rf"(?:\d{{1,6}} )?<\d{{1,3}}>|{_OLD} \S|{_ISO} \S+ [^\s:\[]+(?:\[\d*\])?:")
_HINT: Final = "such as <34>1 2026-03-01T09:00:00Z host app - - - message, or Mar  1 09:00:00 host app: message"


def parse_syslog(
    line: bytes, kinds: Mapping[str, str] | None = None, *, now: datetime | None = None
) -> dict[str, object]:
    """Parse a line into a record.

    >>> record = parse_syslog(b'<165>1 2026-03-01T09:00:00Z bms boiler 42 ALARM [at@1 room="2.14"] too hot')
    >>> record["severity"], record["timestamp"], record["app"], record["type"], record["data"], record["message"]
    ('notice', '2026-03-01T09:00:00Z', 'boiler', 'ALARM', {'at@1': {'room': 2.14}}, 'too hot')
    >>> parse_syslog(b"Mar  1 09:00:00 gate sshd[7]: bad login", now=datetime(2026, 7, 1, tzinfo=UTC))["timestamp"]
    '2026-03-01T09:00:00'
    """
    text = decoded(line)
    record: dict[str, object] = {}
    if priority := _PRIORITY.match(text):
        code = int(priority[1])
        if code > 191:
            raise InputError(f"the priority <{code}> is beyond 191", hint=_HINT)
        record |= {"facility": FACILITIES[code >> 3], "severity": SEVERITIES[code & 7]}
        text = text[priority.end() :]
    if modern := _MODERN.match(text) if priority else None:
        names = ("timestamp", "host", "app", "pid", "type")
        record |= {name: None if value == "-" else value for name, value in zip(names, modern.groups(), strict=True)}
        data, message = _structured(text[modern.end() :], kinds or {})
        return {**record, "data": data or None, "message": message.strip().removeprefix("\ufeff") or None}
    classic = _CLASSIC.fullmatch(text)
    if classic is None:
        raise InputError("not a syslog line" if not priority else "not a syslog line after its priority", hint=_HINT)
    iso, old, host, app, pid, message = classic.groups()
    time = iso.replace(",", ".") if iso else _with_year(old, now or datetime.now(UTC))
    return {**record, "timestamp": time, "host": host, "app": app, "pid": pid or None, "message": message or None}


def looks_like_syslog(line: bytes) -> bool:
    """Whether a line begins like a syslog line.

    >>> [looks_like_syslog(line) for line in (b"<34>1 - - - - - -", b"Mar  1 09:00:00 h a: b", b"<http://a> <b> .")]
    [True, True, False]
    """
    return _LOOK.match(line.decode("utf-8", errors="replace")) is not None


def _structured(text: str, kinds: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """The structured data, and the message after it."""
    if text == "-" or text.startswith("- ") or not text:
        return {}, text[2:]
    data: dict[str, object] = {}
    place = 0
    while element := _ELEMENT.match(text, place):
        key, place = element[1], element.end()
        data[key] = _parameters(element[2], kinds) or True
    if not place or (place < len(text) and text[place] != " "):
        hint = 'such as [id name="value"], or - for none; escape ", ] and \\ with a backslash'
        raise InputError("the structured data is not valid", hint=hint)
    return data, text[place:]


def _parameters(text: str, kinds: Mapping[str, str]) -> dict[str, object]:
    data: dict[str, object] = {}
    for name, raw in _PARAMETER.findall(text):
        value = value_of_cell(re.sub(r'\\(["\\\]])', r"\1", raw), kinds.get(name))
        before = data.get(name)
        data[name] = value if name not in data else [*(before if isinstance(before, list) else [before]), value]
    return data


def _with_year(text: str, now: datetime) -> str:
    """Add the latest year in which the time is not in the future; clocks may differ by a day."""
    month, clock = _MONTHS.index(text[:3]) + 1, text[7:]
    for year in range(now.year + 1, now.year - 9, -1):
        text_with_year = f"{year:04}-{month:02}-{text[4:6].replace(' ', '0')}T{clock}"
        try:
            moment = datetime.fromisoformat(text_with_year).replace(tzinfo=UTC)
        except ValueError:
            continue  # February 29th, or no such day
        if moment <= now + timedelta(days=1):
            return text_with_year
    raise InputError(f"timestamp {text!r} is not a valid date", hint=_HINT)
