"""`likewise detect`: detect patterns over events, in event time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.finding import EventsSource, FindingOptions
from likewise.cli.meaning import engine_options
from likewise.cli.options import Json, Timing, chosen, grouped
from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.reading.feed import Feed
from likewise.cli.reading.input import Rejects, by_spaces, read_subscriptions
from likewise.cli.reading.spaces import report_unknown
from likewise.errors import BuildError, InputError
from likewise.files import write_whole

if TYPE_CHECKING:
    from likewise.composite import Detection, Detector
    from likewise.language import Subscription
    from likewise.matching import Matcher, StreamLearner

BATCH = 10_000
SMALL = 1 << 22
"""Smaller files, in bytes, run faster on the general path than it takes to load a compiled kernel."""
_CHARTED = 50


def register(app: typer.Typer) -> None:
    """Add the `detect` command."""
    app.command("detect")(detect)


@grouped
def detect(
    events: EventsSource,
    patterns: Annotated[str, typer.Argument(help="File of patterns and of the subscriptions that they refer to.")],
    *,
    timing: Timing,
    finding: FindingOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Show when and how each event was matched.")] = False,
    state: Annotated[
        bool,
        typer.Option("--state", help="Show the instances that each pattern holds at the end, and what they await."),
    ] = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="Print at the end, ordered by probability instead of time.")
    ] = False,
    chart: Annotated[Path | None, typer.Option(help="Write a timeline of the first 50 detections as HTML.")] = None,
    out: Annotated[str | None, typer.Option(help="With --spark: write Parquet here instead of printing.")] = None,
    as_json: Json = False,
) -> None:
    """Detect patterns over several events in time, with probabilities.

    A pattern is written like this: `fire: {type~ = heat~} as h then {type~ = smoke~} as s within 10 minutes where
    h.room = s.room`

    Example: `likewise detect homes.jsonl examples/patterns/homes.lw --explain --state`
    """
    finding = finding.checked(
        {"EVENTS": events, "PATTERNS": patterns},
        writes={"--chart": chart, "--snapshot": timing.snapshot},
        makes={"--out": out},
    )
    if out is not None and not finding.where.wanted:
        raise BuildError("--out needs --spark", hint="without Spark, use `--json > FILE`")
    rejects = Rejects(finding.reading.dead_letters)
    interests = read_subscriptions(patterns, rejects)
    if finding.where.wanted:
        from likewise.cli.spark.finding import detect_on_spark

        follow = finding.reading.follow
        flags = {"--explain": explain, "--state": state, "--rank": rank, "--chart": chart, "--follow": follow}
        _refuse_on_spark([*chosen(timing), *(name for name, is_set in flags.items() if is_set)])
        job = finding.spark_job(events, rejects, out=out, as_json=as_json)
        detect_on_spark(job, interests, **finding.spark_meaning(interests))
        return
    _check_chart(chart)
    feed = Feed(events, rejects, follow=finding.reading.follow, records=finding.records)
    options = engine_options(finding.meaning, interests)
    matcher = _matcher(options)
    detector = _detector(interests, timing, matcher, rejects, compiled=not _is_small(events, timing))
    report_unknown(interests, options["spaces"])
    last = None if timing.until is None else _instant(timing.until)
    collects = "background" not in options and timing.snapshot is None and options["approach"] in (None, "evidence")
    learner = _learner(matcher, feed) if collects else None
    detections = _detections(detector, feed, last, learner=learner, closes=timing.snapshot is None)
    shown = _show(detections, rank=rank, explain=explain, as_json=as_json)
    if chart is not None:
        from likewise.charts import write_timeline

        write_timeline(shown, chart, states=detector.state())
    if timing.snapshot is not None:
        write_whole(timing.snapshot, detector.snapshot())
    _conclude(detector, state=state, as_json=as_json, spaces=options["spaces"])
    rejects.conclude()
    feed.conclude()


def _check_chart(chart: Path | None) -> None:
    if chart is not None:
        from likewise.charts import check_chart

        check_chart(chart, endings=(".html",))


def _is_small(source: str, timing: Timing) -> bool:
    path = Path(source)
    plain = timing.snapshot is None and timing.limit == Timing().limit
    return plain and source != "-" and path.is_file() and path.stat().st_size < SMALL


def _refuse_on_spark(options: list[str]) -> None:
    if options:
        raise BuildError(f"not on Spark: {', '.join(options)}", hint="leave them out, or run without --spark")


def _matcher(options: dict[str, Any]) -> Matcher:
    from likewise.matching import Matcher

    return Matcher(**options)


def _learner(matcher: Matcher, feed: Feed) -> StreamLearner:
    """Learns the background: from the first events of a file in advance, from a live feed as events arrive."""
    from likewise.matching import MOST_EVENTS, StreamLearner, StreamSample

    return StreamLearner(matcher, StreamSample(feed.first(MOST_EVENTS, size=BATCH), known=not feed.live))


def _kind(*, two_step: bool) -> type[Detector]:
    if two_step:
        from likewise.evaluation.two_step import TwoStepDetector

        return TwoStepDetector
    from likewise.composite import Detector

    return Detector


def _detector(
    interests: list[Subscription], timing: Timing, matcher: Matcher, rejects: Rejects, *, compiled: bool
) -> Detector:
    from likewise.composite import Refused, reconcile

    def refuse(refused: Refused) -> None:
        rejects.refuse(_bad_record(refused))

    kind = _kind(two_step=timing.two_step)
    if timing.snapshot is not None and timing.snapshot.exists():
        detector = _restored(kind, timing.snapshot, matcher=matcher, measure=matcher.measure, refuse=refuse)
        if any(changes := reconcile(detector, interests)):
            errors.print(f"since the snapshot: {changes}; a changed pattern starts empty", markup=False)
        return detector
    return kind(
        interests,
        matcher=matcher,
        measure=matcher.measure,
        refuse=refuse,
        lateness=_duration(timing.lateness),
        max_jump=_duration(timing.max_ahead),
        relatedness=timing.relatedness,
        limits=_limits(timing.limit, timing.full),
        compiled=compiled,
    )


def _restored(kind: type[Detector], snapshot: Path, *, matcher: Matcher, **options: Any) -> Detector:
    try:
        return kind.restore(snapshot.read_bytes(), matcher=matcher, **options)
    except InputError as error:
        hint = "give a file that --snapshot wrote, or one that does not exist yet"
        raise InputError(error.message, source=str(snapshot), hint=hint) from None


def _bad_record(refused: Any) -> Any:
    from likewise.events import BadRecord, encode_line

    event = refused.event
    raw = encode_line(event).rstrip() if event.tuples else repr(event).encode()
    return BadRecord(source="<detector>", line=None, reason=refused.reason, raw=raw)


def _detections(
    detector: Detector, feed: Feed, until: int | None, *, learner: StreamLearner | None, closes: bool
) -> Iterator[Detection]:
    """The detections of a feed; `closes` ends all windows after the last event, as nothing follows."""
    for batch in feed.batches(size=BATCH):
        for part in (batch,) if learner is None else learner.parts(batch):
            yield from detector.publish_batch(part)
    if closes:
        yield from detector.flush()
    if until is not None:
        yield from detector.advance(until)


def _show(detections: Iterable[Detection], *, rank: bool, explain: bool, as_json: bool) -> list[Detection]:
    """Print the detections and return the first of them, for a chart."""
    from likewise.composite import ranked

    shown: list[Detection] = []
    for detection in ranked(detections) if rank else detections:
        if len(shown) < _CHARTED:
            shown.append(detection)
        _print(detection, explain=explain, as_json=as_json)
    return shown


def _print(detection: Detection, *, explain: bool, as_json: bool) -> None:
    from likewise.composite import detection_lines, detection_plain

    if as_json:
        print_json(detection_plain(detection, trace=explain))
        return
    for line in detection_lines(detection, trace=explain):
        output.print(line, markup=False, soft_wrap=True)
    if explain:
        for line in event_lines(detection):
            output.print(line, markup=False, soft_wrap=True)


def event_lines(detection: Detection) -> Iterator[str]:
    """The attributes of a detection's events, one line each."""
    for event in dict.fromkeys(detection.members):
        if event.tuples:
            yield f"    {event.id}: {', '.join(f'{name} = {value}' for name, value in event.tuples)}"


def _conclude(detector: Detector, *, state: bool, as_json: bool, spaces: list[str]) -> None:
    from likewise.composite import state_lines, state_plain

    states = detector.state()
    if state and as_json:
        print_json({"state": list(map(state_plain, states))})
    elif state:
        for line in state_lines(states):
            output.print(line, markup=False, soft_wrap=True)
    if not as_json:
        total = sum(state.detected for state in states)
        summary = f"{counted(total, 'detection')} of {counted(len(states), 'pattern')}{by_spaces(spaces)}"
        errors.print(summary, markup=False, soft_wrap=True)


def _limits(instances: int, policy: str) -> Any:
    from likewise.composite import Limits

    if policy not in ("drop oldest", "refuse"):
        raise BuildError(f"--full cannot be {policy!r}", hint="choose `drop oldest` or `refuse`")
    return Limits(instances, policy)  # type: ignore[arg-type]  # checked above


def _duration(text: str) -> int:
    from likewise.language import parse_duration

    return parse_duration(text)


def _instant(text: str) -> int:
    from datetime import datetime

    from likewise.events import to_instant

    try:
        return to_instant(datetime.fromisoformat(text))
    except ValueError:
        raise BuildError(f"{text!r} is not a time", hint="such as 2008-03-24T12:00:00") from None
