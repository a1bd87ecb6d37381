"""Events: the model, its terms, and how events are read and written."""

from likewise.events.arrow import BatchColumns, columns_of_batch, instants, theme_numbers, value_of_text
from likewise.events.columns import EventColumns, Renumbering, TupleTable, times_of
from likewise.events.event import Event, Instant, Value, clock_text, iso_text, to_datetime, to_instant
from likewise.events.formats.csv import CsvColumns, separator_of
from likewise.events.formats.json_text import encode_line, written_moment
from likewise.events.formats.jsonl import decode_line, decode_lines
from likewise.events.formats.logs.syslog import SYSLOG_MAPPING
from likewise.events.formats.parquet import parquet_batches
from likewise.events.guessing import guess_mapping
from likewise.events.instants import NO_TIME, TIME_UNITS, TimeRule, parse_instant, read_times, zone_of
from likewise.events.mapping import COMMA, JOINED, RecordMapping
from likewise.events.reading import holds_json_lines, look_at, read_batches, read_events
from likewise.events.records import BadRecord, DeadLetters, OnError, RecordIntake
from likewise.events.text.plurals import words_in
from likewise.events.text.terms import normalise, words
from likewise.events.values import parse_text
from likewise.events.writing import write_events

__all__ = [
    "COMMA",
    "JOINED",
    "NO_TIME",
    "SYSLOG_MAPPING",
    "TIME_UNITS",
    "BadRecord",
    "BatchColumns",
    "CsvColumns",
    "DeadLetters",
    "Event",
    "EventColumns",
    "Instant",
    "OnError",
    "RecordIntake",
    "RecordMapping",
    "Renumbering",
    "TimeRule",
    "TupleTable",
    "Value",
    "clock_text",
    "columns_of_batch",
    "decode_line",
    "decode_lines",
    "encode_line",
    "guess_mapping",
    "holds_json_lines",
    "instants",
    "iso_text",
    "look_at",
    "normalise",
    "parquet_batches",
    "parse_instant",
    "parse_text",
    "read_batches",
    "read_events",
    "read_times",
    "separator_of",
    "theme_numbers",
    "times_of",
    "to_datetime",
    "to_instant",
    "value_of_text",
    "words",
    "words_in",
    "write_events",
    "written_moment",
    "zone_of",
]
