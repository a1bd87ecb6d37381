"""The `likewise` command: one module per noun, found by name."""

from likewise.cli.app import main

__all__ = ["main"]
