"""`likewise convert`: turn tables and records into events, or events into another format."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.options import DeadLetters, grouped
from likewise.cli.output import counted, errors, print_json
from likewise.cli.reading.input import Rejects, event_batches
from likewise.cli.reading.records import Records


def register(app: typer.Typer) -> None:
    """Add the `convert` command."""
    app.command("convert")(convert)


@grouped
def convert(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Table, records or events, or - for stdin.")],
    *,
    out: Annotated[str, typer.Option(help="File to write, or - for stdout.")],
    to: Annotated[
        str, typer.Option(help="Format to write: jsonl, json, cloudevents, cloudevents-batch, ntriples or turtle.")
    ] = "jsonl",
    table: Annotated[bool, typer.Option("--table", help="The same as --format csv.")] = False,
    records: Records,
    dead_letters: DeadLetters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON document.")] = False,
) -> None:
    """Turn a table or flat records into events, or write events in another format.

    Every row becomes an event and every column an attribute. Numbers, booleans and times are recognised; empty cells
    are left out. Without options, the fields of id and time are guessed, and the guess is shown.

    Example: `likewise convert readings.csv --time measured_at --add type=temperature --out events.jsonl`
    """
    from likewise.events import write_events

    writes = {"--out": out, "--dead-letters": dead_letters, "--save-mapping": records.save_mapping}
    guard(reads={"FILE": source, "--mapping": records.mapping}, writes=writes)
    rejects = Rejects(dead_letters)
    records = replace(records, format="csv") if table else records
    events = chain.from_iterable(event_batches(source, rejects, records=records))
    # Read one event before opening the output, so that an early mistake does not overwrite it.
    first = list(islice(events, 1))
    count = write_events(chain(first, events), out, format=to)
    if as_json:
        print_json({"events": count, "bad": rejects.count, "file": out})
    else:
        errors.print(f"{counted(count, 'event')} in {'<stdout>' if out == '-' else out}", markup=False, soft_wrap=True)
    rejects.conclude()
