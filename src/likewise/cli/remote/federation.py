"""Publishes and subscribes through the nodes of a federation."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.output import errors, print_json
from likewise.cli.remote.broker import attributes_line
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.overlay import Report

Nodes = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="HOST:PORT", help="Node of a federation; repeat it to name alternatives."),
]
State = Annotated[Path | None, typer.Option(help="With --node: folder with this client's certificate.")]

WINDOW = 1000
"""Most events that wait for an acknowledgement."""


async def until_signal(work: Any) -> None:
    """Run until Ctrl-C or SIGTERM, then cancel in order."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        errors.print("stopped", style="dim")


def folder_of(state: Path | None) -> Path:
    """The folder of the client's certificate, or an error if it is not given."""
    if state is None:
        raise BuildError("--node needs a certificate", hint="give --state DIR, made by `likewise node init`")
    return state


def _report(text: str) -> None:
    errors.print(text, style="dim", markup=False)


async def publish_lines(lines: Iterable[bytes], addresses: list[str], *, state: Path | None, restamp: bool) -> int:
    """Publish events, wait until all are acknowledged and return their number."""
    from likewise.events import Event, decode_line
    from likewise.overlay.net import OverlayClient

    count = 0
    async with OverlayClient(addresses, state=folder_of(state), on_wait=_report) as client:
        waiting: list[asyncio.Future[None]] = []
        for line in lines:
            event = decode_line(line)
            sent = Event(event.id, event.tuples, event.theme) if restamp else event
            waiting.append(client.send(sent))
            count += 1
            if len(waiting) >= WINDOW:
                await asyncio.gather(*waiting)
                waiting.clear()
        await asyncio.gather(*waiting)
    return count


async def follow(
    source: str, addresses: list[str], *, state: Path | None, count: int | None, timeout: float | None, as_json: bool
) -> None:
    """Subscribe and print reports until the count or the timeout is reached."""
    from likewise.language import parse
    from likewise.overlay.net import OverlayClient

    names = [subscription.name for subscription in parse(source)]
    show = _as_json if as_json else _as_text
    queue: asyncio.Queue[tuple[str, Report]] = asyncio.Queue()
    async with OverlayClient(addresses, state=folder_of(state), on_wait=_report) as client:
        ids = {name: await client.subscribe(source, name) for name in names}
        errors.print(f"following {', '.join(ids)}", markup=False)
        tasks = [asyncio.create_task(_collect(client.reports(number), name, queue)) for name, number in ids.items()]
        try:
            async with asyncio.timeout(timeout):
                shown = 0
                while count is None or shown < count:
                    show(*await queue.get())
                    shown += 1
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _collect(reports: Any, name: str, queue: asyncio.Queue[tuple[str, Report]]) -> None:
    async for report in reports:
        queue.put_nowait((name, report))


def _members(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "id": event.id,
            "attributes": {name: _plain(values) for name, values in event.attributes.items()},
        }
        for role, event in zip(report.names, report.events, strict=True)
    ]


def _plain(values: Any) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _as_text(name: str, report: Report) -> None:
    members = (f"{member['role']}: {attributes_line(member) or 'time'}" for member in _members(report))
    typer.echo(f"{name}  {report.probability:.2f}  {'  and  '.join(members)}")


def _as_json(name: str, report: Report) -> None:
    members = _members(report)
    print_json({"subscription": name, "time": report.time, "probability": report.probability, "events": members})
