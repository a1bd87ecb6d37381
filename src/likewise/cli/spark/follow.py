"""A running stream as its user sees it: reported batch by batch, its failure in one line."""

from __future__ import annotations

import contextlib
import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from likewise.cli.ending import AGAIN, Ending
from likewise.cli.output import counted, errors
from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from likewise.pipeline import Stream

_POLL: Final = 0.3
_UNPREPARED: Final = ("Python worker failed to connect back", "STREAMING_PYTHON_RUNNER_INITIALIZATION")
"""Spark's error for a Python process that takes more than ten seconds to start (no setting gives it more), or that is
killed while it prepares a stream."""
_TRIES: Final = 5


@dataclass(slots=True)
class ReportedBatches:
    """The batches of a stream that were reported so far."""

    batches: int = 0
    events: int = 0
    refused: int = 0
    seconds: float = 0.0
    log: Path | None = None
    _seen: int = -1
    _ready: bool = False

    @property
    def summary(self) -> dict[str, object]:
        """In numbers."""
        numbers = {name: getattr(self, name) for name in ("batches", "events", "refused")}
        return {**numbers, "seconds": round(self.seconds, 3)}

    def follow(self, job: Stream, ending: Ending, *, seconds: float | None = None) -> None:
        """Start a stream and report every micro-batch until it ends, fails or is to end."""
        started = time.monotonic()
        for tried in itertools.count(1):
            query = job.start()
            while query.isActive and not ending.requested and (seconds is None or self.seconds < seconds):
                self._batches(query)
                self._greet(query)
                time.sleep(_POLL)
                self.seconds = time.monotonic() - started
            failure = query.exception()
            query.stop()
            self._batches(query)
            if failure is None or ending.requested:
                return
            if tried == _TRIES or not any(message in str(failure) for message in _UNPREPARED):
                raise _failed(str(failure), self.log)
            errors.print("the process that prepares the stream was lost or too slow: once more")

    def _batches(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            number, count, refused = int(progress["batchId"]), events_in(progress), refused_in(progress)
            # A batch in which only time went on is no news.
            if number > self._seen and (count or refused):
                self._seen, self.batches = number, self.batches + 1
                self.events, self.refused = self.events + count, self.refused + refused
                took = progress["durationMs"].get("triggerExecution", 0) / 1000
                rate = f" ({count / took:,.0f}/s)" if count > took > 0 else ""
                late = f", {refused:,} refused" if refused else ""
                errors.print(f"batch {number}: {counted(count, 'event')} in {took:.1f} s{rate}{late}", highlight=False)

    def _greet(self, query: StreamingQuery) -> None:
        """Print that the stream waits, once Spark has started and if no batch was reported."""
        if not self._ready and (query.lastProgress or query.status["message"].startswith("Waiting for")):
            self._ready = True
            if not self.batches:
                errors.print("waiting for events")


def _failed(text: str, log: Path | None) -> LikewiseError:
    """The failure of a stream in one line; the whole of it is kept in a file."""
    from likewise.pipeline.trouble import stream_failure

    hint = AGAIN
    if log is not None:
        with contextlib.suppress(OSError):
            log.write_text(text, encoding="utf-8")
            hint = f"{AGAIN}; Spark's whole message is in {log}"
    return LikewiseError(f"the stream failed: {stream_failure(text)}", hint=hint)


def events_in(progress: Any) -> int:
    """How many events and other records a micro-batch had; the ticks of a heartbeat are none."""
    return sum(int(source["numInputRows"]) for source in progress["sources"] if not _is_clock(source))


def _is_clock(source: Any) -> bool:
    """Spark does not give the name of a source; the offsets of a clock are beats."""
    return "beats" in str(source["endOffset"])


def refused_in(progress: Any) -> int:
    """How many events a micro-batch refused, as late or as no events; matching does not count them."""
    counts = (progress["observedMetrics"] or {}).get("refused")
    return 0 if counts is None else int(counts["events"])
