"""Everything that runs on Spark: corpora to spaces, events to matches, streams to detections."""

from likewise.pipeline._corpora import FORMATS, Corpus, Format
from likewise.pipeline._progress import watch
from likewise.pipeline._session import DEFAULT_MASTER, spark_session
from likewise.pipeline._space_job import SpaceOptions, Summary, build_space

__all__ = [
    "DEFAULT_MASTER",
    "FORMATS",
    "Corpus",
    "Format",
    "SpaceOptions",
    "Summary",
    "build_space",
    "spark_session",
    "watch",
]
