"""`likewise nearest`: list the words of a space that are nearest to a term."""

from __future__ import annotations

from typing import Annotated

import typer

from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.spaces import open_spaces


def register(app: typer.Typer) -> None:
    """Add the `nearest` command."""
    app.command("nearest")(nearest)


def nearest(
    term: Annotated[str, typer.Argument(help="Word or phrase.")],
    *,
    space: Annotated[str | None, typer.Option(help="Space by name or path. [default: wordnet]")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Number of words.")] = 10,
    why: Annotated[bool, typer.Option("--why", help="Show the concepts that each word shares with the term.")] = False,
    as_json: Json = False,
) -> None:
    """List the words that are nearest to a term.

    Example: `likewise nearest "parking garage" -n 5 --why`
    """
    from likewise.semantics import Esa, Vocabulary

    (opened,) = open_spaces([space] if space else None)
    neighbours = Vocabulary(opened).nearest(term, limit=limit)
    esa = Esa(opened)
    concepts = {near.word: [shared.concept for shared in esa.reason(term, near.word, limit=3)] for near in neighbours}
    if as_json:
        rows = [{"word": near.word, "score": near.score, "concepts": concepts[near.word]} for near in neighbours]
        print_json({"term": term, "space": opened.name, "nearest": rows})
        return
    for near in neighbours:
        shared = f"  {' · '.join(concepts[near.word])}" if why else ""
        output.print(f"{near.score:.4f}  {near.word}{shared}", markup=False, soft_wrap=True)
    if not neighbours:
        errors.print(f"no word of {term!r} is known in the space {opened.name}", markup=False)
