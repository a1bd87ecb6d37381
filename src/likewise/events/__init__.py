"""Events: the model, its terms, and how events are read and written."""

from likewise.events.event import Event, Instant, Value, to_datetime, to_instant
from likewise.events.formats.csv import read_csv
from likewise.events.formats.json_text import encode_line, written_moment
from likewise.events.formats.jsonl import decode_line, decode_lines
from likewise.events.reading import read_events
from likewise.events.records import BadRecord, DeadLetters, OnError
from likewise.events.terms import normalise, words
from likewise.events.values import parse_text
from likewise.events.wordlists import words_in
from likewise.events.writing import write_events

__all__ = [
    "BadRecord",
    "DeadLetters",
    "Event",
    "Instant",
    "OnError",
    "Value",
    "decode_line",
    "decode_lines",
    "encode_line",
    "normalise",
    "parse_text",
    "read_csv",
    "read_events",
    "to_datetime",
    "to_instant",
    "words",
    "words_in",
    "write_events",
    "written_moment",
]
