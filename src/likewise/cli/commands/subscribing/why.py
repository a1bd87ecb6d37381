"""`likewise why`: explain why an event matches a subscription or pattern, or why not."""

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
    event: Annotated[str, typer.Argument(help="Event as JSON, or a file of events, or - for stdin.")],
    subscription: Annotated[str, typer.Argument(help="Subscription or pattern as text, or a file of them.")],
    *,
    meaning: MeaningOptions,
    records: Records,
    chosen: Annotated[str | None, typer.Option("--event", help="Only the event with this id.")] = None,
    name: Annotated[str | None, typer.Option(help="Only the subscription with this name.")] = None,
    full: Annotated[bool, typer.Option("--full", help="List all the evidence, with weights in bits.")] = False,
    as_json: Json = False,
) -> None:
    """Explain why an event matches a subscription, or why not and what score it would need.

    For a pattern, all events are published first; the answer shows which events its parts got, and what was missing.

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
    events.sort(key=lambda event: -1 if event.start is None else event.start)
    engine.publish_batch(events)
    names = _picked([interest.name for interest in interests], name, "subscription")
    ids = _picked([event.id for event in events], chosen, "event")
    for picked in names:
        _explain(engine, picked, [event for event in events if event.id in ids], full=full, as_json=as_json)


def _explain(engine: Engine, name: str, events: Iterable[Event], *, full: bool, as_json: bool) -> None:
    from likewise.composite import PatternExplanation, state_lines

    explanations = [engine.explain(name, event) for event in events]
    if as_json:
        for explanation in explanations:
            print_json(explanation.as_dict())
        return
    patterns = [explanation for explanation in explanations if isinstance(explanation, PatternExplanation)]
    if len(patterns) < 2:
        lines = [explanation.text(full=full) for explanation in explanations]
    else:
        # Of many events only those that answer a part are shown, and the state of the pattern once.
        matched = [explanation for explanation in patterns if explanation.matched]
        lines = ["\n".join(explanation.event_lines(full=full)) for explanation in matched]
        rest = len(patterns) - len(matched)
        lines += [f"{counted(rest, 'event')} answered no part of {name}"] if rest else []
        lines += state_lines([patterns[0].state])
    for line in lines:
        output.print(line, markup=False, soft_wrap=True)


def _file_of(text: str) -> str | None:
    """The path, or None if a subscription's text was given: that has braces, or several words."""
    return None if "{" in text or (("\n" in text or " " in text) and not Path(text).exists()) else text


def _events_of(source: str, records: Records, *, is_text: bool) -> list[Event]:
    from likewise.events import read_events

    if is_text:
        return list(read_events(io.BytesIO(source.encode()), name="EVENT"))
    rejects = Rejects()
    events = [event for batch in event_batches(source, rejects, records=records) for event in batch]
    if not events:
        rejects.conclude()
    return events


def _interests_of(argument: str) -> list[Subscription]:
    from likewise.language import parse

    path = _file_of(argument)
    if path is None:
        return parse(argument, source="SUBSCRIPTION")
    return read_subscriptions(path, Rejects())


def _picked(names: list[str], chosen: str | None, kind: str) -> list[str]:
    """The chosen name, which must exist; without a choice, all names once."""
    if chosen is None:
        return list(dict.fromkeys(names))
    if chosen not in names:
        raise BuildError(f"there is no {kind} {chosen!r}", hint=f"there are {', '.join(names[:5])}")
    return [chosen]
