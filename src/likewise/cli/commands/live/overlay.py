"""`likewise overlay`: show how a pattern is decomposed, what nodes do, and simulate a federation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json

if TYPE_CHECKING:
    from likewise.overlay.simulation import TrialOutcome


def register(app: typer.Typer) -> None:
    """Add the `overlay` commands."""
    group = typer.Typer(help="Inspect or simulate a federation: how patterns are decomposed, what nodes do.")
    group.command("explain")(explain)
    group.command("status")(status)
    group.command("simulate")(simulate)
    app.add_typer(group, name="overlay")


def explain(
    pattern: Annotated[str, typer.Argument(help="Pattern as text, or a file of subscriptions.")],
    *,
    spread: Annotated[bool, typer.Option(help="Partition patterns by the attribute that their members share.")] = True,
    as_json: Json = False,
) -> None:
    """Show how a pattern is decomposed: its members and the rendezvous of each.

    Example: `likewise overlay explain "{kind = smoke} and {kind = heat} within 5 minutes"`
    """
    from likewise.language import parse
    from likewise.overlay import decompose
    from likewise.overlay.node import explain_tree, summary_of

    path = Path(pattern)
    subscriptions = parse(path.read_text() if len(pattern) < 200 and path.is_file() else pattern)
    known = {subscription.name: subscription for subscription in subscriptions}
    trees = {name: decompose(subscription, known, spread=spread) for name, subscription in known.items()}
    if as_json:
        print_json([{"name": name, **summary_of(tree), "lines": explain_tree(tree)} for name, tree in trees.items()])
        return
    for name, tree in trees.items():
        typer.echo(f"{name}:")
        typer.echo("\n".join(explain_tree(tree, depth=1)))


def status(
    *,
    node: Annotated[list[str], typer.Option("--node", metavar="HOST:PORT", help="Node to ask; may be repeated.")],
    state: Annotated[Path, typer.Option(help="Folder with a certificate of the federation.")],
    as_json: Json = False,
) -> None:
    """Show the state of nodes: neighbours in the ring, topics, composites, traffic.

    Example: `likewise overlay status --node 127.0.0.1:7001 --state client`
    """
    answers = [asyncio.run(_status(address, state)) for address in node]
    if as_json:
        print_json(answers)
        return
    for answer in answers:
        _show_status(answer)


async def _status(address: str, state: Path) -> dict[str, Any]:
    from likewise.overlay.net import OverlayClient

    async with OverlayClient([address], state=state) as client:
        return await client.status()


def _show_status(status: dict[str, Any]) -> None:
    output.print(f"{status['address']}  id {status['id'][:8]}  {'in the ring' if status['joined'] else 'joining'}")
    neighbours = ", ".join(f"{neighbour['address']} ({neighbour['id']})" for neighbour in status["neighbours"])
    output.print(f"  neighbours: {neighbours or 'none'}", markup=False, soft_wrap=True)
    output.print(
        f"  {status['catalogue']} topics known; leads {status['led']} keys, copies {status['copies']}",
        markup=False,
        soft_wrap=True,
    )
    for composite in status["composites"]:
        awaited = ", ".join(f"{how}: {count} awaited" for how, count in composite["awaited"].items())
        output.print(f"  composite {composite['key']}: {awaited}", markup=False, soft_wrap=True)
    traffic = ", ".join(f"{name} {count:,}" for name, count in sorted((status["counts"] | status["network"]).items()))
    output.print(f"  pending: {status['under way']}; traffic: {traffic or 'none yet'}", markup=False, soft_wrap=True)


def simulate(
    *,
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = 100,
    composites: Annotated[int, typer.Option(min=1, help="Number of composite subscriptions.")] = 50,
    events: Annotated[int, typer.Option(min=1, help="Number of events, published in one simulated minute.")] = 1000,
    topics: Annotated[int, typer.Option(min=5, help="Number of topics of events and subscriptions.")] = 100,
    churn: Annotated[float, typer.Option(min=0, max=1, help="Share of nodes replaced per minute.")] = 0.0,
    loss: Annotated[float, typer.Option(min=0, max=0.5, help="Share of messages lost.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same run.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for charts of delays, load and messages.")] = None,
    as_json: Json = False,
) -> None:
    """Simulate a federation in this process, with churn and message loss, and count messages, hops and reports.

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
    outcome = play_trial(trial, progress=lambda text: errors.print(text, style="dim"))
    charts = [] if out is None else _draw(outcome, out)
    if as_json:
        print_json(outcome.figures | ({"charts": [str(path) for path in charts]} if charts else {}))
        return
    for name, value in outcome.figures.items():
        output.print(f"{name:<31}{value:,.2f}" if isinstance(value, float) else f"{name:<31}{value:,}")
    for path in charts:
        output.print(f"wrote {path}", markup=False)


def _draw(outcome: TrialOutcome, folder: Path) -> list[Path]:
    from likewise.charts import bars, histogram, save

    kinds = [{"message": name, "sent": count} for name, count in outcome.messages.items()]
    charts = {
        "delays": histogram(outcome.delays, title="milliseconds from the last event to its report"),
        "load": histogram(outcome.loads, title="events that a node processed as a rendezvous"),
        "messages": bars(kinds, x="sent", y="message"),
    }
    return [save(spec, folder / f"{name}.png") for name, spec in charts.items()]
