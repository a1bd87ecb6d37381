"""Output of commands: text and JSON on stdout, messages on stderr."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import typer
from rich.console import Console

PLAIN = os.environ.get("NO_COLOR", "") != ""
"""Whether NO_COLOR is set: then neither colours nor bold are written."""
_colours: Any = None if PLAIN else "auto"

output = Console(highlight=False, color_system=_colours)
errors = Console(stderr=True, highlight=False, color_system=_colours)


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural.

    >>> counted(1, "match"), counted(1200, "match"), counted(0, "event")
    ('1 match', '1,200 matches', '0 events')
    """
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "x")) else "s"
    return f"{number:,} {noun}{ending}"


def print_json(value: Any) -> None:
    """One JSON document on one line of stdout."""
    typer.echo(msgspec.json.encode(value).decode())
