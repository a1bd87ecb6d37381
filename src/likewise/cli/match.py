"""`likewise match`: events against subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._guard import guard
from likewise.cli._input import Rejects, by_spaces, event_batches, read_subscriptions, spaces_for
from likewise.cli._options import DeadLetters
from likewise.cli._output import counted, errors, output, print_json
from likewise.cli.vocabulary import read_vocabulary
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.engine import Engine, Notification
    from likewise.events import Event
    from likewise.matching import Correspondence, Explanation, Match

_DRAWN = 20
"""A chart shows so many explanations; more would not be looked at."""


def register(app: typer.Typer) -> None:
    """Add the `match` command."""
    app.command("match")(match)


def match(
    events: Annotated[str, typer.Argument(help="File of events (JSON lines, CloudEvents, RDF), or - for stdin.")],
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    approach: Annotated[str | None, typer.Option(help="exact, approximate, thematic, …")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Least score of a match.")] = None,
    aggregation: Annotated[str | None, typer.Option(help="cautious, geometric, product or mean.")] = None,
    top: Annotated[int, typer.Option(min=1, help="So many mappings for each match.")] = 1,
    distinct: Annotated[bool, typer.Option("--distinct", help="A tuple answers one predicate only.")] = False,
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    background: Annotated[
        Path | None, typer.Option(help="Words of the stream to rank by, as `likewise vocabulary` writes them.")
    ] = None,
    dead_letters: DeadLetters = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark: for more than one machine can hold.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None,
    out: Annotated[str | None, typer.Option(help="With --spark: write Parquet here instead of printing.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why, and for unmatched events why not.")] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Why, as a chart of bars: .html, .png or .svg, for the first 20 explanations.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="The so many best events of each subscription, whatever its threshold.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line for each match.")] = False,
) -> None:
    """Say which events answer which subscriptions, how well, and why.

    Each match is printed with its score and with what answered what; `--explain` also tells why others did not match.

    Example: `likewise match events.jsonl subscriptions.lw --explain`
    """
    guard(
        reads={"EVENTS": events, "SUBSCRIPTIONS": subscriptions, "--background": background},
        writes={"--chart": chart, "--dead-letters": dead_letters},
        makes={"--out": out},
    )
    if rank is not None and (chart or explain):
        raise BuildError("--rank gives neither a chart nor explanations", hint="leave out --chart and --explain")
    if chart is not None:
        from likewise.evaluation.charts import check_chart

        check_chart(chart)
    rejects = Rejects(dead_letters)
    interests = read_subscriptions(subscriptions, rejects)
    spaces = space or spaces_for(interests, approach)
    options: dict[str, Any] = {"approach": approach, "threshold": threshold, "top_k": top}
    options |= {"aggregation": aggregation, "distinct": distinct}
    options |= {"background": None if background is None else read_vocabulary(background)}
    if spark or master or remote or out:
        from likewise.cli._spark import match_on_spark

        if chart or rank or explain:
            raise BuildError("charts, ranks and explanations are not for Spark", hint="leave out --spark")

        place: dict[str, Any] = {
            "master": master,
            "remote": remote,
            "out": out,
            "rejects": rejects,
            "as_json": as_json,
        }
        match_on_spark(events, interests, space=spaces, **place, **options)
        return
    from likewise.engine import Engine

    engine = Engine(spaces=spaces, **options)
    engine.subscribe(interests)
    if rank is not None:
        _show_ranks(engine, [event for batch in event_batches(events, rejects) for event in batch], rank, as_json)
        rejects.conclude()
        return
    drawn: list[Explanation] = []
    read = found = 0
    for batch in event_batches(events, rejects):
        read += len(batch)
        told_of = engine.publish_batch(batch)
        found += len(told_of)
        for told in told_of:
            print_json(_as_json(told, explain=explain)) if as_json else _show(told, explain=explain)
        if chart is not None:
            drawn += [told.match.explain() for told in told_of[: _DRAWN - len(drawn)] if told.match is not None]
        if explain:
            matched = {event.id for told in told_of for event in told.events}
            _show_misses(engine, [event for event in batch if event.id not in matched], as_json=as_json)
    if chart is not None:
        _draw(chart, drawn)
    if not as_json:
        those = f"{counted(read, 'event')} with {counted(len(engine.subscriptions), 'subscription')}"
        errors.print(f"{counted(found, 'match')} of {those}{by_spaces(spaces)}", markup=False, soft_wrap=True)
    rejects.conclude()


def _draw(path: Path, explanations: list[Explanation]) -> None:
    from likewise.evaluation.charts import save
    from likewise.evaluation.waterfall import waterfalls

    if not explanations:
        errors.print("nothing matched, so there is no chart; --explain says why not")
        return
    save(waterfalls(explanations), path)
    errors.print(f"{counted(len(explanations), 'explanation')} in {path}", markup=False, soft_wrap=True)


def _show_ranks(engine: Engine, events: list[Event], limit: int, as_json: bool) -> None:
    """For each subscription the events that answer it best."""
    for name in engine.profiles:
        ranked = engine.rank(name, events, limit=limit)
        if as_json:
            best = [{"event": match.event.id, "score": match.score} for match in ranked]
            print_json({"subscription": name, "ranking": best})
            continue
        output.print(f"{name}: {counted(len(ranked), 'event')}", markup=False, soft_wrap=True)
        for place, match in enumerate(ranked, 1):
            output.print(f"  {place}. {match.event.id}  score {match.score:.3f}", markup=False, soft_wrap=True)


def _show(told: Notification, *, explain: bool) -> None:
    if explain and told.match is not None:
        output.print(told.match.explain().text(), markup=False, soft_wrap=True)
        return
    show_told(_as_json(told, explain=False))


def show_told(told: dict[str, Any]) -> None:
    """A match for people, from what `--json` says of it."""
    line = f"{told['subscription']} matches {', '.join(told['events'])}  score {told['score']:.3f}"
    output.print(line, markup=False, soft_wrap=True)
    for mapping in told["mappings"]:
        output.print(f"  mapping with probability {mapping['probability']:.3f}")
        for pair in mapping["correspondences"]:
            said = f"{pair['attribute']}: {pair['value']}  similarity {pair['similarity']:.3f}"
            output.print(f"    {pair['predicate']}  ↔  {said}", markup=False, soft_wrap=True)


def _show_misses(engine: Engine, events: list[Event], *, as_json: bool) -> None:
    """For each event without a match the subscription that came nearest, and what it lacked."""
    if not engine.profiles:
        return
    for event in events:
        nearest = max((engine.explain(name, event) for name in engine.profiles), key=lambda why: why.score)
        if as_json:
            print_json({"event": event.id, "explanation": nearest.as_dict()})
        else:
            output.print(nearest.text(), markup=False, soft_wrap=True)


def _as_json(told: Notification, *, explain: bool) -> dict[str, Any]:
    why = {"explanation": told.match.explain().as_dict()} if explain and told.match is not None else {}
    if told.match is not None:
        return why | match_plain(told.match)
    ids = [event.id for event in told.events]
    return {"subscription": told.subscription, "event": ids[-1], "events": ids, "score": told.score, "mappings": []}


def match_plain(match: Match) -> dict[str, Any]:
    """What `--json` says of a match, in this process as on Spark."""
    return {
        "subscription": str(match.subscription),
        "event": match.event.id,
        "events": [match.event.id],
        "score": match.score,
        "mappings": [
            {
                "probability": mapping.probability,
                "correspondences": [_pair_plain(pair) for pair in mapping.correspondences],
            }
            for mapping in match.mappings
        ],
    }


def _pair_plain(pair: Correspondence) -> dict[str, Any]:
    from likewise.language._format_profile import format_predicate

    return {
        "predicate": format_predicate(pair.predicate),
        "attribute": pair.tuple[0],
        "value": pair.tuple[1],
        "similarity": pair.similarity,
        "probability": pair.probability,
    }
