"""`likewise stream`: matches or detections of a stream, on Spark, for as long as it runs."""

from __future__ import annotations

from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import settled, spark_options
from likewise.cli.options import MeaningOptions, grouped
from likewise.cli.output import counted, errors, print_json
from likewise.cli.reading.records import Records
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.events import RecordMapping
    from likewise.pipeline import Sink


def register(app: typer.Typer) -> None:
    """Add the `stream` command."""
    app.command("stream")(stream)


@grouped
def stream(
    subscriptions: Annotated[Path, typer.Argument(help="File or folder of subscriptions; read again for every batch.")],
    *,
    checkpoint: Annotated[Path, typer.Option(help="Folder in which the stream remembers where it is.")],
    source: Annotated[str, typer.Option(help="files, rate, socket, mqtt or broker.")] = "files",
    given: Annotated[list[str] | None, typer.Option("--from", metavar="KEY=VALUE", help="About the source.")] = None,
    sink: Annotated[str, typer.Option(help="files, console, mqtt or webhook.")] = "console",
    to: Annotated[list[str] | None, typer.Option("--to", metavar="KEY=VALUE", help="About the sink.")] = None,
    what: Annotated[
        str | None, typer.Option(help="matches or detections; by default detections if there is a pattern.")
    ] = None,
    meaning: MeaningOptions,
    records: Records,
    lateness: Annotated[
        str,
        typer.Option(
            "--lateness", "--delay", help="How late events may come for patterns, e.g. `30s`; detections wait as long."
        ),
    ] = "0 seconds",
    heartbeat: Annotated[
        str | None,
        typer.Option(help="For patterns over live feeds: time goes on with the clock, so far behind it, e.g. `10s`."),
    ] = None,
    every: Annotated[str | None, typer.Option(help="Time between batches, e.g. `5s`.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, then end.")] = False,
    seconds: Annotated[float | None, typer.Option("--for", help="Seconds after which the stream ends.")] = None,
    max_ahead: Annotated[
        str, typer.Option(help="For patterns: events further ahead of the clock than this are refused.")
    ] = "366 days",
    spread: Annotated[
        bool, typer.Option(help="Spread a bound pattern by its key; not, if events have several values of it.")
    ] = True,
    dead_letter: Annotated[
        Path | None,
        typer.Option(
            "--dead-letters",
            "--dead-letter",
            help="Folder for records that are no events and for late events, with the reason.",
        ),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A summary as one JSON line at the end.")] = False,
) -> None:
    """Match or detect in a stream until it is stopped; started again with the same checkpoint it goes on.

    Sources (`--from`): `files` (path, format, maxFilesPerTrigger), `socket` (host, port), `mqtt` (broker, topic,
    client), `broker` (database, namespace: the log of `likewise serve`), `rate` (path of an event file to replay over
    and over, rowsPerSecond). Sinks (`--to`): `console` (limit),
    `files` (path, format), `mqtt` (broker, topic, patience), `webhook` (url, size, patience, header.NAME).

    Detections are sent as soon as events complete them; with `--lateness`, once an event is that much later, since
    until then earlier ones may come. What must not happen is known when an event comes that is late enough, or with
    `--heartbeat` by the clock. Ctrl-C and SIGTERM end a stream; nothing is lost and, in files, nothing is twice.

    Examples: `likewise stream subscriptions.lw --from path=inbox --sink files --to path=matches --checkpoint state`

    `likewise stream patterns.lw --source mqtt --from broker=mqtt://localhost --from topic=home/# --heartbeat 10s
    --checkpoint watching --dead-letter letters`
    """
    from likewise.cli.ending import Ending
    from likewise.cli.spark.follow import ReportedBatches
    from likewise.cli.spark.session import session
    from likewise.pipeline import FileSink, Places, Stream, SubscriptionTable, read_stream

    asked, wanted = _pairs(given, "--from"), _pairs(to, "--to")
    meaning = settled(meaning)
    guard(
        reads={
            "SUBSCRIPTIONS": subscriptions,
            "--from path": asked.get("path"),
            "--background": meaning.background,
            "--glossary": meaning.glossary,
            "--mapping": records.mapping,
        },
        writes={"--save-mapping": records.save_mapping},
        makes={"--checkpoint": checkpoint, "--to path": wanted.get("path"), "--dead-letters": dead_letter},
    )
    _check(what, subscriptions)
    trigger = _trigger(every, once=once)
    places = Places(str(checkpoint.absolute()))
    target = _sink(sink, wanted, places.ledger)
    _check_source(source, asked)
    told_by = stream_arguments(meaning)
    asked, mapping = _reading(source, asked, records)
    ending, batches = Ending(), ReportedBatches(log=checkpoint / "failure.txt")
    with ending.handling_signals(), ending.without_jvm(), session(master, remote) as spark:
        ending.install()
        events = read_stream(spark, source, asked, places=places, mapping=mapping)
        job = Stream(
            events,
            SubscriptionTable(str(subscriptions.absolute()), places.pins, told_by),
            target,
            places.checkpoint,
            what=what,  # type: ignore[arg-type]  # checked above
            dead_letters=None if dead_letter is None else FileSink(str(dead_letter.absolute()), "json"),
            trigger=trigger,
            lateness=lateness,
            spread=spread,
            max_ahead=max_ahead,
            heartbeat=heartbeat,
            background=None if meaning.no_background else "stream",
        )
        if not ending.requested:
            batches.follow(job, ending, seconds=seconds)
    if as_json:
        print_json(batches.summary)
    else:
        errors.print(
            f"stopped after {counted(batches.events, 'event')}; with --checkpoint {checkpoint} it goes on where it is"
        )


def stream_arguments(meaning: MeaningOptions) -> dict[str, Any]:
    """How words are compared, as arguments of `Recipe.of`: workers read the subscriptions, and build from this."""
    from likewise.pipeline.options import glossary_text

    options = spark_options(meaning)
    options["glossary"] = glossary_text(options["glossary"], measure=meaning.measure)
    return {"spaces": meaning.space or (), "measure": options.pop("measure"), "options": options}


def _reading(source: str, asked: dict[str, str], records: Records) -> tuple[dict[str, str], RecordMapping | None]:
    """Options and mapping of the source: files are looked at, records from the network need a complete mapping."""
    if records.format != "auto" and "format" not in asked:
        asked = {**asked, "format": records.format}
    if source not in ("files", "rate"):
        mapping = records.whole_mapping()
        if mapping is not None and source == "broker":
            raise BuildError("a broker's log has events already", hint="leave out the options that name fields")
        return asked, mapping
    reading = replace(records, format=asked.get("format", "auto")).on_spark(asked["path"])
    if reading["format"] != "auto":
        asked = {**asked, "format": reading["format"]}
    return asked | reading.get("options", {}), reading["columns"]


def _check(what: str | None, subscriptions: Path) -> None:
    if what not in (None, "matches", "detections"):
        raise BuildError(f"a stream gives no {what!r}", hint="matches or detections")
    if not subscriptions.exists():
        raise BuildError(f"there are no subscriptions at {subscriptions}", hint="give a file or a folder")


def _check_source(source: str, options: dict[str, str]) -> None:
    """What is wrong with a source is reported before Spark starts."""
    from likewise.pipeline.streaming.stream import SOURCES

    needed = {
        "broker": ("database",),
        "files": ("path",),
        "mqtt": ("broker", "topic"),
        "rate": ("path",),
        "socket": ("port",),
    }
    if source not in SOURCES:
        raise BuildError(f"there is no source {source!r}", hint=f"one of {', '.join(SOURCES)}")
    for name in needed[source]:
        if not options.get(name):
            raise BuildError(f"the source {source} needs {name}", hint=f"give --from {name}=…")
    path = options.get("path", "")
    if "path" in needed[source] and "://" not in path and not glob(path):
        raise BuildError(f"there is nothing at --from path={path}", hint="give a folder or a file that is there")


def _trigger(every: str | None, *, once: bool) -> dict[str, Any]:
    if every and once:
        raise BuildError("--every and --once do not go together", hint="leave one of them out")
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
        sink: Sink = kind(**_typed(options))
    except TypeError:
        raise BuildError(
            f"the sink {name} does not take {', '.join(options)}", hint="see likewise stream --help"
        ) from None
    return sink


_NUMBERS = {"limit": int, "patience": float, "size": int}


def _typed(options: dict[str, str]) -> dict[str, Any]:
    """The options of a sink as it wants them: numbers as such, and `header.NAME` gathered.

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
