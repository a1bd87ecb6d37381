"""What commands print: people's output, machine output, and messages on stderr."""

from __future__ import annotations

from typing import Any

import msgspec
import typer
from rich.console import Console

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on one line of stdout."""
    typer.echo(msgspec.json.encode(value).decode())
