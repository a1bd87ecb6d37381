"""`python -m likewise` is the `likewise` command."""

from likewise.cli import main

main()
