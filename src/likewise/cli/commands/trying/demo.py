"""`likewise demo`: a small tour on local Spark, with a report to open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.options import Json
from likewise.cli.output import errors, output, print_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from likewise.evaluation.datasets.building import Happening
    from likewise.language import Subscription
    from likewise.matching import Match

Rows = list[dict[str, Any]]

_FIRST_EVENT = """{energy, appliances, building},
{type: increased energy consumption event, measurement unit: kilowatt hour, device: computer, office: room 112}"""
_FIRST_SUBSCRIPTIONS = """\
in-his-words: {energy, appliances}, {type = increased energy consumption event, device = computer, office = room 112}
in-her-words: {power, computers}, {type = increased energy usage event~, device~ = laptop~, office = room 112}
"""
_PAIRS = (("laptop", "notebook computer"), ("fridge", "refrigerator"), ("window broken", "window glass shattered"))


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the files and the report.")] = Path("out/demo"),
    events: Annotated[int, typer.Option(min=100, help="Number of events that the simulated building sends.")] = 20_000,
    space: Annotated[str, typer.Option(help="Space to use; WordNet's is built if it is missing.")] = "wordnet",
    rebuild: Annotated[bool, typer.Option(help="Build the WordNet space even if it exists.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master. [default: all cores of this machine]")] = None,
    as_json: Json = False,
) -> None:
    """Show how Likewise works on local Spark, and write a report to open.

    Builds a space from WordNet, matches events of three makers, detects situations, and checks them against the truth.

    Example: `likewise demo --events 5000`
    """
    from likewise.cli.spark.session import session

    guard(reads={}, makes={"--out": out / "report.html"})
    started = time.perf_counter()
    output.quiet = as_json
    try:
        out.mkdir(parents=True, exist_ok=True)
        _first_match()
        output.print("\n[bold]Starting Spark[/bold]")
        with session(master, None) as spark:
            if space == "wordnet":
                _build(spark, rebuild=rebuild)
            _relate(space)
            facts = _building(spark, space, out, count=events)
        path = _report(out, space, facts)
        output.print(f"\nDone in {time.perf_counter() - started:.0f} s. Open the report: {path}")
    finally:
        output.quiet = False
    if as_json:
        results = {"found": facts["found"], "situations": _counted(facts["detections"])}
        print_json({"events": events, "seconds": round(facts["seconds"], 1), **results, "report": str(path)})


@contextmanager
def _step(title: str) -> Iterator[None]:
    output.print(f"\n[bold]{title}[/bold]")
    with errors.status(f"{title} …"):
        yield


def _first_match() -> None:
    """Match one event exactly and by meaning, before any space is built."""
    from likewise.engine import Engine
    from likewise.language import format_event, format_subscription, parse, parse_event

    output.print("[bold]An event and two subscriptions, as the papers print them[/bold]")
    event = parse_event(_FIRST_EVENT)
    output.print(f"  {format_event(event)}", markup=False, soft_wrap=True)
    exact, approximate = parse(_FIRST_SUBSCRIPTIONS)
    for subscription in (exact, approximate):
        output.print(f"  {format_subscription(subscription)}", markup=False, soft_wrap=True)
    engine = Engine()
    engine.subscribe([exact, approximate])
    for notification in engine.publish(event):
        how = "exact words" if notification.subscription == exact.name else "meaning, though no space is built yet"
        line = f"  {notification.subscription} matches by {how}, score {notification.score:.2f}"
        output.print(line, markup=False, soft_wrap=True)


def _build(spark: SparkSession, *, rebuild: bool) -> None:
    from likewise.pipeline import Corpus, build_space
    from likewise.semantics import space_path

    path = space_path("wordnet")
    if path.is_dir() and not rebuild:
        output.print(
            f"\nThe WordNet space is already built ({path}); --rebuild builds it again",
            markup=False,
            soft_wrap=True,
        )
        return
    with _step("Building a space from WordNet on Spark: each synset is a concept"):
        summary = build_space(spark, Corpus.find("wordnet"), path, overwrite=True)
    counts = ", ".join(f"{summary.manifest.counts[part]:,} {part}" for part in ("concepts", "terms", "postings"))
    output.print(f"  {counts} in {summary.seconds:.0f} s", markup=False, soft_wrap=True)


def _relate(space: str) -> None:
    from likewise.semantics import find_space, measure

    evidence = measure("evidence", spaces=[find_space(space)])
    output.print("\n[bold]What words mean[/bold]")
    for left, right in (*_PAIRS, ("parking", "energy")):
        score = float(evidence.matrix([left], [right])[0, 0])
        bits = ", ".join(f"{part.weight:+.1f} {part.concept}" for part in evidence.reason(left, right, limit=3))
        output.print(f"  {left} ~ {right}: {score:.0%}  ({bits})", markup=False, soft_wrap=True)


def _building(spark: SparkSession, space: str, out: Path, *, count: int) -> dict[str, Any]:
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS, simulate
    from likewise.events import write_events
    from likewise.pipeline import detect, match, read_events

    happenings = simulate(count)
    stream = out / "events.jsonl"
    write_events((happening.event for happening in happenings), stream)
    (out / "subscriptions.lw").write_text(SUBSCRIPTIONS, encoding="utf-8")
    frame = read_events(spark, stream)
    started = time.perf_counter()
    with _step(f"Matching {count:,} events of three makers with subscriptions in other words, on Spark"):
        matches = _rows(match(frame, _singles(), spaces=space))
    quality = _found(matches, happenings)
    _show(quality)
    with _step("Detecting situations on Spark: a window broken, then presence within 10 minutes, in the same room~"):
        detections = _rows(detect(frame, SUBSCRIPTIONS, spaces=space))
    _show(_counted(detections))
    return {
        "count": count,
        "seconds": time.perf_counter() - started,
        "matches": matches,
        "found": quality,
        "detections": detections,
        "happenings": happenings,
    }


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _found(matches: Rows, happenings: list[Happening]) -> Rows:
    """Precision and recall by subscription; the truth is known, as the events are simulated."""
    from likewise.evaluation.datasets.building import relevant

    rows: Rows = []
    for subscription in _singles():
        expected = relevant(subscription.name, happenings)
        matched = {row["event_id"] for row in matches if row["subscription"] == subscription.name}
        right = len(expected & matched)
        rows.append(
            {
                "subscription": subscription.name,
                "relevant events": len(expected),
                "found": len(matched),
                "precision": right / len(matched) if matched else 0.0,
                "recall": right / len(expected) if expected else 1.0,
            }
        )
    return rows


def _singles() -> list[Subscription]:
    """The subscriptions to single events."""
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS
    from likewise.language import Profile, parse

    return [subscription for subscription in parse(SUBSCRIPTIONS) if isinstance(subscription.body, Profile)]


def _counted(detections: Rows) -> Rows:
    """The number of detections and the highest probability of every pattern, also of those without any."""
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS
    from likewise.language import Composite, parse

    names = [pattern.name for pattern in parse(SUBSCRIPTIONS) if isinstance(pattern.body, Composite)]
    return [
        {
            "pattern": name,
            "detections": len(scores := [row["probability"] for row in detections if row["pattern"] == name]),
            "highest probability": max(scores, default=None),
        }
        for name in names
    ]


def _show(rows: Rows) -> None:
    from rich.table import Table

    table = Table()
    for column in rows[0] if rows else ("nothing",):
        table.add_column(column, justify="left" if column in {"subscription", "pattern"} else "right")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row.values()))
    output.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _explained(space: str, happenings: list[Happening]) -> list[Match]:
    """One match in other words for each subscription, from the same engine in this process."""
    from likewise.engine import Engine
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS

    engine = Engine(spaces=[space])
    engine.subscribe(SUBSCRIPTIONS)
    matches: dict[str, Match] = {}
    for notification in engine.publish_batch([happening.event for happening in happenings[:2000]]):
        if notification.match is not None and notification.event.tuples[0][0] != "type":
            matches.setdefault(notification.subscription, notification.match)
    return list(matches.values())


def _report(out: Path, space: str, facts: dict[str, Any]) -> Path:
    from likewise.charts import ReportPage, situations, words_of
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS

    page = ReportPage("Likewise: the demo's report")
    page.text(
        "Three makers of sensors report the same things, each in its own words. One person subscribes to them in a "
        "fourth vocabulary, without knowing the others."
    )
    page.heading("The same things in the words of three makers").table(_vocabularies())
    page.heading("Subscriptions in other words").code(SUBSCRIPTIONS)
    page.heading("Results")
    page.facts(
        {
            "events": facts["count"],
            "matches": len(facts["matches"]),
            "situations": len(facts["detections"]),
            "seconds on Spark": round(facts["seconds"]),
        }
    )
    page.table(facts["found"])
    page.text(
        f"Words were compared with the space {Path(space).name}. The makers' words were chosen so that WordNet relates "
        "them: the demo shows how Likewise works; `likewise evaluate matching` measures how good it is."
    )
    page.heading("Why")
    for match in _explained(space, facts["happenings"]):
        page.code(match.explain().text())
    page.heading("Situations").table(_counted(facts["detections"]))
    words = {happening.event.id: words_of(happening.event) for happening in facts["happenings"]}
    first = sorted(facts["detections"], key=lambda row: row["time"])[:20]
    page.text(f"The first {len(first)}, in event time (UTC):" if first else "None.")
    page.table([_detection_row(row, words) for row in first])
    if first:
        page.chart(situations(_spans(first, words)), "The same, as a timeline")
    return page.write(out / "report.html")


def _vocabularies() -> Rows:
    """The words of each maker for the same thing."""
    from likewise.evaluation.datasets.building import KINDS, WINDOW

    makers = ("first maker", "second maker", "third maker")
    return [{"what happens": kind.name, **dict(zip(makers, kind.types, strict=True))} for kind in (*KINDS, WINDOW)]


def _spans(detections: Rows, words: dict[str, str]) -> Rows:
    """A row for each event of the detections, for a chart."""
    return [
        {
            "situation": f"{number}. {row['pattern']}",
            "time": event["start"].astimezone(UTC).isoformat(),
            "what": f"{event['role']}: {words.get(event['id'], event['id'])}",
        }
        for number, row in enumerate(detections, 1)
        for event in row["events"]
        if event["start"] is not None
    ]


def _detection_row(row: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    # Spark returns times without a zone, in the zone of this process.
    start, end = (row[name].astimezone(UTC) for name in ("start", "end"))
    return {
        "pattern": row["pattern"],
        "from": f"{start:%Y-%m-%d %H:%M:%S}",
        "to": f"{end:%H:%M:%S}",
        "probability": float(row["probability"]),
        "events": "; ".join(f"{event['role']}: {words.get(event['id'], event['id'])}" for event in row["events"]),
    }
