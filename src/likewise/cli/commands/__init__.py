"""The commands, one module each: `likewise.cli.app` finds them by name."""
