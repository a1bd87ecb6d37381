"""`likewise stream`: matches or detections of a stream, on Spark, for as long as it runs."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._output import errors, print_json
from likewise.errors import BuildError, LikewiseError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from likewise.pipeline import Sink

_POLL = 0.3


def register(app: typer.Typer) -> None:
    """Add the `stream` command."""
    app.command("stream")(stream)


def stream(
    subscriptions: Annotated[Path, typer.Argument(help="File or folder of subscriptions; read again for every batch.")],
    *,
    checkpoint: Annotated[Path, typer.Option(help="Folder in which the stream remembers where it is.")],
    source: Annotated[str, typer.Option(help="files, rate, socket or mqtt.")] = "files",
    given: Annotated[list[str] | None, typer.Option("--from", metavar="KEY=VALUE", help="About the source.")] = None,
    sink: Annotated[str, typer.Option(help="files, console, mqtt or webhook.")] = "console",
    to: Annotated[list[str] | None, typer.Option("--to", metavar="KEY=VALUE", help="About the sink.")] = None,
    what: Annotated[str | None, typer.Option(help="matches or detections, if not told by the subscriptions.")] = None,
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    approach: Annotated[str | None, typer.Option(help="exact, approximate, thematic, …")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Least score of a match.")] = None,
    delay: Annotated[
        str, typer.Option(help="How late events may come for patterns; detections wait as long.")
    ] = "0 seconds",
    every: Annotated[str | None, typer.Option(help="Time between batches, e.g. `5 seconds`.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, then end.")] = False,
    seconds: Annotated[float | None, typer.Option("--for", help="End after so many seconds.")] = None,
    max_ahead: Annotated[
        str, typer.Option(help="For patterns: events further ahead of the clock than this are refused.")
    ] = "366 days",
    spread: Annotated[
        bool, typer.Option(help="Spread a bound pattern by its key; not, if events have several values of it.")
    ] = True,
    dead_letter: Annotated[
        Path | None, typer.Option(help="Folder for records that are no events and for late events, with the reason.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A summary as one JSON line at the end.")] = False,
) -> None:
    """Match or detect in a stream until it is stopped; started again with the same checkpoint it goes on.

    Sources: `files` (path, format, maxFilesPerTrigger), `socket` (host, port), `mqtt` (broker, topic), `rate`
    (path of an event file to tell over and over, rowsPerSecond). Sinks: `console`, `files` (path, format),
    `mqtt` (broker, topic), `webhook` (url).

    Detections are told as soon as events complete them; with `--delay`, once an event is so much later, since
    until then earlier ones may come. What must not happen is known when an event comes that is late enough.

    Example: `likewise stream subscriptions.lw --from path=inbox --sink files --to path=matches --checkpoint state`
    """
    from likewise.cli._spark import session
    from likewise.pipeline import FileSink, Stream, Table, read_stream
    from likewise.pipeline._stream import Places

    places = Places(str(checkpoint.absolute()))
    target = _sink(sink, _pairs(to, "--to"), places.ledger)
    arguments: dict[str, Any] = {"spaces": space or (), "options": {"approach": approach, "threshold": threshold}}
    _check(what, subscriptions)
    trigger = _trigger(every, once=once)
    with session(master, remote) as spark:
        events = read_stream(spark, source, _pairs(given, "--from"), places=places)
        job = Stream(
            events,
            Table(str(subscriptions.absolute()), places.pins, arguments),
            target,
            places.checkpoint,
            what=what,  # type: ignore[arg-type]  # checked above
            letters=None if dead_letter is None else FileSink(str(dead_letter.absolute()), "json"),
            trigger=trigger,
            delay=delay,
            spread=spread,
            max_ahead=max_ahead,
        )
        summary = _follow(job.start(), seconds)
    if as_json:
        print_json(summary)


def _check(what: str | None, subscriptions: Path) -> None:
    if what not in (None, "matches", "detections"):
        raise BuildError(f"a stream gives no {what!r}", hint="matches or detections")
    if not subscriptions.exists():
        raise BuildError(f"there are no subscriptions at {subscriptions}", hint="give a file or a folder")


def _trigger(every: str | None, *, once: bool) -> dict[str, Any]:
    if every and once:
        raise BuildError("--every and --once do not go together", hint="leave one of them out")
    return {"availableNow": True} if once else {"processingTime": every} if every else {}


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """KEY=VALUE options as a dict.

    >>> _pairs(["path=in", "format=jsonl"], "--from")
    {'path': 'in', 'format': 'jsonl'}
    """
    out = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise BuildError(f"{option} {pair!r} is no KEY=VALUE", hint=f"such as {option} path=folder")
        out[key] = value
    return out


def _sink(name: str, options: dict[str, str], ledger: str) -> Sink:
    from likewise.pipeline import ConsoleSink, FileSink, MqttSink, WebhookSink

    kinds: dict[str, tuple[Any, tuple[str, ...]]] = {
        "console": (ConsoleSink, ()),
        "files": (FileSink, ("path",)),
        "mqtt": (MqttSink, ("broker",)),
        "webhook": (WebhookSink, ("url",)),
    }
    if name not in kinds:
        raise BuildError(f"no sink {name!r}", hint=f"one of {', '.join(kinds)}")
    kind, needed = kinds[name]
    for key in needed:
        if key not in options:
            raise BuildError(f"the sink {name} needs {key}", hint=f"give --to {key}=…")
    if name in ("mqtt", "webhook"):
        options["ledger"] = ledger
    try:
        sink: Sink = kind(**options)
    except TypeError:
        raise BuildError(
            f"the sink {name} does not take {', '.join(options)}", hint="see likewise stream --help"
        ) from None
    return sink


def _follow(queries: list[StreamingQuery], seconds: float | None) -> dict[str, object]:
    """Tell of every micro-batch until the stream ends, fails or is interrupted."""
    started, told = time.monotonic(), Told()
    try:
        with _terminable():
            while any(query.isActive for query in queries):
                told.follow(queries[0])
                if seconds is not None and time.monotonic() - started > seconds:
                    break
                time.sleep(_POLL)
    except KeyboardInterrupt:
        errors.print("stopping")
    told.follow(queries[0])
    failures = [query.exception() for query in queries]
    for query in queries:
        query.stop()
    for failure in failures:
        if failure is not None:
            raise LikewiseError(
                f"the stream failed: {failure}", hint="mend it and start again: it goes on where it was"
            )
    return {
        "batches": told.seen + 1,
        "events": told.rows,
        "refused": told.refused,
        "seconds": round(time.monotonic() - started, 3),
    }


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Lets SIGTERM end a stream as Ctrl-C does: service managers send it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class Told:
    """What was told of a stream so far."""

    seen: int = -1
    rows: int = 0
    refused: int = 0

    def follow(self, query: StreamingQuery) -> None:
        """Tell of the micro-batches that are new."""
        for progress in query.recentProgress:
            number, count = int(progress["batchId"]), int(progress["numInputRows"])
            if number > self.seen and (count or progress["durationMs"].get("addBatch")):
                refused = refused_in(progress)
                self.seen, self.rows, self.refused = number, self.rows + count, self.refused + refused
                took = progress["durationMs"].get("triggerExecution", 0) / 1000
                rate = f" ({count / took:,.0f}/s)" if took else ""
                late = f", {refused:,} refused" if refused else ""
                errors.print(f"batch {number}: {count:,} events in {took:.1f} s{rate}{late}", highlight=False)


def refused_in(progress: Any) -> int:
    """How many events a micro-batch refused, as late or as no events; matching does not count them."""
    told = (progress["observedMetrics"] or {}).get("refused")
    return 0 if told is None else int(told["events"])
