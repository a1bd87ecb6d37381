"""All ways to run a case through the engine, each as the list of its detections."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from guard_worlds import SECOND, Case

from likewise.composite import Detection, Detector, Limits
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Composite

Row = tuple[str, int, int, int, tuple[tuple[str, tuple[str, ...]], ...]]
"""Pattern, time, start, end and the ids by role."""


def row(found: Detection) -> Row:
    roles = tuple(sorted((role, tuple(e.id for e in events)) for role, events in found.events.items() if events))
    return (found.pattern, found.time, found.start, found.end, roles)


@dataclass
class Run:
    """One run of a case: its random numbers, and what occurred."""

    case: Case
    path: str
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.path} {self.case.seed}")

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def ended(self, detector: Detector, found: Iterable[Detection]) -> list[Row]:
        return [*map(row, found), *map(row, detector.advance(self.case.horizon))]


def singly(detector: Detector, trace: Iterable[Event]) -> Iterator[Detection]:
    for event in trace:
        yield from detector.publish(event)


def general(run: Run) -> list[Row]:
    detector = Detector(run.case.patterns, compiled=False)
    return run.ended(detector, singly(detector, run.case.trace))


def compiled(run: Run) -> list[Row]:
    detector = Detector(run.case.patterns)
    before = path_of_patterns(detector)
    run.seen.update(f"pattern on the {kind} path" for kind in before)
    out = run.ended(detector, singly(detector, run.case.trace))
    run.seen["pattern that went over to the general path"] += before != path_of_patterns(detector)
    return out


def path_of_patterns(detector: Detector) -> list[str]:
    """The path of each pattern, for which there is no public method."""
    flat = detector._compiled
    return ["compiled" if flat is not None and name in flat else "general" for name in detector.patterns]


def noise(case: Case) -> list[Event]:
    """Irrelevant events of the first moment, so that there are enough for a batch."""
    moment = case.trace[0].end
    return [Event(f"d{number}", (("noise", number),), (), moment, moment) for number in range(20)]


def batch(run: Run) -> list[Row]:
    detector = Detector(run.case.patterns)
    return run.ended(detector, detector.publish_batch([*noise(run.case), *run.case.trace]))


def pieces(run: Run) -> list[Row]:
    """Batches and single events in turn, and time that only `advance` moves."""
    detector = Detector(run.case.patterns)
    events, out = [*noise(run.case), *run.case.trace], []
    while events:
        size = run.random.choice((1, 2, 3, 22))
        piece, events = events[:size], events[size:]
        run.seen["single event between batches" if size == 1 else "batch between others"] += 1
        out += detector.publish(piece[0]) if size == 1 else detector.publish_batch(piece)
        if events and events[0].end - piece[-1].end > SECOND and run.chance(0.5):
            run.seen["advance between events"] += 1
            out += detector.advance(piece[-1].end + run.random.choice((0, SECOND // 2, SECOND)))
    return run.ended(detector, out)


def two_step(run: Run) -> list[Row]:
    detector = TwoStepDetector(run.case.patterns)
    return run.ended(detector, singly(detector, run.case.trace))


def snapshot(run: Run) -> list[Row]:
    """Stopped and restored at random points, also between events of the same time."""
    plain, out = run.chance(0.3), []
    detector = Detector(run.case.patterns, compiled=not plain)
    for event, following in zip(run.case.trace, [*run.case.trace[1:], None], strict=True):
        out += detector.publish(event)
        if run.chance(0.5):
            run.seen["snapshot"] += 1
            run.seen["snapshot between equal times"] += following is not None and following.end == event.end
            detector = Detector.restore(detector.snapshot(), compiled=not plain)
    return run.ended(detector, out)


def late(run: Run) -> list[Row]:
    """Out of order by less than the lateness, with some restarts."""
    lateness = run.random.choice((1, 3, 6)) * SECOND
    shuffled = sorted(run.case.trace, key=lambda event: event.end + run.random.uniform(0, lateness))
    disorder = any(a.end > b.end for a, b in itertools.pairwise(shuffled))
    run.seen["arrival out of order"] += disorder
    detector, out = Detector(run.case.patterns, lateness=lateness, compiled=run.chance(0.7)), []
    for event in shuffled:
        out += detector.publish_batch([event]) if run.chance(0.3) else detector.publish(event)
        if run.chance(0.2):
            run.seen["snapshot with events that wait"] += disorder
            detector = Detector.restore(detector.snapshot())
    out = run.ended(detector, out)
    assert detector.late == 0, "an event within the lateness was refused"
    return out


def changing(run: Run) -> list[Row]:
    """The last pattern is added before one event and removed before another."""
    case, (added, removed) = run.case, when_changed(run.case)
    *others, changed = case.patterns
    assert isinstance(changed.body, Composite)
    detector, out = Detector(others, compiled=run.chance(0.7)), []
    for position, event in enumerate(case.trace):
        if position == added:
            run.seen["pattern added in between"] += position > 0
            detector.add(changed.name, changed.body, changed.options)
        if position == removed:
            run.seen["pattern removed in between"] += 1
            detector.remove(changed.name)
        out += detector.publish_batch([event]) if run.chance(0.3) else detector.publish(event)
        if run.chance(0.1):
            detector = Detector.restore(detector.snapshot())
    return run.ended(detector, out)


def when_changed(case: Case) -> tuple[int, int]:
    """The positions at which the last pattern is added and removed; at the end: never removed."""
    random = Random(f"changed {case.seed}")
    added = random.randrange(len(case.trace))
    return added, random.randint(added + 1, len(case.trace))


PATHS: dict[str, Callable[[Run], list[Row]]] = {
    "general": general,
    "compiled": compiled,
    "batch": batch,
    "pieces": pieces,
    "two-step": two_step,
    "snapshot": snapshot,
    "late": late,
    "changing": changing,
}


@dataclass(frozen=True)
class Limited:
    """The detections of a detector with a limit, and whether it counted drops."""

    rows: list[Row]
    dropped: dict[str, int]
    held: dict[str, int]


def limited(case: Case, limits: Limits, *, compiled: bool) -> Limited:
    detector = Detector(case.patterns, limits=limits, compiled=compiled)
    out, held = [], Counter[str]()
    for event in case.trace:
        out += detector.publish(event)
        held |= Counter({state.name: state.held for state in detector.state()})
    out += detector.advance(case.horizon)
    return Limited([*map(row, out)], {state.name: state.dropped for state in detector.state()}, held)
