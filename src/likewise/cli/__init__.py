"""The `likewise` command: one module per noun, found by name."""

from likewise.cli._app import main

__all__ = ["main"]
