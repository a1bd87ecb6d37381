"""Events in the papers' notation: `{energy, building}, {type: energy usage, device: computer}`."""

from __future__ import annotations

import re
from datetime import datetime

from likewise.errors import BuildError
from likewise.events import Event, Value, to_datetime, to_instant
from likewise.language.literals import write_literal
from likewise.language.model import Operator
from likewise.language.reading.profiles import ProfileReader
from likewise.language.reading.scanner import Scanner
from likewise.language.reading.source import Source
from likewise.language.reading.terms import meaning
from likewise.language.writing.profile import write_attribute, write_header, write_theme, write_value

_BARE_ID = re.compile(r"\s*+(\w[\w.\-]*+)\s*+[:=]")
_COLON = re.compile(r"\s*+:")


def parse_event(text: str, *, source: str = "<text>") -> Event:
    """Parse the single event of a text [000 sec 3.3, 004 sec 5.2]; also `event(room = 273)` of [003 sec 2.1].

    An id may precede it (`e1: {…}`), and a time may follow it (`at …` or `from … to …`).

    >>> parse_event("{energy}, {device: computer, office: room 112}}").tuples
    (('device', 'computer'), ('office', 'room 112'))
    """
    origin = Source(text, source)
    origin.check()
    reader = _EventReader(Scanner(origin))
    event = reader.event()
    if reader.skip():
        reader.scanner.unexpected(("the end of the event", "`at` or `from` and a time"))
    return event


def format_event(event: Event) -> str:
    """An event on one line, in the form that `parse_event` reads.

    >>> format_event(Event.of({"type": "parking", "slot": [1, 2]}, id="e1", theme=["transport"]))
    'e1: {transport} {type: parking, slot: 1, slot: 2}'
    """
    tuples = ", ".join(f"{write_attribute(name)}: {write_value(value)}" for name, value in event.tuples)
    parts = [f"{write_header(event.id)}:"] if event.id else []
    if event.theme:
        parts.append(write_theme(event.theme))
    return " ".join((*parts, "{" + tuples + "}", *_times(event)))


def _times(event: Event) -> tuple[str, ...]:
    if event.start is None:
        return ()
    start, end = event.span
    try:
        moments = tuple(write_literal(to_datetime(instant)) for instant in (start, end))
    except OverflowError as error:
        raise BuildError(f"event {event.id!r} has a time outside the calendar") from error
    return ("at", moments[0]) if start == end else ("from", moments[0], "to", moments[1])


class _EventReader(ProfileReader):
    __slots__ = ()

    def event(self) -> Event:
        """Read the event that starts here."""
        name = self._id()
        tags = self.tags() if self.skip() == "{" else None
        if tags is not None:
            follows = self.go_to_next_set()
            if tags and not follows:
                self.scanner.unexpected(("`{` and the tuples after the theme",))
            if not follows:
                return Event(name, (), (), *self._span())
        tuples = self._tuples()
        self.extra_brace()
        return Event(name, tuples, tuple(dict.fromkeys(tags or ())), *self._span())

    def _id(self) -> str:
        scan = self.scanner
        match = _BARE_ID.match(self.text, scan.pos)
        if match is not None:
            scan.pos = match.end()
            return match[1]
        if self.skip() not in ('"', "“"):
            return ""
        name, colon = scan.quoted(), _COLON.match(self.text, scan.pos)
        if colon is None:
            scan.unexpected(("`:` after the event's id",))
        scan.pos = colon.end()
        return name

    def _tuples(self) -> tuple[tuple[str, Value], ...]:
        closer, tuples = self.open(), list[tuple[str, Value]]()
        if self.skip() == closer:
            self.scanner.pos += 1
            return ()
        while True:
            attribute = self.exact(self.attribute(), "an event")
            operator, at = self.operator(attribute.text)
            if operator is not Operator.EQ:
                self.scanner.fail("an event has values, not comparisons", at=at, expected=("`:`", "`=`"))
            tuples.append((attribute.text, meaning(self.exact_value("an event"), ordered=False)))
            if self.ends_set(closer):
                return tuple(tuples)

    def _span(self) -> tuple[int | None, int | None]:
        scan = self.scanner
        if scan.accept("at"):
            start = self._moment()
            return start, start
        if not scan.accept("from"):
            return None, None
        start, at = self._moment(), scan.require("to").end
        end = self._moment()
        if end < start:
            scan.fail("this event ends before it starts", at=at, hint="swap the two times")
        return start, end

    def _moment(self) -> int:
        at = self.scanner.peek().start
        moment = self.scanner.value(ordered=False)
        if not isinstance(moment, datetime):
            self.scanner.fail("this is not a time", at=at, expected=("a timestamp such as `2026-05-01T10:00:00Z`",))
        return to_instant(moment)
