"""`likewise node`: a broker of a federation, its certificates, and publishing and subscribing through it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from likewise.cli._output import errors, print_json
from likewise.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable

    from likewise.overlay.items import Report

State = Annotated[Path, typer.Option(help="Folder with this node's or client's certificate.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine output: JSON.")]
Nodes = Annotated[list[str], typer.Option("--node", metavar="HOST:PORT", help="A node; repeat it for others to try.")]


Show: TypeAlias = "Callable[[str, Report], None]"


def register(app: typer.Typer) -> None:
    """Add the `node` commands."""
    group = typer.Typer(help="Run a broker of a federation, and publish and subscribe through it.")
    group.callback(invoke_without_command=True)(node)
    group.command("init")(init)
    group.command("publish")(publish)
    group.command("subscribe")(subscribe)
    app.add_typer(group, name="node")


def node(
    context: typer.Context,
    *,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where this node listens.")] = None,
    join: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="A node of the federation; may be repeated.")
    ] = None,
    state: Annotated[Path, typer.Option(help="Folder with the node's certificate.")] = Path("node"),
    copies: Annotated[int, typer.Option(min=0, help="Neighbours that hold copies of what this node holds.")] = 2,
) -> None:
    """Run a node until it is stopped.

    Example: `likewise node --listen 127.0.0.1:7002 --join 127.0.0.1:7001 --state node2`
    """
    if context.invoked_subcommand is not None:
        return
    if listen is None:
        raise BuildError("a node needs an address", hint="give --listen 127.0.0.1:7001")
    from likewise.overlay.network import run_node
    from likewise.overlay.node import NodeSettings

    settings = NodeSettings(copies=copies)
    errors.print(f"node at {listen}", style="dim")
    asyncio.run(_until_signal(run_node(state, listen=listen, join=join or (), settings=settings)))


async def _until_signal(work: Any) -> None:
    """Run until a signal asks to end, then end in order."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        errors.print("stopped", style="dim")


def init(
    *,
    federation: Annotated[Path, typer.Option(help="Folder of the federation's authority; made if it is not there.")],
    state: Annotated[list[Path], typer.Option(help="Folder for a new certificate; may be repeated.")],
    as_json: AsJson = False,
) -> None:
    """Make the certificates of nodes and clients, and the federation itself the first time.

    Example: `likewise node init --federation fed --state node1 --state node2 --state client`
    """
    from likewise.overlay.identity import init_authority, init_node

    if not (federation / "ca.pem").exists():
        init_authority(federation)
    made = {str(folder): init_node(folder, federation).hex() for folder in state}
    if as_json:
        print_json(made)
    else:
        typer.echo("\n".join(f"{folder}: {name}" for folder, name in made.items()))


def publish(
    events: Annotated[str, typer.Argument(help="File of events, or - for standard input.")],
    *,
    node: Nodes,
    state: State,
    restamp: Annotated[bool, typer.Option("--now", help="Give every event the present time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Publish events through a node; ends when all are acknowledged.

    Example: `likewise node publish events.jsonl --node 127.0.0.1:7001 --state client`
    """
    count = asyncio.run(_publish(events, node, state, restamp=restamp))
    if as_json:
        print_json({"acknowledged": count})
    else:
        errors.print(f"{count} events acknowledged", style="dim")


async def _publish(source: str, addresses: list[str], state: Path, *, restamp: bool) -> int:
    from likewise.events import Event, read_events
    from likewise.overlay.clients import OverlayClient

    window, count = 1000, 0
    async with OverlayClient(addresses, state=state) as client:
        waiting: list[asyncio.Future[None]] = []
        for event in read_events(source):
            sent = Event(event.id, event.tuples, event.theme) if restamp else event
            waiting.append(client.send(sent))
            count += 1
            if len(waiting) >= window:
                await asyncio.gather(*waiting)
                waiting.clear()
        await asyncio.gather(*waiting)
    return count


def subscribe(
    subscriptions: Annotated[Path, typer.Argument(help="File of subscriptions.")],
    *,
    node: Nodes,
    state: State,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many reports.")] = None,
    as_json: AsJson = False,
) -> None:
    """Subscribe through a node; prints a line for each report.

    Example: `likewise node subscribe alarms.txt --node 127.0.0.1:7001 --state client`
    """
    asyncio.run(
        _until_signal(_subscribe(subscriptions.read_text(), node, state, limit, show=_as_json if as_json else _as_text))
    )


async def _subscribe(source: str, addresses: list[str], state: Path, limit: int | None, *, show: Show) -> None:
    from likewise.language import parse
    from likewise.overlay.clients import OverlayClient

    names = [each.name for each in parse(source)]
    queue: asyncio.Queue[tuple[str, Report]] = asyncio.Queue()
    async with OverlayClient(addresses, state=state) as client:
        ids = {name: await client.subscribe(source, name) for name in names}
        errors.print(f"{len(ids)} subscriptions in place", style="dim")
        tasks = [asyncio.create_task(_collect(client.reports(number), name, queue)) for name, number in ids.items()]
        try:
            count = 0
            while limit is None or count < limit:
                name, report = await queue.get()
                show(name, report)
                count += 1
        finally:
            for task in tasks:
                task.cancel()


async def _collect(reports: Any, name: str, queue: asyncio.Queue[tuple[str, Report]]) -> None:
    async for report in reports:
        queue.put_nowait((name, report))


def _as_text(name: str, report: Report) -> None:
    members = ", ".join(
        f"{role}: {event.id or 'time'} {event.attributes}"
        for role, event in zip(report.names, report.events, strict=True)
    )
    typer.echo(f"{name}  {report.probability:.2f}  {members}")


def _as_json(name: str, report: Report) -> None:
    members = [
        {"role": role, "id": event.id, "attributes": event.attributes}
        for role, event in zip(report.names, report.events, strict=True)
    ]
    print_json({"subscription": name, "time": report.time, "probability": report.probability, "events": members})
