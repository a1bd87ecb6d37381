"""Converts between RDF statements and events: one subject is one event, its statements are tuples [002 sec 5.1].

Names of any vocabulary are normalised as in 002 section 6.1: the tail of the URI, split, singular, in lower case.
Literals keep their type; literals in languages other than English are dropped. Likewise's own names (`urn:likewise:…`)
are kept exactly, so that written events can be read back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, unquote

import msgspec

from likewise.errors import InputError
from likewise.events.event import Event, Instant, Value
from likewise.events.formats.json_text import written_instant, written_moment, written_value
from likewise.events.instants import parse_instant
from likewise.events.text.terms import normalise
from likewise.events.values import check_span, check_text, parse_value

OWN = "urn:likewise:"
EVENT, TERM = OWN + "event:", OWN + "term:"
TIME, END, THEME = OWN + "time", OWN + "end", OWN + "theme"
XSD = "http://www.w3.org/2001/XMLSchema#"

_INTEGERS = frozenset(
    XSD + sign + size
    for sign, sizes in {
        "": ("integer", "int", "long", "short", "byte", "positiveInteger", "negativeInteger"),
        "non": ("NegativeInteger", "PositiveInteger"),
        "unsigned": ("Int", "Long", "Short", "Byte"),
    }.items()
    for size in sizes
)
_FLOATS = frozenset((XSD + "double", XSD + "float", XSD + "decimal"))
_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLEAN = {"true": True, "1": True, "false": False, "0": False}
# Ids that are written as they are; others are quoted under Likewise's own prefix.
_PLAIN_ID = re.compile(r"(?:https?://|urn:(?!likewise:))[^\x00-\x20<>\"{}|^`\\\x7f-\x9f]+")


class RdfNode(msgspec.Struct, frozen=True, gc=False):
    """A node of a statement: an IRI, a blank node, or a literal with its type or language."""

    text: str
    kind: str = "iri"
    datatype: str = ""
    language: str = ""


@dataclass(slots=True)
class Draft:
    """An event whose statements are still being read."""

    subject: RdfNode
    line: int | None = None
    tuples: dict[tuple[str, type, Value], tuple[str, Value]] = field(default_factory=dict)
    theme: list[str] = field(default_factory=list)
    start: Instant | None = None
    end: Instant | None = None

    @property
    def id(self) -> str:
        """The subject's IRI, or the original id if Likewise quoted it."""
        text = self.subject.text
        return unquote(text.removeprefix(EVENT)) if text.startswith(EVENT) else text

    def add(self, predicate: str, value: RdfNode, *, prefix: str = "") -> None:
        """Add one statement; raises InputError if it is not valid."""
        if predicate == THEME:
            self.theme.append(check_text("theme", value.text))
        elif predicate == TIME:
            self.start = parse_instant("time", value.text)
        elif predicate == END:
            self.end = parse_instant("end", value.text)
        elif not _is_foreign(value.language):
            name = f"{prefix} {named(predicate)}" if prefix else named(predicate)
            item = _value(name, value)
            # A graph is a set, so repeated statements count once; 1, 1.0 and true differ.
            self.tuples.setdefault((name, item.__class__, item), (name, item))

    def event(self) -> Event:
        """The event of all statements."""
        if not self.tuples:
            raise InputError(f"event {self.id[:80]!r} has no attributes", hint="all values may be in another language")
        theme = tuple(dict.fromkeys(self.theme))
        return Event(
            check_text("id", self.id), tuple(self.tuples.values()), theme, self.start, check_span(self.start, self.end)
        )


def _is_foreign(language: str) -> bool:
    return bool(language) and language.lower().partition("-")[0] != "en"


def named(iri: str) -> str:
    """The term of an IRI."""
    name = unquote(iri.removeprefix(TERM)) if iri.startswith(TERM) else normalise(iri)
    if not name:
        raise InputError("an attribute has an empty name")
    return check_text("a name", name)


def _value(name: str, node: RdfNode) -> Value:
    if node.kind == "iri":
        return named(node.text)
    if node.kind == "blank":
        raise InputError(f"attribute {name[:60]!r} has a blank node as its value", hint="use Turtle for nested objects")
    return _literal(name, node.text, node.datatype)


def _literal(name: str, text: str, datatype: str) -> Value:
    value: Value | None = text
    if datatype in _INTEGERS:
        value = int(text) if _INTEGER.fullmatch(text) else None
    elif datatype in _FLOATS:
        value = float(text) if _FLOAT.fullmatch(text) else None
    elif datatype == XSD + "boolean":
        value = _BOOLEAN.get(text)
    elif datatype == XSD + "dateTime":
        value = _moment(text)
    if value is None:
        raise InputError(f"attribute {name[:60]!r}: {text[:60]!r} is not a valid {datatype.removeprefix(XSD)}")
    if isinstance(value, datetime):
        return value
    checked = parse_value(name, value)
    # Literals have explicit types, so text that looks like a timestamp stays text.
    return text if isinstance(checked, datetime) else checked


def _moment(text: str) -> datetime | None:
    try:
        parse_instant("value", text)
        moment = datetime.fromisoformat(text)
    except (InputError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def event_statements(event: Event) -> tuple[str, list[tuple[str, str]]]:
    """The event's subject, and its predicates and objects in N-Triples spelling."""
    if not event.tuples or not event.id:
        raise InputError(f"event {event.id!r} needs an id and attributes to be RDF")
    try:
        subject = event.id if _PLAIN_ID.fullmatch(event.id) else EVENT + quote(event.id, safe="")
        pairs = [(f"<{TERM}{quote(name, safe='')}>", _written(event, name, value)) for name, value in event.tuples]
    except UnicodeEncodeError:
        raise InputError(f"event {event.id!r} has text that is not valid Unicode") from None
    times = [(TIME, event.start), (END, event.end if event.end != event.start else None)]
    pairs += [(f"<{name}>", _typed(_iso(written_instant(at)), "dateTime")) for name, at in times if at is not None]
    return f"<{subject}>", pairs + [(f"<{THEME}>", _quoted(tag)) for tag in event.theme]


def _written(event: Event, name: str, value: Value) -> str:
    value = written_value(event, name, value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, datetime):
        return _typed(_iso(value), "dateTime")
    if isinstance(value, bool):
        return _typed(str(value).lower(), "boolean")
    return _typed(repr(value), "integer" if isinstance(value, int) else "double")


def _iso(moment: datetime) -> str:
    return written_moment(moment).isoformat().replace("+00:00", "Z")


def _typed(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_CONTROLS = {code: f"\\u{code:04X}" for code in (*range(32), 127, 0x85, 0x2028, 0x2029)} | _ESCAPES


def _quoted(text: str) -> str:
    text.encode()
    return f'"{text.translate(_CONTROLS)}"'
