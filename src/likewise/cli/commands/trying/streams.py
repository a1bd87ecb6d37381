"""`likewise dataset homes` and `likewise dataset aarhus`: recorded streams as events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.commands.trying import dataset
from likewise.cli.guard import guard
from likewise.cli.options import Json
from likewise.cli.output import output, print_json

if TYPE_CHECKING:
    from likewise.events import Event

Out = Annotated[Path, typer.Option(help="File to write, as JSON lines.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the data sets. [LIKEWISE_DATA]")]


def register(_app: typer.Typer) -> None:
    """Add `dataset homes` and `dataset aarhus`."""
    dataset.app.command()(homes)
    dataset.app.command()(aarhus)


def homes(
    *,
    out: Out,
    house: Annotated[str | None, typer.Option(help="A or B. [default: both]")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write the sensor activations of two homes, each with a start and an end.

    Example: `likewise dataset homes --house A --out homes.jsonl`
    """
    from likewise.evaluation.datasets.streams import home_events
    from likewise.evaluation.datasets.thematic import data_folder

    houses = ("A", "B") if house is None else (house.upper(),)
    _write(home_events(data or data_folder(), houses), out, as_json=as_json)


def aarhus(*, out: Out, data: Data = None, as_json: Json = False) -> None:
    """Write traffic, car park and weather events of Aarhus, August and September 2014.

    Example: `likewise dataset aarhus --out aarhus.jsonl`
    """
    from likewise.evaluation.datasets.streams import aarhus_events
    from likewise.evaluation.datasets.thematic import data_folder

    _write(aarhus_events(data or data_folder()), out, as_json=as_json)


def _write(events: Iterable[Event], out: Path, *, as_json: bool) -> None:
    from likewise.events import write_events

    guard(reads={}, makes={"--out": out})
    out.parent.mkdir(parents=True, exist_ok=True)
    count = write_events(events, out)
    if as_json:
        print_json({"events": count, "file": str(out)})
    else:
        output.print(f"{count:,} events in {out}")
