"""`likewise match`: events against subscriptions."""

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

_DRAWN = 20
"""A chart shows so many explanations; more would not be looked at."""
_FAR = 3
"""`--explain` says why not of so many events that came near to nothing; the rest is counted."""
_LOOKED_AT = 20
"""Of so many subscriptions one is chosen to explain an event that answers none at all."""


def register(app: typer.Typer) -> None:
    """Add the `match` command."""
    app.command("match", cls=Explaining)(match)


@grouped
def match(
    events: EventsSource,
    subscriptions: Annotated[str, typer.Argument(help="File of subscriptions, or - for stdin.")],
    *,
    given: FindingOptions,
    mappings: Mappings,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why, and for unmatched events why not; `--explain full` says more.")
    ] = False,
    explain_full: Annotated[bool, typer.Option("--explain-full", hidden=True)] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Why, as a chart of bars: .html, .png or .svg, for the first 20 explanations.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="The best events of each subscription, this many, whatever its threshold.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="Write here instead of printing: .parquet, .jsonl or .csv; on Spark, a folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which events answer which subscriptions, how well, and why.

    Each match is one line: how sure, and what answered what; `--explain` adds the reasons, and why others do not match.

    Example: `likewise match events.jsonl subscriptions.lw --explain`
    """
    on_spark = given.where.wanted
    given = given.checked(
        {"EVENTS": events, "SUBSCRIPTIONS": subscriptions},
        writes={"--chart": chart, "--out": None if on_spark else out},
        makes={"--out": out if on_spark else None},
    )
    shown = Shown(explain=explain or explain_full, full=explain_full, chart=chart, out=out, as_json=as_json)
    _refuse_together(rank, shown, given.where)
    rejects = Rejects(given.reading.dead_letters)
    interests = read_subscriptions(subscriptions, rejects)
    options = {"top_k": mappings.top, "aggregation": mappings.aggregation, "distinct": mappings.distinct}
    if on_spark:
        from likewise.cli.spark.finding import match_on_spark

        job = given.spark_job(events, rejects, out=out, as_json=as_json)
        match_on_spark(job, interests, **given.spark_meaning(interests), **options)
        return
    engine, spaces = _engine(interests, given.meaning, options)
    feed = Feed(events, rejects, follow=given.reading.follow, records=given.records)
    if not feed.live:
        from likewise.matching import MOST_EVENTS

        engine.learn_background(feed.first(MOST_EVENTS))
    if rank is not None:
        _show_ranks(engine, [event for batch in feed.batches() for event in batch], rank, as_json)
    else:
        _publish(engine, feed, shown, by_spaces(spaces))
    rejects.conclude()
    feed.conclude()


class ToldOnce:
    """Reasons that were given already: the same words in answer to the same subscription need them only once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], tuple[Match, int]] = {}
        self.far = 0

    def first(self, match: Match) -> bool:
        """Whether this reason is new; counts it."""
        pairs = match.mappings[0].correspondences if match.mappings else ()
        key = (match.subscription, *((id(pair.predicate), pair.tuple[0], _word(pair.tuple[1])) for pair in pairs))
        first, count = self._seen.get(key, (match, 0))
        self._seen[key] = first, count + 1
        return count == 0

    def conclude(self) -> None:
        """Say how often the near misses that were told once came again."""
        for first, count in self._seen.values():
            if first.threshold == 0 and count > 1:
                line = f"{count - 1} more came as near to {first.subscription} as {first.event.id}, for the same reason"
                output.print(line, markup=False, soft_wrap=True)
        if self.far > _FAR:
            output.print(f"{counted(self.far - _FAR, 'more event')} came near to nothing", markup=False)


def _nearest(engine: Engine, event: Event, nearest: Match | None) -> Explanation | PatternExplanation:
    """Why an event does not match what it came nearest to; where nothing answers at all, the best of some."""
    names = engine.profiles[:_LOOKED_AT] if nearest is None else [str(nearest.subscription)]
    return max((engine.explain(name, event) for name in names), key=lambda why: why.score)


def _word(value: Value) -> Value | None:
    """A value if it is a word: numbers differ from event to event, the reason does not."""
    return value if isinstance(value, str) else None


class Shown:
    """What is said of matches, and where."""

    def __init__(self, *, explain: bool, full: bool, chart: Path | None, out: str | None, as_json: bool) -> None:
        self.explain, self.full, self.chart, self.out, self.as_json = explain, full, chart, out, as_json
        self.drawn: list[Explanation] = []
        self.rows: list[dict[str, Any]] = []
        self.told = ToldOnce()
        self.loose: Matcher | None = None
        if chart is not None:
            from likewise.charts import check_chart

            check_chart(chart)

    def take(self, notices: Sequence[Notification]) -> None:
        """Say what was found."""
        for notice in notices:
            if self.out is not None:
                self.rows.append(_as_json(notice, explain=False))
            elif self.as_json:
                print_json(_as_json(notice, explain=self.explain))
            else:
                self._print(notice)
        if self.chart is not None:
            room = _DRAWN - len(self.drawn)
            self.drawn += [one.match.explain() for one in notices[:room] if one.match is not None]

    def _print(self, notice: Notification) -> None:
        if self.explain and notice.match is not None and self.told.first(notice.match):
            output.print(notice.match.explain().text(full=self.full), markup=False, soft_wrap=True)
        else:
            show_match(_as_json(notice, explain=False))

    def misses(self, engine: Engine, events: list[Event]) -> None:
        """For each event without a match the subscription that came nearest, and what it lacked.

        People are told of those that came at least half the way, equal ones once, and of a few others.
        """
        if self.loose is None:
            self.loose = engine.without_thresholds()
        for event, found in zip(events if engine.profiles else (), self.loose.match_batch(events), strict=False):
            nearest = max(found, key=lambda match: match.score, default=None)
            if self.as_json:
                print_json({"event": event.id, "explanation": _nearest(engine, event, nearest).as_dict()})
            elif self._worth_telling(engine, nearest):
                why = _nearest(engine, event, nearest).text(full=self.full)
                output.print(why, markup=False, soft_wrap=True)

    def _worth_telling(self, engine: Engine, nearest: Match | None) -> bool:
        if nearest is not None and nearest.score >= engine.matcher.settings(nearest.profile).threshold / 2:
            return self.told.first(nearest)
        self.told.far += 1
        return self.told.far <= _FAR

    def conclude(self) -> None:
        """Write what is written at the end."""
        if self.explain and not self.as_json:
            self.told.conclude()
        if self.chart is not None:
            self._draw(self.chart)
        if self.out is not None:
            from likewise.cli.reading.tables import write_rows

            write_rows(self.rows, self.out, nested=("events", "mappings"))

    def _draw(self, path: Path) -> None:
        from likewise.charts import save, waterfalls

        if not self.drawn:
            errors.print("nothing matched, so there is no chart; --explain says why not")
            return
        save(waterfalls(self.drawn), path)
        errors.print(f"{counted(len(self.drawn), 'explanation')} in {path}", markup=False, soft_wrap=True)


def _refuse_together(rank: int | None, shown: Shown, where: OnSpark) -> None:
    if rank is not None and (shown.chart or shown.explain or shown.out):
        raise BuildError("--rank gives no chart, explanations or file", hint="leave out --chart, --explain and --out")
    if where.wanted and (shown.chart or rank or shown.explain):
        raise BuildError("charts, ranks and explanations are not for Spark", hint="leave out --spark")
    if shown.out is not None and not where.wanted:
        from likewise.cli.reading.tables import kind_of

        kind_of(shown.out)


def _engine(
    interests: list[Subscription], meaning: MeaningOptions, options: dict[str, Any]
) -> tuple[Engine, list[str]]:
    from likewise.cli.reading.unknown import report_unknown
    from likewise.engine import Engine

    chosen = engine_options(meaning, interests)
    engine = Engine(**chosen, **options)
    engine.subscribe(interests)
    report_unknown(interests, chosen["spaces"])
    return engine, chosen["spaces"]


def _publish(engine: Engine, feed: Feed, shown: Shown, spaces: str) -> None:
    read = found = 0
    for batch in feed.batches():
        notices = engine.publish_batch(batch)
        read, found = read + len(batch), found + len(notices)
        shown.take(notices)
        if shown.explain:
            matched = {event.id for notice in notices for event in notice.events}
            shown.misses(engine, [event for event in batch if event.id not in matched])
    shown.conclude()
    if not shown.as_json:
        those = f"{counted(read, 'event')} with {counted(len(engine.subscriptions), 'subscription')}"
        errors.print(f"{counted(found, 'match')} of {those}{spaces}", markup=False, soft_wrap=True)


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


def show_match(plain: dict[str, Any]) -> None:
    """A match for people, from what `--json` says of it: how sure, what answers what, and which event it is."""
    from likewise.matching import percent

    answers = f": {_answers(plain['mappings'][0])}" if plain["mappings"] else ""
    line = f"{plain['subscription']} matches {', '.join(plain['events'])} with {percent(plain['score'])}{answers}"
    output.print(line, markup=False, soft_wrap=True)
    for mapping in plain["mappings"][1:]:
        line = f"  or, with probability {mapping['probability']:.2f}: {_answers(mapping)}"
        output.print(line, markup=False, soft_wrap=True)


def _answers(mapping: dict[str, Any]) -> str:
    """What answers what; of several predicates that hold exactly, only how many they are."""
    pairs = mapping["correspondences"]
    told = [pair for pair in pairs if pair["similarity"] < 1]
    exact = [pair for pair in pairs if pair["similarity"] >= 1]
    more = [f"{len(exact)} predicates hold exactly"] if len(exact) > 1 else []
    told += exact if len(exact) == 1 else []
    return ", ".join([f'"{pair["attribute"]}: {pair["value"]}" answers {pair["predicate"]}' for pair in told] + more)


def _as_json(notice: Notification, *, explain: bool) -> dict[str, Any]:
    why = {"explanation": notice.match.explain().as_dict()} if explain and notice.match is not None else {}
    if notice.match is not None:
        return why | match_plain(notice.match)
    ids = [event.id for event in notice.events]
    return {"subscription": notice.subscription, "event": ids[-1], "events": ids, "score": notice.score, "mappings": []}


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
    from likewise.language import format_predicate

    return {
        "predicate": format_predicate(pair.predicate),
        "attribute": pair.tuple[0],
        "value": pair.tuple[1],
        "similarity": pair.similarity,
        "probability": pair.probability,
    }
