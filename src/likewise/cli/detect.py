"""`likewise detect`: events against patterns, in event time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli._guard import guard
from likewise.cli._input import Rejects, by_spaces, event_batches, read_subscriptions, spaces_for
from likewise.cli._options import DeadLetters
from likewise.cli._output import counted, errors, output, print_json
from likewise.errors import BuildError, InputError, ParseError
from likewise.files import write_whole

if TYPE_CHECKING:
    from likewise.composite import Detection, Detector
    from likewise.language import Subscription
    from likewise.matching import Matcher

BATCH = 10_000
LIMIT = 100_000
SMALL = 1 << 22
"""A file of fewer bytes is through the general path before a kernel is loaded, let alone compiled."""


def register(app: typer.Typer) -> None:
    """Add the `detect` command."""
    app.command("detect")(detect)


def detect(
    events: Annotated[str, typer.Argument(help="File of events (JSON lines, CloudEvents, RDF), or - for stdin.")],
    patterns: Annotated[str, typer.Argument(help="File of patterns and of the subscriptions they refer to.")],
    *,
    lateness: Annotated[str, typer.Option(help="How late events may come, such as `30 s` or `5 minutes`.")] = "0 s",
    max_jump: Annotated[str, typer.Option(help="Events further ahead than this are refused.")] = "366 days",
    limit: Annotated[int, typer.Option(min=1, help="At most so many instances held per pattern.")] = LIMIT,
    full: Annotated[str, typer.Option(help="At the limit: `drop oldest` or `refuse`.")] = "drop oldest",
    until: Annotated[str | None, typer.Option(help="Go on to this time after the last event (ISO 8601).")] = None,
    measure: Annotated[str | None, typer.Option(help="Measure for `~`, such as esa; needs a space.")] = None,
    space: Annotated[list[str] | None, typer.Option(help="Space of the measure.")] = None,
    relatedness: Annotated[
        float | None, typer.Option(min=0, max=1, help="Least relatedness in `a.x ~ b.x`; usual for the measure.")
    ] = None,
    two_step: Annotated[bool, typer.Option("--two-step", help="Use the two-step method, to compare.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the trace of each detection.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show what each pattern holds, and why it stopped.")] = False,
    rank: Annotated[bool, typer.Option("--rank", help="Print the surest detections first, at the end.")] = False,
    chart: Annotated[Path | None, typer.Option(help="Write a timeline of the first detections as HTML.")] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(help="Go on from this snapshot, and write it at the end; time stays open."),
    ] = None,
    dead_letters: DeadLetters = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark: for more than one machine can hold.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None,
    out: Annotated[str | None, typer.Option(help="With --spark: write Parquet here instead of printing.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line for each detection.")] = False,
) -> None:
    """Detect situations in time: patterns over several events.

    Example: `likewise detect homes.jsonl examples/patterns/homes.lw --explain --state`
    """
    guard(
        reads={"EVENTS": events, "PATTERNS": patterns},
        writes={"--chart": chart, "--snapshot": snapshot, "--dead-letters": dead_letters},
        makes={"--out": out},
    )
    rejects = Rejects(dead_letters)
    interests = read_subscriptions(patterns, rejects)
    spaces = space or spaces_for(interests)
    if spark or master or remote or out:
        from likewise.cli._spark import detect_on_spark

        place: dict[str, Any] = {
            "master": master,
            "remote": remote,
            "out": out,
            "rejects": rejects,
            "as_json": as_json,
        }
        asked: dict[str, Any] = {"lateness": lateness != "0 s", "max-jump": max_jump != "366 days", "until": until}
        asked |= {"limit": limit != LIMIT, "full": full != "drop oldest", "relatedness": relatedness is not None}
        asked |= {"two-step": two_step, "explain": explain, "state": state, "rank": rank}
        asked |= {"chart": chart, "snapshot": snapshot}
        _refuse_on_spark([name for name, chosen in asked.items() if chosen])
        detect_on_spark(events, interests, **place, measure=measure, space=spaces)
        return
    from likewise.composite import ranked

    if chart is not None:
        from likewise.evaluation.charts import check_chart

        check_chart(chart, endings=(".html",))
    last = None if until is None else _instant(until)
    detector = _detector(
        interests,
        snapshot=snapshot,
        rejects=rejects,
        two_step=two_step,
        matcher=_matcher(measure, spaces),
        lateness=_duration(lateness),
        max_jump=_duration(max_jump),
        relatedness=relatedness,
        limits=_limits(limit, full),
        compiled=not (_is_small(events) and snapshot is None and limit == LIMIT),
    )
    shown: list[Detection] = []
    found: Iterable[Detection] = _detections(detector, events, last, rejects, closes=snapshot is None)
    for detection in ranked(found) if rank else found:
        if len(shown) < 50:
            shown.append(detection)
        _print(detection, explain=explain, as_json=as_json)
    if chart is not None:
        from likewise.evaluation.timeline import write_timeline

        write_timeline(shown, chart, states=detector.state())
    if snapshot is not None:
        write_whole(snapshot, detector.snapshot())
    _conclude(detector, state=state, as_json=as_json, spaces=spaces)
    rejects.conclude()


def _is_small(source: str) -> bool:
    path = Path(source)
    return source != "-" and path.is_file() and path.stat().st_size < SMALL


def _refuse_on_spark(asked: list[str]) -> None:
    if asked:
        told = ", ".join(f"--{name}" for name in asked)
        raise BuildError(f"not on Spark: {told}", hint="leave it out, or run without --spark")


def _detector(
    interests: list[Subscription],
    *,
    snapshot: Path | None,
    rejects: Rejects,
    two_step: bool,
    **options: Any,
) -> Detector:
    from likewise.composite import Detector, Refused, reconcile
    from likewise.composite.two_step import TwoStepDetector

    def refuse(one: Refused) -> None:
        rejects.refuse(_bad_record(one))

    matcher: Matcher = options["matcher"]
    kind = TwoStepDetector if two_step else Detector
    if snapshot is not None and snapshot.exists():
        detector = _restored(kind, snapshot, matcher=matcher, measure=matcher.measure, refuse=refuse)
        if any(changes := reconcile(detector, interests)):
            errors.print(f"since the snapshot: {changes}; a changed pattern begins anew", markup=False)
        return detector
    return kind(interests, measure=matcher.measure, refuse=refuse, **options)


def _restored(kind: type[Detector], snapshot: Path, **options: Any) -> Detector:
    try:
        return kind.restore(snapshot.read_bytes(), **options)
    except InputError as error:
        hint = "give the file that --snapshot wrote, or one that is not there yet"
        raise InputError(error.message, source=str(snapshot), hint=hint) from None


def _bad_record(refused: Any) -> Any:
    from likewise.events import BadRecord, encode_line

    event = refused.event
    raw = encode_line(event).rstrip() if event.tuples else repr(event).encode()
    return BadRecord(source="<detector>", line=None, reason=refused.reason, raw=raw)


def _detections(
    detector: Detector, source: str, until: int | None, rejects: Rejects, *, closes: bool
) -> Iterator[Detection]:
    """All that the events bring about; `closes` ends event time with the last of them, as nothing follows."""
    for batch in event_batches(source, rejects, size=BATCH):
        yield from detector.publish_batch(batch)
    if closes:
        yield from detector.flush()
    if until is not None:
        yield from detector.advance(until)


def _print(detection: Detection, *, explain: bool, as_json: bool) -> None:
    from likewise.composite._report import detection_lines, detection_plain

    if as_json:
        print_json(detection_plain(detection, trace=explain))
        return
    for line in detection_lines(detection, trace=explain):
        output.print(line, markup=False, soft_wrap=True)


def _conclude(detector: Detector, *, state: bool, as_json: bool, spaces: list[str]) -> None:
    from likewise.composite._report import state_lines, state_plain

    states = detector.state()
    if state and as_json:
        print_json({"state": [state_plain(one) for one in states]})
    elif state:
        for line in state_lines(states):
            output.print(line, markup=False, soft_wrap=True)
    if not as_json:
        total = sum(one.detected for one in states)
        told = f"{counted(total, 'detection')} of {counted(len(states), 'pattern')}{by_spaces(spaces)}"
        errors.print(told, markup=False, soft_wrap=True)


def _matcher(name: str | None, spaces: list[str]) -> Matcher:
    """With the measure that was named, or with the usual one over the spaces."""
    from likewise.cli._spaces import open_spaces
    from likewise.matching import Matcher
    from likewise.semantics import measure, needs_space

    if name is None:
        return Matcher(spaces=spaces)
    return Matcher(measure(name, spaces=open_spaces(spaces)) if needs_space(name) else measure(name))


def _limits(instances: int, policy: str) -> Any:
    from likewise.composite import Limits

    if policy not in ("drop oldest", "refuse"):
        raise BuildError(f"unknown policy {policy!r}", hint="`drop oldest` or `refuse`")
    return Limits(instances, policy)  # type: ignore[arg-type]


def _duration(text: str) -> int:
    from likewise.language import Negation, parse_pattern

    # The language's own durations, so that the command understands what patterns do.
    try:
        root = parse_pattern(f"not x for {text}").root
    except ParseError:
        root = None
    if not isinstance(root, Negation) or root.within is None:
        raise BuildError(f"{text!r} is not a length of time", hint="such as `30 s`, `5 minutes` or `1 hour`")
    return root.within


def _instant(text: str) -> int:
    from datetime import datetime

    from likewise.events import to_instant

    try:
        return to_instant(datetime.fromisoformat(text))
    except ValueError:
        raise BuildError(f"{text!r} is not a time", hint="such as 2008-03-24T12:00:00") from None
