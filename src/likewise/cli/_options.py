"""Options that several commands have: the same name, the same meaning and the same help everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DeadLetters = Annotated[
    Path | None,
    typer.Option(
        "--dead-letters", "--dead-letter", help="Append bad records to this file, with their reasons, and go on."
    ),
]
