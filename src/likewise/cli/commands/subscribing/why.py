"""`likewise why`: why an event matches a subscription or a pattern, or why it does not and what would be enough."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import engine_options, settled
from likewise.cli.options import Json, MeaningOptions, grouped
from likewise.cli.output import counted, output, print_json
from likewise.cli.reading.input import Rejects, event_batches, read_subscriptions
from likewise.cli.reading.records import Records
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.engine import Engine
    from likewise.events import Event
    from likewise.language import Subscription


def register(app: typer.Typer) -> None:
    """Add the `why` command."""
    app.command("why")(why)


@grouped
def why(
    event: Annotated[str, typer.Argument(help="An event as JSON, or a file of events, or - for stdin.")],
    subscription: Annotated[str, typer.Argument(help="A subscription or pattern as text, or a file of them.")],
    *,
    meaning: MeaningOptions,
    records: Records,
    chosen: Annotated[str | None, typer.Option("--event", help="Only the event with this id.")] = None,
    name: Annotated[str | None, typer.Option(help="Only the subscription of this name.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show the score step by step, and the shared concepts.")] = False,
    as_json: Json = False,
) -> None:
    """Say why an event matches, or why it does not and what would be enough.

    For a pattern, all events go through it first; then it says what each part got, and what was missing.

    Example: `likewise why '{"attributes": {"type": "parking"}}' '{type = parking}'`
    """
    meaning = settled(meaning)
    is_text = event.lstrip().startswith("{")
    guard(
        reads={
            "EVENT": None if is_text else event,
            "SUBSCRIPTION": _file_of(subscription),
            "--mapping": records.mapping,
        },
        writes={"--save-mapping": records.save_mapping},
    )
    events = _events_of(event, records, is_text=is_text)
    interests = _interests_of(subscription)
    from likewise.engine import Engine

    engine = Engine(**engine_options(meaning, interests))
    engine.subscribe(interests)
    engine.learn_background(events)
    events.sort(key=lambda each: -1 if each.start is None else each.start)
    engine.publish_batch(events)
    names = _picked([each.name for each in interests], name, "subscription")
    wanted = _picked([each.id for each in events], chosen, "event")
    for each in names:
        _explain(engine, each, [one for one in events if one.id in wanted], full=full, as_json=as_json)


def _explain(engine: Engine, name: str, events: Iterable[Event], *, full: bool, as_json: bool) -> None:
    from likewise.composite import PatternExplanation, state_lines

    found = [engine.explain(name, event) for event in events]
    if as_json:
        for each in found:
            print_json(each.as_dict())
        return
    patterns = [each for each in found if isinstance(each, PatternExplanation)]
    if len(patterns) < 2:
        lines = [each.text(full=full) for each in found]
    else:
        # Of many events, those that answer a part tell the story; how far the pattern came is said once.
        answers = [each for each in patterns if each.matched]
        lines = ["\n".join(each.event_lines(full=full)) for each in answers]
        rest = len(patterns) - len(answers)
        lines += [f"{counted(rest, 'event')} answered no part of {name}"] if rest else []
        lines += state_lines([patterns[0].state])
    for line in lines:
        output.print(line, markup=False, soft_wrap=True)


def _file_of(text: str) -> str | None:
    """The path, if that is what was given: a text has braces, or several words."""
    return None if "{" in text or (("\n" in text or " " in text) and not Path(text).exists()) else text


def _events_of(source: str, records: Records, *, is_text: bool) -> list[Event]:
    from likewise.events import read_events

    if is_text:
        return list(read_events(io.BytesIO(source.encode()), name="EVENT"))
    rejects = Rejects()
    found = [event for batch in event_batches(source, rejects, records=records) for event in batch]
    if not found:
        rejects.conclude()
    return found


def _interests_of(given: str) -> list[Subscription]:
    from likewise.language import parse

    path = _file_of(given)
    if path is None:
        return parse(given, source="SUBSCRIPTION")
    return read_subscriptions(path, Rejects())


def _picked(names: list[str], wanted: str | None, what: str) -> list[str]:
    if wanted is None:
        return list(dict.fromkeys(names))
    if wanted not in names:
        raise BuildError(f"there is no {what} {wanted!r}", hint=f"there are {', '.join(names[:5])}")
    return [wanted]
