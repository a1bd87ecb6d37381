"""Events: the model, its terms, and how events are read and written."""

from likewise.events._csv import read_csv
from likewise.events._encode import encode_line
from likewise.events._event import Event, Instant, Value, to_datetime, to_instant
from likewise.events._jsonl import decode_line, decode_lines
from likewise.events._read import read_events
from likewise.events._records import BadRecord, DeadLetters
from likewise.events._terms import normalise, words
from likewise.events._write import write_events

__all__ = [
    "BadRecord",
    "DeadLetters",
    "Event",
    "Instant",
    "Value",
    "decode_line",
    "decode_lines",
    "encode_line",
    "normalise",
    "read_csv",
    "read_events",
    "to_datetime",
    "to_instant",
    "words",
    "write_events",
]
