"""`likewise relate`: how related two terms are, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._output import errors, output, print_json
from likewise.cli._spaces import open_spaces

if TYPE_CHECKING:
    from likewise.semantics import Measure


def register(app: typer.Typer) -> None:
    """Add the `relate` command."""
    app.command("relate")(relate)


def relate(
    first: Annotated[str, typer.Argument(metavar="TERM", help="The subscriber's term.")],
    second: Annotated[str, typer.Argument(metavar="TERM", help="The event's term.")],
    *,
    measure: Annotated[
        str | None, typer.Option(help="esa, thematic, jiang-conrath, …; thematic if there is a theme, else esa.")
    ] = None,
    theme: Annotated[list[str] | None, typer.Option(help="Theme tag of both terms; may be repeated.")] = None,
    theme_a: Annotated[list[str] | None, typer.Option(help="Theme tag of the first term.")] = None,
    theme_b: Annotated[list[str] | None, typer.Option(help="Theme tag of the second term.")] = None,
    space: Annotated[list[str] | None, typer.Option(help="Space by name or path; may be given several times.")] = None,
    competitor: Annotated[
        list[str] | None,
        typer.Option(help="Term that competes with the first, for `+contrast` and `+rank`."),
    ] = None,
    thesaurus: Annotated[Path | None, typer.Option(help="SKOS or EuroVoc file, for the measure `concept`.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="So many reasons.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Say how related two terms are, from 0 to 1, and through what.

    Example: `likewise relate parking garage --theme transport`
    """
    from likewise.semantics import apart

    themes = {
        "subscription_theme": [*(theme or ()), *(theme_a or ())],
        "event_theme": [*(theme or ()), *(theme_b or ())],
    }
    chosen = measure or ("thematic" if any(themes.values()) else "esa")
    made = _make(chosen, space, competitor, thesaurus)
    score = float(made.matrix([first], [second], **themes)[0, 0])
    reasons = made.reason(first, second, limit=limit, **themes) if limit else []
    if as_json:
        shared = [{"concept": each.concept, "weight": each.weight} for each in reasons]
        print_json({"terms": [first, second], "measure": made.name, **themes, "score": score, "reasons": shared})
        return
    output.print(f"{first} ~ {second}  {score:.4f}  ({made.name})", markup=False)
    for each in reasons:
        output.print(f"  {each.weight:.4f}  {each.concept}", markup=False)
    if not score:
        why = apart(made, first, second)
        errors.print(
            why or "nothing in common: a word may be unknown, or a theme may leave nothing of it", markup=False
        )


def _make(name: str, space: list[str] | None, competitor: list[str] | None, thesaurus: Path | None) -> Measure:
    from likewise.semantics import measure as make
    from likewise.semantics import needs_space

    options: dict[str, Any] = {"thesaurus": thesaurus} if thesaurus is not None else {}
    return make(
        name,
        spaces=open_spaces(space) if needs_space(name) else (),
        competitors=competitor,
        background=competitor,
        **options,
    )
