"""`likewise node`: run a node of a federation, and create the certificates of its members."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.meaning import engine_options, settled
from likewise.cli.options import Json, MeaningOptions, grouped
from likewise.cli.output import errors, print_json
from likewise.cli.remote.federation import until_signal
from likewise.errors import BuildError


def register(app: typer.Typer) -> None:
    """Add the `node` commands."""
    group = typer.Typer()
    group.callback(invoke_without_command=True)(node)
    group.command("init")(init)
    app.add_typer(group, name="node")


@grouped
def node(
    context: typer.Context,
    *,
    meaning: MeaningOptions,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Address to listen on (required).")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Address of a node to join; may be repeated."),
    ] = None,
    state: Annotated[Path, typer.Option(help="Folder with the node's certificate.")] = Path("node"),
    copies: Annotated[int, typer.Option(min=0, help="Number of neighbours that keep a copy of this node's state.")] = 2,
) -> None:
    """Run a node of a federation; `publish --node` and `subscribe --node` connect to it.

    First create certificates with `likewise node init`. All nodes need the same options of meaning, since the node at
    which an event enters matches it.

    Example: `likewise node --listen 127.0.0.1:7002 --join 127.0.0.1:7001 --state node2`
    """
    if context.invoked_subcommand is not None:
        return
    if listen is None:
        raise BuildError("--listen is missing", hint="give an address, such as --listen 127.0.0.1:7001")
    from likewise.matching import Matcher
    from likewise.overlay import MatchingClassifier, NodeSettings
    from likewise.overlay.net import run_node

    settings = NodeSettings(copies=copies)
    errors.print(f"node at {listen}", style="dim")
    matcher = Matcher(**engine_options(settled(meaning), ()))
    asyncio.run(
        until_signal(
            run_node(
                state,
                listen=listen,
                join=join or (),
                settings=settings,
                classify=MatchingClassifier(lambda: matcher),
                measure=matcher.measure,
            )
        )
    )


def init(
    *,
    federation: Annotated[Path, typer.Option(help="Folder of the certificate authority; created the first time.")],
    state: Annotated[list[Path], typer.Option(help="Folder for a new certificate; may be repeated.")],
    as_json: Json = False,
) -> None:
    """Create the certificates of nodes and clients, and the federation's certificate authority the first time.

    Example: `likewise node init --federation fed --state node1 --state node2 --state client`
    """
    from likewise.overlay.net import init_authority, init_node

    if not (federation / "ca.pem").exists():
        init_authority(federation)
    ids = {str(folder): init_node(folder, federation).hex() for folder in state}
    if as_json:
        print_json(ids)
    else:
        typer.echo("\n".join(f"{folder}: {name}" for folder, name in ids.items()))
