"""`likewise demo`: the whole story on local Spark, small, with a report to open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
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
    out: Annotated[Path, typer.Option(help="Where files and the report go.")] = Path("out/demo"),
    events: Annotated[int, typer.Option(min=100, help="How many events the simulated building sends.")] = 20_000,
    space: Annotated[str, typer.Option(help="Space to use; WordNet's is built if it is not on the shelf.")] = "wordnet",
    rebuild: Annotated[bool, typer.Option(help="Build WordNet's space anew.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master; all cores of this machine by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was found, as one JSON document.")] = False,
) -> None:
    """Show the whole story on local Spark, with a report to open.

    It builds a space from WordNet, matches events of three makers, detects situations and says what it found.

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
        found = {"found": facts["found"], "situations": _counted(facts["detections"])}
        print_json({"events": events, "seconds": round(facts["seconds"], 1), **found, "report": str(path)})


@contextmanager
def _step(what: str) -> Iterator[None]:
    output.print(f"\n[bold]{what}[/bold]")
    with errors.status(f"{what} …"):
        yield


def _first_match() -> None:
    """Exact terms match exactly; terms marked `~` by what is known of words without any space."""
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
    for found in engine.publish(event):
        how = "exact words" if found.subscription == exact.name else "meaning, though no space is built yet"
        output.print(f"  {found.subscription} matches by {how}, score {found.score:.2f}", markup=False, soft_wrap=True)


def _build(spark: SparkSession, *, rebuild: bool) -> None:
    from likewise.pipeline import Corpus, build_space
    from likewise.semantics import space_path

    path = space_path("wordnet")
    if path.is_dir() and not rebuild:
        output.print(
            f"\nThe WordNet space stands on the shelf already ({path}); --rebuild makes it anew",
            markup=False,
            soft_wrap=True,
        )
        return
    with _step("Building a space from WordNet on Spark: each synset is a concept"):
        made = build_space(spark, Corpus.find("wordnet"), path, overwrite=True)
    counts = ", ".join(f"{made.manifest.counts[what]:,} {what}" for what in ("concepts", "terms", "postings"))
    output.print(f"  {counts} in {made.seconds:.0f} s", markup=False, soft_wrap=True)


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
    write_events((one.event for one in happenings), stream)
    (out / "subscriptions.lw").write_text(SUBSCRIPTIONS, encoding="utf-8")
    frame = read_events(spark, stream)
    started = time.perf_counter()
    with _step(f"Matching {count:,} events of three makers with subscriptions in nobody's words, on Spark"):
        matches = _rows(match(frame, _singles(), spaces=space))
    found = _found(matches, happenings)
    _show(found)
    with _step("Detecting situations on Spark: a window broken, then presence within 10 minutes, in the same room~"):
        detections = _rows(detect(frame, SUBSCRIPTIONS, spaces=space))
    _show(_counted(detections))
    return {
        "count": count,
        "seconds": time.perf_counter() - started,
        "matches": matches,
        "found": found,
        "detections": detections,
        "happenings": happenings,
    }


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _found(matches: Rows, happenings: list[Happening]) -> Rows:
    """How many of the events asked for were found: what really happened is known."""
    from likewise.evaluation.datasets.building import relevant

    rows: Rows = []
    for subscription in _singles():
        wanted = relevant(subscription.name, happenings)
        got = {row["event_id"] for row in matches if row["subscription"] == subscription.name}
        right = len(wanted & got)
        rows.append(
            {
                "subscription": subscription.name,
                "events asked for": len(wanted),
                "found": len(got),
                "precision": right / len(got) if got else 0.0,
                "recall": right / len(wanted) if wanted else 1.0,
            }
        )
    return rows


def _singles() -> list[Subscription]:
    """The subscriptions to single events."""
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS
    from likewise.language import Profile, parse

    return [one for one in parse(SUBSCRIPTIONS) if isinstance(one.body, Profile)]


def _counted(detections: Rows) -> Rows:
    """Of every pattern how often it was detected, and how surely; none is worth telling too."""
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS
    from likewise.language import Composite, parse

    names = [one.name for one in parse(SUBSCRIPTIONS) if isinstance(one.body, Composite)]
    return [
        {
            "pattern": name,
            "detections": len(mine := [row["probability"] for row in detections if row["pattern"] == name]),
            "highest probability": max(mine, default=None),
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
    """A match of each subscription whose words are not its own, from the same engine in this process."""
    from likewise.engine import Engine
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS

    engine = Engine(spaces=[space])
    engine.subscribe(SUBSCRIPTIONS)
    told: dict[str, Match] = {}
    for notice in engine.publish_batch([one.event for one in happenings[:2000]]):
        if notice.match is not None and notice.event.tuples[0][0] != "type":
            told.setdefault(notice.subscription, notice.match)
    return list(told.values())


def _report(out: Path, space: str, facts: dict[str, Any]) -> Path:
    from likewise.charts import ReportPage, situations, words_of
    from likewise.evaluation.datasets.building import SUBSCRIPTIONS

    page = ReportPage("Likewise: the demo's report")
    page.text(
        "Three makers of sensors report the same things, each in words of its own. One person asks for them in a "
        "fourth vocabulary, without knowing the makers'."
    )
    page.heading("The same thing, said by three makers").table(_vocabularies())
    page.heading("Asked for, in other words").code(SUBSCRIPTIONS)
    page.heading("Found")
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
        f"Words were compared by the space {Path(space).name}. The makers' words were chosen so that WordNet relates "
        "them: this shows how it works, `likewise evaluate matching` how good it is."
    )
    page.heading("Why")
    for match in _explained(space, facts["happenings"]):
        page.code(match.explain().text())
    page.heading("Situations").table(_counted(facts["detections"]))
    words = {one.event.id: words_of(one.event) for one in facts["happenings"]}
    first = sorted(facts["detections"], key=lambda row: row["time"])[:20]
    page.text(f"The first {len(first)}, in event time (UTC):" if first else "None.")
    page.table([_detection_row(row, words) for row in first])
    if first:
        page.chart(situations(_spans(first, words)), "The same, as a timeline")
    return page.write(out / "report.html")


def _vocabularies() -> Rows:
    """What each maker calls the same thing."""
    from likewise.evaluation.datasets.building import KINDS, WINDOW

    makers = ("first maker", "second maker", "third maker")
    return [{"what happens": one.name, **dict(zip(makers, one.types, strict=True))} for one in (*KINDS, WINDOW)]


def _spans(detections: Rows, words: dict[str, str]) -> Rows:
    """A row for each event of the detections, ready for a chart."""
    return [
        {
            "situation": f"{number}. {row['pattern']}",
            "time": each["start"].astimezone(UTC).isoformat(),
            "what": f"{each['role']}: {words.get(each['id'], each['id'])}",
        }
        for number, row in enumerate(detections, 1)
        for each in row["events"]
        if each["start"] is not None
    ]


def _detection_row(row: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    # Spark gives moments in the zone of this process, without saying so.
    start, end = (row[name].astimezone(UTC) for name in ("start", "end"))
    return {
        "pattern": row["pattern"],
        "from": f"{start:%Y-%m-%d %H:%M:%S}",
        "to": f"{end:%H:%M:%S}",
        "probability": float(row["probability"]),
        "events": "; ".join(f"{each['role']}: {words.get(each['id'], each['id'])}" for each in row["events"]),
    }
