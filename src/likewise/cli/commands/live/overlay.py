"""`likewise overlay`: see how a pattern is spread, what nodes do, and what a simulated federation does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.output import errors, output, print_json

if TYPE_CHECKING:
    from likewise.overlay.simulation import TrialOutcome


def register(app: typer.Typer) -> None:
    """Add the `overlay` commands."""
    group = typer.Typer(help="See a federation of brokers: how patterns are spread over it, and what it does.")
    group.command("explain")(explain)
    group.command("status")(status)
    group.command("simulate")(simulate)
    app.add_typer(group, name="overlay")


def explain(
    pattern: Annotated[str, typer.Argument(help="A subscription, or the path of a file of subscriptions.")],
    *,
    spread: Annotated[bool, typer.Option(help="Split patterns over the attribute that their members share.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show the members of a pattern, and which rendezvous each has.

    Example: `likewise overlay explain "{kind = smoke} and {kind = heat} within 5 minutes"`
    """
    from likewise.language import parse
    from likewise.overlay import decompose
    from likewise.overlay.node import explain_tree, summary_of

    path = Path(pattern)
    subscriptions = parse(path.read_text() if len(pattern) < 200 and path.is_file() else pattern)
    known = {each.name: each for each in subscriptions}
    trees = {each.name: decompose(each, known, spread=spread) for each in subscriptions}
    if as_json:
        print_json([{"name": name, **summary_of(tree), "lines": explain_tree(tree)} for name, tree in trees.items()])
        return
    for name, tree in trees.items():
        typer.echo(f"{name}:")
        typer.echo("\n".join(explain_tree(tree, depth=1)))


def status(
    *,
    node: Annotated[list[str], typer.Option("--node", metavar="HOST:PORT", help="A node; may be repeated.")],
    state: Annotated[Path, typer.Option(help="Folder with a certificate of the federation.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what nodes know and do: ring, topics, composites, traffic.

    Example: `likewise overlay status --node 127.0.0.1:7001 --state client`
    """
    found = [asyncio.run(_status(address, state)) for address in node]
    if as_json:
        print_json(found)
        return
    for each in found:
        _show_status(each)


async def _status(address: str, state: Path) -> dict[str, Any]:
    from likewise.overlay.net import OverlayClient

    async with OverlayClient([address], state=state) as client:
        return await client.status()


def _show_status(found: dict[str, Any]) -> None:
    output.print(f"{found['address']}  id {found['id'][:8]}  {'in the ring' if found['joined'] else 'joining'}")
    neighbours = ", ".join(f"{each['address']} ({each['id']})" for each in found["neighbours"])
    output.print(f"  neighbours: {neighbours or 'none'}")
    output.print(f"  catalogue of {found['catalogue']} topics; leads {found['led']} keys, copies of {found['copies']}")
    for each in found["composites"]:
        awaited = ", ".join(f"{how}: {count} awaited" for how, count in each["awaited"].items())
        output.print(f"  composite {each['key']}: {awaited}")
    traffic = ", ".join(f"{name} {count:,}" for name, count in sorted((found["counts"] | found["network"]).items()))
    output.print(f"  under way {found['under way']}; counted: {traffic or 'nothing yet'}")


def simulate(
    *,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the federation.")] = 100,
    composites: Annotated[int, typer.Option(min=1, help="Composite subscriptions.")] = 50,
    events: Annotated[int, typer.Option(min=1, help="Publications, in one simulated minute.")] = 1000,
    topics: Annotated[int, typer.Option(min=5, help="Topics of which composites and publications are made.")] = 100,
    churn: Annotated[float, typer.Option(min=0, max=1, help="Share of nodes replaced in a minute.")] = 0.0,
    loss: Annotated[float, typer.Option(min=0, max=0.5, help="Share of messages lost.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for charts of delays, of load and of messages.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Run a federation in this process, with faults on order, and count messages, hops and reports.

    Example: `likewise overlay simulate --nodes 200 --churn 0.05 --out charts`
    """
    from likewise.charts import check_chart
    from likewise.overlay.simulation import OverlayTrial, play_trial

    if out is not None:
        check_chart(out / "delays.png")
    trial = OverlayTrial(
        nodes=nodes,
        composites=composites,
        topics=topics,
        events=events,
        churn=churn,
        loss=loss,
        compare=True,
        seed=seed,
    )
    found = play_trial(trial, progress=lambda text: errors.print(text, style="dim"))
    drawn = [] if out is None else _draw(found, out)
    if as_json:
        print_json(found.figures | ({"charts": [str(path) for path in drawn]} if drawn else {}))
        return
    for name, value in found.figures.items():
        output.print(f"{name:<31}{value:,.2f}" if isinstance(value, float) else f"{name:<31}{value:,}")
    for path in drawn:
        output.print(f"wrote {path}", markup=False)


def _draw(found: TrialOutcome, folder: Path) -> list[Path]:
    from likewise.charts import bars, histogram, save

    kinds = [{"message": name, "sent": count} for name, count in found.messages.items()]
    charts = {
        "delays": histogram(found.delays, title="milliseconds from the last event to its report"),
        "load": histogram(found.loads, title="events that a node dealt with as a rendezvous"),
        "messages": bars(kinds, x="sent", y="message"),
    }
    return [save(spec, folder / f"{name}.png") for name, spec in charts.items()]
