"""`likewise publish`: publish events to a broker or a federation."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.remote.broker import URL, AsJson, Count, Namespace, Token, Url, chunks, connect, event_of_words
from likewise.cli.remote.federation import Nodes, State, publish_lines
from likewise.errors import InputError

_USAGE = 2


def register(app: typer.Typer) -> None:
    app.command("publish")(publish)


def publish(
    event: Annotated[
        list[str] | None, typer.Argument(help="Event as name=value … or JSON. [default: JSON lines from stdin]")
    ] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Publish the JSON lines of this file.")] = None,
    mapping: Annotated[
        str | None, typer.Option(help="Name of a mapping that is stored in the broker, for flat records.")
    ] = None,
    count: Count = None,
    batch: Annotated[int, typer.Option(help="Most events in one request.", min=1, max=10_000)] = 500,
    every: Annotated[float, typer.Option(help="Seconds to wait between events.", min=0)] = 0.0,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    node: Nodes = None,
    state: State = None,
    restamp: Annotated[bool, typer.Option("--now", help="With --node: set the time of every event to now.")] = False,
    as_json: AsJson = False,
) -> None:
    """Publish events to a broker, or to a federation with --node.

    The command returns when the events are stored on the broker's disk, or acknowledged by the federation.

    Example: `likewise publish type='car park' slots=3`
    """
    if event and file is not None:
        raise InputError("an event and --file exclude each other", source="<argument>", hint="leave one of them out")
    if node:
        lines = _paced(_limited(_lines(event, file), count), every)
        _acknowledged(asyncio.run(publish_lines(lines, node, state=state, restamp=restamp)), as_json=as_json)
        return
    accepted, rejected = 0, 0
    size = 1 if every or _is_live(event, file) else batch
    with connect(url, token, namespace) as client:
        for chunk in chunks(_limited(_lines(event, file), count), size):
            answer = client.publish(chunk, mapping=mapping)
            accepted += answer["accepted"]
            rejected += _report(answer, as_json=as_json)
            if every:
                time.sleep(every)
    if not as_json:
        output.print(f"{counted(accepted, 'event')} published", markup=False)
    if rejected:
        raise typer.Exit(_USAGE)


def _paced(lines: Iterator[bytes], pause: float) -> Iterator[bytes]:
    for line in lines:
        yield line
        if pause:
            time.sleep(pause)


def _acknowledged(count: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"acknowledged": count})
    else:
        output.print(f"{counted(count, 'event')} acknowledged", markup=False)


def _is_live(event: list[str] | None, file: Path | None) -> bool:
    """Whether lines are typed in a terminal, so that each is sent at once."""
    return not event and file is None and sys.stdin.isatty()


def _lines(event: list[str] | None, file: Path | None) -> Iterator[bytes]:
    import msgspec

    if event:
        if event[0].lstrip().startswith(("{", "[")):
            yield from (text.encode() for text in event)
        else:
            yield msgspec.json.encode(event_of_words(event))
        return
    stream = sys.stdin.buffer if file is None or str(file) == "-" else file.open("rb")
    with stream:
        for line in stream:
            if line.strip():
                yield line.rstrip(b"\r\n")


def _limited(lines: Iterator[bytes], count: int | None) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        yield line
        if number == count:
            return


def _report(answer: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(answer)
    else:
        for bad in answer["rejected"]:
            hint = f"\n  hint: {bad['hint']}" if bad.get("hint") else ""
            errors.print(f"error: event {bad['index'] + 1}: {bad['reason']}{hint}", style="red", markup=False)
    return int(answer["rejected_count"])
