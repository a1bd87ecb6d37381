"""`likewise nearest`: the words of a space that are nearest to a term."""

from __future__ import annotations

from typing import Annotated

import typer

from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.spaces import open_spaces


def register(app: typer.Typer) -> None:
    """Add the `nearest` command."""
    app.command("nearest")(nearest)


def nearest(
    term: Annotated[str, typer.Argument(help="A word or phrase.")],
    *,
    space: Annotated[str | None, typer.Option(help="Space by name or path.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="So many words.")] = 10,
    why: Annotated[bool, typer.Option("--why", help="Name the concepts that each word shares with the term.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """List the words that are nearest to a term.

    Example: `likewise nearest "parking garage" -n 5 --why`
    """
    from likewise.semantics import Esa, Vocabulary

    (opened,) = open_spaces([space] if space else None)
    found = Vocabulary(opened).nearest(term, limit=limit)
    esa = Esa(opened)
    reasons = {each.word: [r.concept for r in esa.reason(term, each.word, limit=3)] for each in found}
    if as_json:
        near = [{"word": each.word, "score": each.score, "concepts": reasons[each.word]} for each in found]
        print_json({"term": term, "space": opened.name, "nearest": near})
        return
    for each in found:
        shared = f"  {' · '.join(reasons[each.word])}" if why else ""
        output.print(f"{each.score:.4f}  {each.word}{shared}", markup=False, soft_wrap=True)
    if not found:
        errors.print(f"no word of {term!r} is known in the space {opened.name}", markup=False)
