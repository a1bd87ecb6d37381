"""`likewise match`: match events against subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.finding import EventsSource, FindingOptions
from likewise.cli.meaning import engine_options
from likewise.cli.options import Explaining, Json, Mappings, MeaningOptions, OnSpark, grouped
from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.reading.feed import Feed
from likewise.cli.reading.input import Rejects, by_spaces, read_subscriptions
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.composite import PatternExplanation
    from likewise.engine import Engine, Notification
    from likewise.events import Event, Value
    from likewise.language import Subscription
    from likewise.matching import Correspondence, Explanation, Match, Matcher

_CHARTED = 20
"""Explanations in a chart, at most."""
_FAR_SHOWN = 3
"""Events far from every subscription that `--explain` shows; the rest is counted."""
_COMPARED = 20
"""Subscriptions compared, at most, to explain an event that scores zero for all of them."""


def register(app: typer.Typer) -> None:
    """Add the `match` command."""
    app.command("match", cls=Explaining)(match)


@grouped
def match(
    events: EventsSource,
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    finding: FindingOptions,
    mappings: Mappings,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Give reasons for matches and near misses; `--explain full` lists all the evidence."
        ),
    ] = False,
    explain_full: Annotated[bool, typer.Option("--explain-full", hidden=True)] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Write the first 20 explanations as bar charts: .html, .png or .svg.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Show this many best events of each subscription, whatever its threshold.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(help="Write to this file instead of printing: .parquet, .jsonl or .csv; on Spark, a folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the events that match subscriptions, with scores and reasons.

    Each match is one line: the score and what answered what. A subscription is written like this:
    `hot: {type~ = temperature~, value > 30}`; `~` also accepts words that mean the same.

    Example: `likewise match events.jsonl subscriptions.lw --explain`
    """
    on_spark = finding.where.wanted
    finding = finding.checked(
        {"EVENTS": events, "SUBSCRIPTIONS": subscriptions},
        writes={"--chart": chart, "--out": None if on_spark else out},
        makes={"--out": out if on_spark else None},
    )
    printer = MatchPrinter(explain=explain or explain_full, full=explain_full, chart=chart, out=out, as_json=as_json)
    _refuse_together(rank, printer, finding.where)
    rejects = Rejects(finding.reading.dead_letters)
    interests = read_subscriptions(subscriptions, rejects)
    options = {"top_k": mappings.top, "aggregation": mappings.aggregation, "distinct": mappings.distinct}
    if on_spark:
        from likewise.cli.spark.finding import match_on_spark

        job = finding.spark_job(events, rejects, out=out, as_json=as_json)
        match_on_spark(job, interests, **finding.spark_meaning(interests), **options)
        return
    engine, spaces = _engine(interests, finding.meaning, options)
    feed = Feed(events, rejects, follow=finding.reading.follow, records=finding.records)
    if not feed.live:
        from likewise.matching import MOST_EVENTS

        engine.learn_background(feed.first(MOST_EVENTS))  # so that the first events get the same scores as the last
    if rank is not None:
        _show_ranks(engine, [event for batch in feed.batches() for event in batch], rank, as_json)
    else:
        _publish(engine, feed, printer, by_spaces(spaces))
    rejects.conclude()
    feed.conclude()


class RepeatedReasons:
    """Counts equal reasons: the same words that answer the same subscription are explained only once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], tuple[Match, int]] = {}
        self.far = 0

    def is_first(self, match: Match) -> bool:
        """Count a match's reason and return whether it is new."""
        pairs = match.mappings[0].correspondences if match.mappings else ()
        key = (match.subscription, *((id(pair.predicate), pair.tuple[0], _word(pair.tuple[1])) for pair in pairs))
        first, count = self._seen.get(key, (match, 0))
        self._seen[key] = first, count + 1
        return count == 0

    def conclude(self) -> None:
        """Print how many events the shown near misses stand for."""
        for first, count in self._seen.values():
            if first.threshold == 0 and count > 1:
                more = counted(count - 1, "more event")
                line = f"{more} missed {first.subscription} for the same reason as {first.event.id}"
                output.print(line, markup=False, soft_wrap=True)
        if self.far > _FAR_SHOWN:
            output.print(f"{counted(self.far - _FAR_SHOWN, 'more event')} far from every subscription", markup=False)


def _nearest(engine: Engine, event: Event, nearest: Match | None) -> Explanation | PatternExplanation:
    """Why an event does not match its nearest subscription; if all score zero, the best of the first few."""
    names = engine.profiles[:_COMPARED] if nearest is None else [str(nearest.subscription)]
    return max((engine.explain(name, event) for name in names), key=lambda why: why.score)


def _word(value: Value) -> Value | None:
    """The value if it is text; numbers differ from event to event while the reason stays the same."""
    return value if isinstance(value, str) else None


class MatchPrinter:
    """Prints matches and near misses, or collects them for a file or a chart."""

    def __init__(self, *, explain: bool, full: bool, chart: Path | None, out: str | None, as_json: bool) -> None:
        self.explain, self.full, self.chart, self.out, self.as_json = explain, full, chart, out, as_json
        self.charted: list[Explanation] = []
        self.rows: list[dict[str, Any]] = []
        self.reasons = RepeatedReasons()
        self.loose: Matcher | None = None
        if chart is not None:
            from likewise.charts import check_chart

            check_chart(chart)

    def take(self, notifications: Sequence[Notification]) -> None:
        """Print or collect notifications."""
        for notification in notifications:
            if self.out is not None:
                self.rows.append(_as_json(notification, explain=False))
            elif self.as_json:
                print_json(_as_json(notification, explain=self.explain))
            else:
                self._print(notification)
        if self.chart is not None:
            matches = (notification.match for notification in notifications[: _CHARTED - len(self.charted)])
            self.charted += [match.explain() for match in matches if match is not None]

    def _print(self, notification: Notification) -> None:
        if self.explain and notification.match is not None and self.reasons.is_first(notification.match):
            output.print(notification.match.explain().text(full=self.full), markup=False, soft_wrap=True)
        else:
            show_match(_as_json(notification, explain=False))

    def misses(self, engine: Engine, events: list[Event]) -> None:
        """For events without a match, print the nearest subscription and what was missing.

        As text, only events that reach half the threshold are shown, equal ones once, and a few others.
        """
        if self.loose is None:
            self.loose = engine.without_thresholds()
        for event, matches in zip(events if engine.profiles else (), self.loose.match_batch(events), strict=False):
            nearest = max(matches, key=lambda match: match.score, default=None)
            if self.as_json:
                print_json({"event": event.id, "explanation": _nearest(engine, event, nearest).as_dict()})
            elif self._is_shown(engine, nearest):
                why = _nearest(engine, event, nearest).text(full=self.full)
                output.print(why, markup=False, soft_wrap=True)

    def _is_shown(self, engine: Engine, nearest: Match | None) -> bool:
        if nearest is not None and nearest.score >= engine.matcher.settings(nearest.profile).threshold / 2:
            return self.reasons.is_first(nearest)
        self.reasons.far += 1
        return self.reasons.far <= _FAR_SHOWN

    def conclude(self) -> None:
        """Print the counts, and write the chart and the file."""
        if self.explain and not self.as_json:
            self.reasons.conclude()
        if self.chart is not None:
            self._draw(self.chart)
        if self.out is not None:
            from likewise.cli.reading.tables import write_rows

            write_rows(self.rows, self.out, nested=("events", "mappings"))

    def _draw(self, path: Path) -> None:
        from likewise.charts import save, waterfalls

        if not self.charted:
            errors.print("nothing matched, so no chart was written; --explain says why not")
            return
        save(waterfalls(self.charted), path)
        errors.print(f"{counted(len(self.charted), 'explanation')} in {path}", markup=False, soft_wrap=True)


def _refuse_together(rank: int | None, printer: MatchPrinter, where: OnSpark) -> None:
    if rank is not None and (printer.chart or printer.explain or printer.out):
        raise BuildError(
            "--rank excludes --chart, --explain and --out", hint="leave out --rank, or --chart, --explain and --out"
        )
    if where.wanted and (printer.chart or rank or printer.explain):
        raise BuildError("not on Spark: --chart, --rank, --explain", hint="leave them out, or run without --spark")
    if printer.out is not None and not where.wanted:
        from likewise.cli.reading.tables import kind_of

        kind_of(printer.out)


def _engine(
    interests: list[Subscription], meaning: MeaningOptions, options: dict[str, Any]
) -> tuple[Engine, list[str]]:
    from likewise.cli.reading.spaces import report_unknown
    from likewise.engine import Engine

    chosen = engine_options(meaning, interests)
    engine = Engine(**chosen, **options)
    engine.subscribe(interests)
    report_unknown(interests, chosen["spaces"])
    return engine, chosen["spaces"]


def _publish(engine: Engine, feed: Feed, printer: MatchPrinter, spaces: str) -> None:
    events_read = notified = 0
    for batch in feed.batches():
        notifications = engine.publish_batch(batch)
        events_read, notified = events_read + len(batch), notified + len(notifications)
        printer.take(notifications)
        if printer.explain:
            matched = {event.id for notification in notifications for event in notification.events}
            printer.misses(engine, [event for event in batch if event.id not in matched])
    printer.conclude()
    if not printer.as_json:
        inputs = f"{counted(events_read, 'event')} with {counted(len(engine.subscriptions), 'subscription')}"
        errors.print(f"{counted(notified, 'match')} of {inputs}{spaces}", markup=False, soft_wrap=True)


def _show_ranks(engine: Engine, events: list[Event], limit: int, as_json: bool) -> None:
    """Print the best events of each subscription."""
    for name in engine.profiles:
        ranked = engine.rank(name, events, limit=limit)
        if as_json:
            best = [{"event": match.event.id, "score": match.score} for match in ranked]
            print_json({"subscription": name, "ranking": best})
            continue
        output.print(f"{name}: {counted(len(ranked), 'event')}", markup=False, soft_wrap=True)
        for place, match in enumerate(ranked, 1):
            output.print(f"  {place}. {match.event.id}  score {match.score:.3f}", markup=False, soft_wrap=True)


def show_match(plain: dict[str, Any]) -> None:
    """Print a match, given as its JSON document, in one line: score, what answers what, event."""
    from likewise.matching import percent

    answers = f": {_answers(plain['mappings'][0])}" if plain["mappings"] else ""
    line = f"{plain['subscription']} matches {', '.join(plain['events'])} with {percent(plain['score'])}{answers}"
    output.print(line, markup=False, soft_wrap=True)
    for mapping in plain["mappings"][1:]:
        line = f"  or, with probability {mapping['probability']:.2f}: {_answers(mapping)}"
        output.print(line, markup=False, soft_wrap=True)


def _answers(mapping: dict[str, Any]) -> str:
    """What answers what; several predicates that hold exactly are only counted."""
    pairs = mapping["correspondences"]
    shown = [pair for pair in pairs if pair["similarity"] < 1]
    exact = [pair for pair in pairs if pair["similarity"] >= 1]
    more = [f"{len(exact)} predicates hold exactly"] if len(exact) > 1 else []
    shown += exact if len(exact) == 1 else []
    return ", ".join([f'"{pair["attribute"]}: {pair["value"]}" answers {pair["predicate"]}' for pair in shown] + more)


def _as_json(notification: Notification, *, explain: bool) -> dict[str, Any]:
    match = notification.match
    if match is not None:
        why = {"explanation": match.explain().as_dict()} if explain else {}
        return why | match_plain(match)
    ids = [event.id for event in notification.events]
    return {
        "subscription": notification.subscription,
        "event": ids[-1],
        "events": ids,
        "score": notification.score,
        "mappings": [],
    }


def match_plain(match: Match) -> dict[str, Any]:
    """The JSON document of a match, the same in this process and on Spark."""
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
    from likewise.language import format_predicate

    return {
        "predicate": format_predicate(pair.predicate),
        "attribute": pair.tuple[0],
        "value": pair.tuple[1],
        "similarity": pair.similarity,
        "probability": pair.probability,
    }
