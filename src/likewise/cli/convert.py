"""`likewise convert`: tables and events of one format as events of another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._guard import guard
from likewise.cli._input import Rejects, event_batches
from likewise.cli._options import DeadLetters
from likewise.cli._output import counted, errors, print_json
from likewise.errors import BuildError, InputError

if TYPE_CHECKING:
    from likewise.events import Event

_TABLES = (".csv", ".tsv")
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def register(app: typer.Typer) -> None:
    """Add the `convert` command."""
    app.command("convert")(convert)


def convert(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A table or events, or - for stdin.")],
    *,
    out: Annotated[str, typer.Option(help="File to write, or - for stdout.")],
    to: Annotated[str, typer.Option(help="jsonl, json, cloudevents, cloudevents-batch, ntriples or turtle.")] = "jsonl",
    table: Annotated[bool, typer.Option("--table", help="It is a table, whatever its name ends with.")] = False,
    id: Annotated[str | None, typer.Option(help="Column of the id; file and line if not given.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of the time: ISO 8601, or seconds since 1970.")] = None,
    end: Annotated[str | None, typer.Option(help="Column of the end.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN[=NAME]", help="Take only these columns, by other names if you like."),
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An attribute of every event; may be repeated.")
    ] = None,
    theme: Annotated[list[str] | None, typer.Option(help="A theme tag of every event; may be repeated.")] = None,
    divider: Annotated[str | None, typer.Option(help="What stands between cells; seen from the header.")] = None,
    dead_letters: DeadLetters = None,
    as_json: Annotated[bool, typer.Option("--json", help="The count as one JSON line.")] = False,
) -> None:
    """Make events of a CSV table, or write events in another format.

    Every row becomes an event, every column an attribute with the header's name. Numbers, booleans and timestamps are
    known by their look; an empty cell says nothing.

    Example: `likewise convert readings.csv --time measured_at --add type=temperature --out events.jsonl`
    """
    from likewise.events import write_events

    guard(reads={"FILE": source}, writes={"--out": out, "--dead-letters": dead_letters})
    rejects = Rejects(dead_letters)
    options: dict[str, Any] = {"id": id, "time": time, "end": end, "divider": divider, "theme": theme or ()}
    options |= {"attributes": _names(keep), "constants": dict(_pair(each) for each in add or ())}
    events: Iterator[Event]
    if table or _is_table(source):
        events = _rows(source, rejects, options)
    elif any(options.values()):
        raise BuildError("columns can be named for a table only", hint="say --table if it is one")
    else:
        events = chain.from_iterable(event_batches(source, rejects))
    # A mistake that shows with the first row leaves what stands in the place to write to.
    first = list(islice(events, 1))
    count = write_events(chain(first, events), out, format=to)
    if as_json:
        print_json({"events": count, "bad": rejects.count, "file": out})
    else:
        errors.print(f"{counted(count, 'event')} in {'<stdout>' if out == '-' else out}", markup=False, soft_wrap=True)
    rejects.conclude()


def _is_table(source: str) -> bool:
    for ending in _PACKED:
        source = source.removesuffix(ending)
    return source.endswith(_TABLES)


def _rows(source: str, rejects: Rejects, options: dict[str, Any]) -> Iterator[Event]:
    from likewise.events import read_csv

    read = 0
    try:
        for event in read_csv(source, on_error=rejects, **options):
            read += 1
            yield event
    except InputError as error:
        # A file that breaks off has told some rows all the same.
        if not read:
            raise
        rejects.fault(error)


def _names(keep: list[str] | None) -> dict[str, str] | None:
    if not keep:
        return None
    parts = [each.partition("=") for each in keep]
    return {column: name or column for column, _, name in parts}


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise BuildError(f"--add takes NAME=VALUE, not {text!r}", hint="for example --add type=temperature")
    return name, value
