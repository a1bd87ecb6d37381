"""Everything that runs on Spark: corpora to spaces, events to matches, streams to detections."""

from likewise.pipeline._columns import Columns, events_from_columns
from likewise.pipeline._corpora import FORMATS, Corpus, Format
from likewise.pipeline._detect import DETECTIONS_SCHEMA, detect
from likewise.pipeline._frame import EVENTS_SCHEMA, as_events, dead_letters
from likewise.pipeline._join import join_by_meaning
from likewise.pipeline._match import MATCHES_SCHEMA, match
from likewise.pipeline._progress import watch
from likewise.pipeline._read import decode_records, read_events
from likewise.pipeline._related import register_related
from likewise.pipeline._session import DEFAULT_MASTER, spark_session
from likewise.pipeline._sinks import ConsoleSink, FileSink, MqttSink, Sink, WebhookSink
from likewise.pipeline._space_job import SpaceOptions, Summary, build_space
from likewise.pipeline._stream import Stream, read_stream
from likewise.pipeline._table import Table

__all__ = [
    "DEFAULT_MASTER",
    "DETECTIONS_SCHEMA",
    "EVENTS_SCHEMA",
    "FORMATS",
    "MATCHES_SCHEMA",
    "Columns",
    "ConsoleSink",
    "Corpus",
    "FileSink",
    "Format",
    "MqttSink",
    "Sink",
    "SpaceOptions",
    "Stream",
    "Summary",
    "Table",
    "WebhookSink",
    "as_events",
    "build_space",
    "dead_letters",
    "decode_records",
    "detect",
    "events_from_columns",
    "join_by_meaning",
    "match",
    "read_events",
    "read_stream",
    "register_related",
    "spark_session",
    "watch",
]
