"""N-Triples, line by line: consecutive statements with the same subject are one event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from likewise.errors import InputError
from likewise.events.event import Event
from likewise.events.files import MAX_LINE, line_batches
from likewise.events.formats.rdf import Draft, RdfNode, event_statements
from likewise.events.records import RecordIntake

_IRI = r"<([^\x00-\x20<>\"{}|^`\\]*(?:\\[uU][^\x00-\x20<>\"{}|^`\\]*)*)>"
_BLANK = r"_:([\w.\-·]*[\w\-·])"
_LITERAL = rf'"((?:[^"\\\n\r]|\\.)*)"(?:\^\^{_IRI}|@([A-Za-z]+(?:-[A-Za-z0-9]+)*))?'
_LINE = re.compile(rf"\s*(?:{_IRI}|{_BLANK})\s*{_IRI}\s*(?:{_IRI}|{_BLANK}|{_LITERAL})\s*\.\s*(?:#.*)?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def read_ntriples(stream: BinaryIO, intake: RecordIntake) -> Iterator[Event]:
    """Yield the events of a stream in order, holding one at a time in memory.

    A bad statement is one bad record; the other statements of the event still count.
    """
    draft: Draft | None = None
    for first, lines in line_batches(stream):
        for number, line in enumerate(lines, first):
            try:
                statement = parse_statement(line)
                if statement is None:
                    continue
                subject, predicate, value = statement
                if draft is None or draft.subject != subject:
                    yield from finished(draft, intake)
                    draft = Draft(subject, number)
                draft.add(predicate, value)
            except InputError as flaw:
                intake.reject(flaw, line=number, raw=line)
    yield from finished(draft, intake)


def finished(draft: Draft | None, intake: RecordIntake) -> Iterator[Event]:
    """Yield the drafted event if it is valid and its id is new."""
    if draft is None:
        return
    raw = draft.subject.text.encode("utf-8", errors="backslashreplace")
    try:
        event = draft.event()
    except InputError as flaw:
        intake.reject(flaw, line=draft.line, raw=raw)
        return
    if intake.is_new(event.id, line=draft.line, raw=raw):
        yield event


def parse_statement(line: bytes) -> tuple[RdfNode, str, RdfNode] | None:
    """Subject, predicate and object of a line; None for a blank line or a comment.

    >>> parse_statement(b'<urn:e> <urn:p> "x"@en .')
    (RdfNode(text='urn:e', kind='iri', datatype='', language=''), 'urn:p', \
RdfNode(text='x', kind='literal', datatype='', language='en'))
    """
    if len(line) > MAX_LINE:
        raise InputError(f"the line is longer than {MAX_LINE >> 20} MiB")
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-8 at byte {error.start + 1}") from None
    if not text or text.startswith("#"):
        return None
    match = _LINE.fullmatch(text)
    if match is None:
        raise InputError("not an N-Triples statement", hint='<subject> <predicate> <object> or "literal" .')
    subject, blank, predicate, iri, blank_value, literal, datatype, language = match.groups()
    return _node(subject, blank), _plain(predicate), _value_node(iri, blank_value, literal, datatype, language)


def _node(iri: str | None, blank: str | None) -> RdfNode:
    return RdfNode(_plain(iri)) if iri is not None else RdfNode(f"_:{blank}", "blank")


def _value_node(
    iri: str | None, blank: str | None, literal: str | None, datatype: str | None, language: str | None
) -> RdfNode:
    if literal is None:
        return _node(iri, blank)
    return RdfNode(_plain(literal), "literal", _plain(datatype or ""), language or "")


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code is None:
        if match[3] not in _LETTERS:
            raise InputError(f"unknown escape {match[0]!r}")
        return _LETTERS[match[3]]
    point = int(code, 16)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise InputError(f"{match[0]!r} is not a character")
    return chr(point)


def encode_ntriples(event: Event) -> bytes:
    r"""The event as N-Triples, a line per statement.

    >>> encode_ntriples(Event.of({"slot": 1}, id="e1"))
    b'<urn:likewise:event:e1> <urn:likewise:term:slot> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    """
    subject, pairs = event_statements(event)
    return "".join(f"{subject} {predicate} {value} .\n" for predicate, value in pairs).encode()
