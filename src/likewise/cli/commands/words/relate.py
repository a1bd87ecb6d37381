"""`likewise relate`: compare two terms and explain the score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.spaces import open_spaces
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.semantics import Measure, Space


def register(app: typer.Typer) -> None:
    """Add the `relate` command."""
    app.command("relate")(relate)


def relate(
    first: Annotated[str, typer.Argument(metavar="TERM", help="The subscriber's term.")],
    second: Annotated[str, typer.Argument(metavar="TERM", help="The event's term.")],
    *,
    measure: Annotated[
        str | None,
        typer.Option(help="evidence, esa, thematic, embedding, … [default: thematic with a theme, else evidence]"),
    ] = None,
    theme: Annotated[list[str] | None, typer.Option(help="Theme tag of both terms; may be repeated.")] = None,
    theme_a: Annotated[list[str] | None, typer.Option(help="Theme tag of the first term; may be repeated.")] = None,
    theme_b: Annotated[list[str] | None, typer.Option(help="Theme tag of the second term; may be repeated.")] = None,
    space: Annotated[list[str] | None, typer.Option(help="Space by name or path; may be repeated.")] = None,
    competitor: Annotated[
        list[str] | None,
        typer.Option(help="Term that competes with the first, for `+contrast` and `+rank`; may be repeated."),
    ] = None,
    thesaurus: Annotated[Path | None, typer.Option(help="For the measure `concept`: SKOS or EuroVoc file.")] = None,
    glossary: Annotated[
        Path | None, typer.Option(help="For the measure `evidence`: file with your abbreviations and synonyms.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="For the measure `evidence`: weights from `likewise train`.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="Number of reasons.")] = 8,
    as_json: Json = False,
) -> None:
    """Give the probability that two terms mean the same, and the reasons.

    The default measure adds up evidence in bits. Other measures, such as esa, give a relatedness from 0 to 1.

    Example: `likewise relate lift elevator`
    """
    if not (first.strip() and second.strip()):
        raise BuildError("a term is empty", hint="give two terms, such as `likewise relate lift elevator`")
    themes = {
        "subscription_theme": [*(theme or ()), *(theme_a or ())],
        "event_theme": [*(theme or ()), *(theme_b or ())],
    }
    chosen = measure or ("thematic" if any(themes.values()) else "evidence")
    relatedness = _measure(chosen, space, competitor, options=_options(chosen, thesaurus, glossary, model))
    score = float(relatedness.matrix([first], [second], **themes)[0, 0])
    reasons = relatedness.reason(first, second, limit=limit, **themes) if limit else []
    if as_json:
        rows = [{"concept": reason.concept, "weight": reason.weight} for reason in reasons]
        print_json({"terms": [first, second], "measure": relatedness.name, **themes, "score": score, "reasons": rows})
        return
    output.print(f"{first} ~ {second}  {score:.4f}  ({relatedness.name})", markup=False)
    for reason in reasons:
        weight = f"{reason.weight:+5.1f}" if relatedness.name == "evidence" else f"{reason.weight:.4f}"
        output.print(f"  {weight}  {reason.concept}", markup=False, soft_wrap=True)
    if not score:
        why = relatedness.apart(first, second)
        errors.print(
            why or "nothing in common: a word may be unknown, or share no concept with the theme", markup=False
        )


def _options(name: str, thesaurus: Path | None, glossary: Path | None, model: Path | None) -> dict[str, Any]:
    """The options of certain measures, read from files."""
    from likewise.semantics import Glossary, Model

    if (glossary or model) and name != "evidence":
        raise BuildError(f"the measure {name} takes no glossary and no model", hint="choose --measure evidence")
    options: dict[str, Any] = {}
    if thesaurus is not None:
        options["thesaurus"] = thesaurus
    if glossary is not None:
        options["glossary"] = Glossary.from_file(glossary)
    if model is not None:
        options["model"] = Model.from_file(model)
    return options


def _measure(name: str, space: list[str] | None, competitor: list[str] | None, *, options: dict[str, Any]) -> Measure:
    from likewise.semantics import measure as make
    from likewise.semantics import needs_space

    if name == "evidence":
        if competitor:
            from likewise.semantics import Competitors

            options["background"] = Competitors.of(competitor)
        return make(name, spaces=shelved(space), **options)
    return make(
        name,
        spaces=open_spaces(space) if needs_space(name) else (),
        competitors=competitor,
        background=competitor,
        **options,
    )


def shelved(names: list[str] | None) -> list[Space]:
    """Open the named spaces, or all that are built: evidence uses every space it gets."""
    from likewise.semantics import Manifest, find_space, list_spaces

    if names:
        return [find_space(name) for name in names]
    return [find_space(path) for path, state in list_spaces() if isinstance(state, Manifest)]
