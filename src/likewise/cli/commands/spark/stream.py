"""`likewise stream`: matches or detections of a stream, on Spark, for as long as it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import settled, spark_options
from likewise.cli.options import MeaningOptions, SparkAddress, grouped
from likewise.cli.output import counted, errors, print_json
from likewise.cli.reading.records import Records
from likewise.errors import BuildError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from likewise.events import RecordMapping
    from likewise.pipeline import Places, Sink, Stream


def register(app: typer.Typer) -> None:
    """Add the `stream` command."""
    app.command("stream")(stream)


@dataclass(frozen=True, slots=True)
class Ends:
    """Where events come from, and where results go."""

    panel: ClassVar[str] = "Source and sink"
    source: Annotated[str, typer.Option(help="files, rate, socket, mqtt or broker.")] = "files"
    given: Annotated[
        list[str] | None, typer.Option("--from", metavar="KEY=VALUE", help="Option of the source; may be repeated.")
    ] = None
    sink: Annotated[str, typer.Option(help="files, console, mqtt or webhook.")] = "console"
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="KEY=VALUE", help="Option of the sink; may be repeated.")
    ] = None
    dead_letters: Annotated[
        Path | None, typer.Option(help="Folder for bad records and late events, with the reasons.")
    ] = None


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """When batches run, and how patterns treat event time."""

    panel: ClassVar[str] = "Time and limits"
    every: Annotated[str | None, typer.Option(help="Time between batches, e.g. `5s`.")] = None
    once: Annotated[bool, typer.Option("--once", help="Process the events that are there, then stop.")] = False
    seconds: Annotated[float | None, typer.Option("--for", help="Stop after this many seconds.")] = None
    lateness: Annotated[
        str, typer.Option(help="How late events may arrive for patterns, e.g. `30s`; detections wait that long.")
    ] = "0 seconds"
    heartbeat: Annotated[
        str | None,
        typer.Option(
            help="For patterns over live feeds: let event time follow the clock, this far behind, e.g. `10s`."
        ),
    ] = None
    max_ahead: Annotated[
        str, typer.Option(help="For patterns: refuse events that are further ahead of the clock than this.")
    ] = "366 days"
    spread: Annotated[
        bool,
        typer.Option(help="Distribute patterns by join key; switch off if events have several values of it."),
    ] = True


@grouped
def stream(
    subscriptions: Annotated[Path, typer.Argument(help="File or folder of subscriptions; read again for every batch.")],
    *,
    checkpoint: Annotated[Path, typer.Option(help="Folder in which the stream stores its progress.")],
    ends: Ends,
    timing: StreamTiming,
    meaning: MeaningOptions,
    records: Records,
    what: Annotated[
        str | None, typer.Option(help="matches or detections. [default: detections if there is a pattern]")
    ] = None,
    where: SparkAddress,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as one JSON line at the end.")] = False,
) -> None:
    """Match or detect in a stream until it is stopped; with the same checkpoint it continues.

    Sources (`--from`): `files` (path, format, maxFilesPerTrigger), `socket` (host, port), `mqtt` (broker, topic,
    client), `broker` (database, namespace: the log of `likewise serve`), `rate` (path of an event file to replay
    in a loop, rowsPerSecond). Sinks (`--to`): `console` (limit), `files` (path, format), `mqtt` (broker, topic,
    patience), `webhook` (url, size, patience, header.NAME).

    Detections are sent as soon as events complete them. With `--lateness` they wait, because earlier events may still
    arrive. An absence is detected when a later event shows that its time has passed, or with `--heartbeat` by the
    clock. Ctrl-C and SIGTERM stop a stream without loss; files contain no result twice.

    Examples: `likewise stream subscriptions.lw --from path=inbox --sink files --to path=matches --checkpoint state`

    `likewise stream patterns.lw --source mqtt --from broker=mqtt://localhost --from topic=home/# --heartbeat 10s
    --checkpoint state --dead-letters letters`
    """
    from likewise.cli.ending import Ending
    from likewise.cli.spark.follow import ReportedBatches
    from likewise.cli.spark.session import session
    from likewise.pipeline import Places, read_stream

    source, sink = _pairs(ends.given, "--from"), _pairs(ends.to, "--to")
    meaning = settled(meaning)
    guard(
        reads={
            "SUBSCRIPTIONS": subscriptions,
            "--from path": source.get("path"),
            "--background": meaning.background,
            "--glossary": meaning.glossary,
            "--mapping": records.mapping,
        },
        writes={"--save-mapping": records.save_mapping},
        makes={"--checkpoint": checkpoint, "--to path": sink.get("path"), "--dead-letters": ends.dead_letters},
    )
    _check(what, subscriptions)
    places = Places(str(checkpoint.absolute()))
    job = _job(what, subscriptions, ends=ends, sink=sink, timing=timing, meaning=meaning, places=places)
    _check_source(ends.source, source)
    source, mapping = _reading(ends.source, source, records)
    ending, batches = Ending(), ReportedBatches(log=checkpoint / "failure.txt")
    with ending.handling_signals(), ending.without_jvm(), session(where.master, where.remote) as spark:
        ending.install()
        running = job(read_stream(spark, ends.source, source, places=places, mapping=mapping))
        if not ending.requested:
            batches.follow(running, ending, seconds=timing.seconds)
    if as_json:
        print_json(batches.summary)
    else:
        events = counted(batches.events, "event")
        errors.print(f"stopped after {events}; run it again with --checkpoint {checkpoint} to continue")


def _job(
    what: str | None,
    subscriptions: Path,
    *,
    ends: Ends,
    sink: dict[str, str],
    timing: StreamTiming,
    meaning: MeaningOptions,
    places: Places,
) -> Callable[[DataFrame], Stream]:
    """A stream, complete but for its events, so that wrong options are reported before Spark starts."""
    from likewise.pipeline import FileSink, Stream, SubscriptionTable

    letters = ends.dead_letters
    return partial(
        Stream,
        source=SubscriptionTable(str(subscriptions.absolute()), places.pins, stream_arguments(meaning)),
        sink=_sink(ends.sink, sink, places.ledger),
        checkpoint=places.checkpoint,
        what=what,  # type: ignore[arg-type]  # checked before
        dead_letters=None if letters is None else FileSink(str(letters.absolute()), "json"),
        trigger=_trigger(timing.every, once=timing.once),
        lateness=timing.lateness,
        spread=timing.spread,
        max_ahead=timing.max_ahead,
        heartbeat=timing.heartbeat,
        background=None if meaning.no_background else "stream",
    )


def stream_arguments(meaning: MeaningOptions) -> dict[str, Any]:
    """How words are compared, as arguments of `Recipe.of`, by which workers build from the subscriptions they read."""
    from likewise.pipeline.options import glossary_text

    options = spark_options(meaning)
    options["glossary"] = glossary_text(options["glossary"], measure=meaning.measure)
    return {"spaces": meaning.space or (), "measure": options.pop("measure"), "options": options}


def _reading(source: str, asked: dict[str, str], records: Records) -> tuple[dict[str, str], RecordMapping | None]:
    """Options and mapping of the source; those of files are guessed, records from the network need all fields named."""
    if records.format != "auto" and "format" not in asked:
        asked = {**asked, "format": records.format}
    if source not in ("files", "rate"):
        mapping = records.whole_mapping()
        if mapping is not None and source == "broker":
            raise BuildError("a broker's log contains events already", hint="leave out the options that name fields")
        return asked, mapping
    reading = replace(records, format=asked.get("format", "auto")).on_spark(asked["path"])
    if reading["format"] != "auto":
        asked = {**asked, "format": reading["format"]}
    return asked | reading.get("options", {}), reading["columns"]


def _check(what: str | None, subscriptions: Path) -> None:
    if what not in (None, "matches", "detections"):
        raise BuildError(f"a stream cannot return {what!r}", hint="choose matches or detections")
    if not subscriptions.exists():
        raise BuildError(f"there are no subscriptions at {subscriptions}", hint="give a file or a folder")


def _check_source(source: str, options: dict[str, str]) -> None:
    """Report errors of a source before Spark starts."""
    from likewise.pipeline.streaming.stream import SOURCES

    needed = {
        "broker": ("database",),
        "files": ("path",),
        "mqtt": ("broker", "topic"),
        "rate": ("path",),
        "socket": ("port",),
    }
    if source not in SOURCES:
        raise BuildError(f"there is no source {source!r}", hint=f"choose {', '.join(SOURCES)}")
    for name in needed[source]:
        if not options.get(name):
            raise BuildError(f"the source {source} needs {name}", hint=f"give --from {name}=…")
    path = options.get("path", "")
    if "path" in needed[source] and "://" not in path and not glob(path):
        raise BuildError(f"there is nothing at --from path={path}", hint="give an existing folder or file")


def _trigger(every: str | None, *, once: bool) -> dict[str, Any]:
    if every and once:
        raise BuildError("--every and --once exclude each other", hint="leave one of them out")
    if once:
        return {"availableNow": True}
    if not every:
        return {}
    from likewise.pipeline import microseconds

    return {"processingTime": f"{(microseconds(every) or 0) // 1000} milliseconds"}


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """KEY=VALUE options as a dict.

    >>> _pairs(["path=in", "format=jsonl"], "--from")
    {'path': 'in', 'format': 'jsonl'}
    """
    out = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise BuildError(f"{option} {pair!r} is not KEY=VALUE", hint=f"such as {option} path=folder")
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
        raise BuildError(f"there is no sink {name!r}", hint=f"choose {', '.join(kinds)}")
    kind, needed = kinds[name]
    for key in needed:
        if key not in options:
            raise BuildError(f"the sink {name} needs {key}", hint=f"give --to {key}=…")
    if name in ("mqtt", "webhook"):
        options["ledger"] = ledger
    try:
        sink: Sink = kind(**_typed(options))
    except TypeError:
        raise BuildError(
            f"the sink {name} does not take {', '.join(options)}", hint="see likewise stream --help"
        ) from None
    return sink


_NUMBERS = {"limit": int, "patience": float, "size": int}


def _typed(options: dict[str, str]) -> dict[str, Any]:
    """Convert the options of a sink: numbers from text, and `header.NAME` to a dictionary.

    >>> _typed({"url": "http://x", "size": "10", "header.Authorization": "Bearer y"})
    {'url': 'http://x', 'size': 10, 'headers': {'Authorization': 'Bearer y'}}
    """
    out: dict[str, Any] = {}
    for key, value in options.items():
        if key.startswith("header."):
            out.setdefault("headers", {})[key.removeprefix("header.")] = value
            continue
        try:
            out[key] = _NUMBERS.get(key, str)(value)
        except ValueError:
            raise BuildError(f"{key} must be a number, not {value!r}", hint=f"such as --to {key}=10") from None
    return out
