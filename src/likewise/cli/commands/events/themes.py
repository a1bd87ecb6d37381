"""`likewise themes`: suggest theme tags for events or a subscription."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.options import DeadLetters, Json, grouped
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.input import Rejects, event_batches
from likewise.cli.reading.records import Records
from likewise.cli.reading.spaces import open_spaces
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.semantics import Suggestion

ENOUGH = 100_000
"""Events that are read, at most: more of the same file change nothing."""


def register(app: typer.Typer) -> None:
    """Add the `themes` command."""
    app.command("themes")(themes)


@grouped
def themes(
    events: Annotated[str | None, typer.Argument(help="File of events, or - for stdin.")] = None,
    *,
    records: Records,
    subscription: Annotated[str | None, typer.Option(help="Text of a subscription, instead of events.")] = None,
    space: Annotated[str | None, typer.Option(help="Space by name or path. [default: wordnet]")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Number of tags.")] = 8,
    dead_letters: DeadLetters = None,
    as_json: Json = False,
) -> None:
    """Suggest theme tags for events or a subscription, with reasons.

    Tags say what an event or a subscription is about; the approach `thematic` compares words within them.

    Example: `likewise themes --subscription "{type = energy usage~, device~ = laptop~}"`
    """
    from likewise.semantics import suggest_themes

    if (events is None) == (subscription is None):
        raise BuildError("give either a file of events or --subscription", hint="likewise themes events.jsonl")
    guard(
        reads={"EVENTS": events, "--mapping": records.mapping},
        writes={"--dead-letters": dead_letters, "--save-mapping": records.save_mapping},
    )
    rejects = Rejects(dead_letters)
    terms = _event_terms(events, rejects, records) if events is not None else _subscription_terms(subscription or "")
    (opened,) = open_spaces([space] if space else None)
    _show(suggest_themes(opened, terms, limit=limit), opened.name, len(terms), as_json=as_json)
    rejects.conclude()


def _show(suggestions: Sequence[Suggestion], space: str, terms: int, *, as_json: bool) -> None:
    if as_json:
        tags = [
            {"tag": s.tag, "covers": s.covers, "background": s.background, "terms": s.terms, "concepts": s.concepts}
            for s in suggestions
        ]
        print_json({"space": space, "terms": terms, "tags": tags})
        return
    if not suggestions:
        errors.print(f"none of the {terms} terms is known in the space {space}", markup=False)
        return
    output.print("{" + ", ".join(suggestion.tag for suggestion in suggestions) + "}", markup=False, style="bold")
    for suggestion in suggestions:
        share = f"keeps {suggestion.covers:.0%} of the meaning in {suggestion.background:.1%} of the space"
        why = f"near {', '.join(suggestion.terms)}; as in {' · '.join(suggestion.concepts)}"
        output.print(f"  {suggestion.tag:<16} {share}; {why}", markup=False, soft_wrap=True)


def _event_terms(source: str, rejects: Rejects, records: Records) -> Counter[str]:
    terms: Counter[str] = Counter()
    for event in islice(chain.from_iterable(event_batches(source, rejects, records=records)), ENOUGH):
        for name, value in event.tuples:
            terms[name] += 1
            if isinstance(value, str):
                terms[value] += 1
    return terms


def _subscription_terms(text: str) -> Counter[str]:
    from likewise.language import parse_subscription, profiles_of

    terms: Counter[str] = Counter()
    for profile in profiles_of(parse_subscription(text).body):
        for predicate in profile.predicates:
            terms[predicate.attribute] += 1
            if isinstance(predicate.value, str):
                terms[predicate.value] += 1
    return terms
