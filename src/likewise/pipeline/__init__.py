"""Everything that runs on Spark: corpora to spaces, events to matches, streams to detections."""

from likewise.pipeline.background import BackgroundChoice, background_of
from likewise.pipeline.detection.batch import detect
from likewise.pipeline.events.frame import EVENTS_SCHEMA, Keep
from likewise.pipeline.events.read import decode_records, read_events
from likewise.pipeline.events.table import events_from_columns
from likewise.pipeline.events.transfer import as_events, dead_letters
from likewise.pipeline.joins.join import Names, join_by_meaning
from likewise.pipeline.joins.sql import Spaces, register_related
from likewise.pipeline.joins.tables import join_tables
from likewise.pipeline.matching import match
from likewise.pipeline.options import LikewiseWarning, Span, Subscriptions, microseconds
from likewise.pipeline.session import Listener, spark_session, watch
from likewise.pipeline.spaces.build import build_space
from likewise.pipeline.spaces.corpora import FORMATS, Corpus, Format
from likewise.pipeline.streaming.sinks import ConsoleSink, FileSink, MqttSink, Sink, WebhookSink
from likewise.pipeline.streaming.stream import Places, Stream, read_stream
from likewise.pipeline.streaming.subscriptions import FixedRecipe, SubscriptionTable, Versions
from likewise.pipeline.trouble import check

__all__ = [
    "EVENTS_SCHEMA",
    "FORMATS",
    "BackgroundChoice",
    "ConsoleSink",
    "Corpus",
    "FileSink",
    "FixedRecipe",
    "Format",
    "Keep",
    "LikewiseWarning",
    "Listener",
    "MqttSink",
    "Names",
    "Places",
    "Sink",
    "Spaces",
    "Span",
    "Stream",
    "SubscriptionTable",
    "Subscriptions",
    "Versions",
    "WebhookSink",
    "as_events",
    "background_of",
    "build_space",
    "check",
    "dead_letters",
    "decode_records",
    "detect",
    "events_from_columns",
    "join_by_meaning",
    "join_tables",
    "match",
    "microseconds",
    "read_events",
    "read_stream",
    "register_related",
    "spark_session",
    "watch",
]
