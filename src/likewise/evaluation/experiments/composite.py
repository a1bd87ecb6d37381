"""003 section 5.1: response time of composite filtering in one step and in two, figure by figure.

Sequences (A; Z) over one integer attribute, distinct profiles, the first of duplicates. `unique` ones are removed after
their first pair, as in the paper, so that removing is part of the time; `all pairs` stay. Both methods run on the
general path, event by event; all times are processor times, which other work on the machine affects little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from likewise.charts import Spec, save
from likewise.composite import Detector
from likewise.errors import BuildError
from likewise.evaluation.experiment import Cell, Experiment, ExperimentReport, ExperimentSettings
from likewise.evaluation.experiments.composite_clock import Spent, Stopwatch, best, response
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Composite, Consumption, Duplicates, Keep, Member, Operator, Predicate, Profile
from likewise.language import Sequence as Then

METHODS: Final[dict[str, type[Detector]]] = {"one step": Detector, "two steps": TwoStepDetector}
_FIRST = Duplicates(Keep.FIRST)
_NOISE: Final = -1_000_000


def profile(number: int) -> Profile:
    """The events of one number."""
    return Profile((Predicate("value", Operator.EQ, number),))


@dataclass(frozen=True, slots=True)
class PatternWorld:
    """Sequences of event numbers to detect, and the event numbers published."""

    pairs: Sequence[tuple[int, int]]
    numbers: Sequence[int]

    def patterns(self) -> Iterator[Composite]:
        """The sequences as subscriptions."""
        profiles = {number: profile(number) for pair in self.pairs for number in pair}
        for a, z in self.pairs:
            yield Composite(Then((Member(profiles[a], "a", _FIRST), Member(profiles[z], "z"))))

    def events(self) -> list[Event]:
        """The events, a millisecond apart."""
        return [Event(str(i), (("value", n),), (), 1000 * i, 1000 * i) for i, n in enumerate(self.numbers)]


def grouped(profiles: int, *, starts: int, groups: int) -> PatternWorld:
    """`starts` A-events in groups, each closed by a Z; the other profiles stay unmatched [003 fig 6, 7].

    >>> grouped(4, starts=4, groups=2).numbers
    [0, 1, -1, 2, 3, -1]
    """
    size = max(1, starts // groups)
    numbers: list[int] = []
    for low in range(0, starts, size):
        numbers += [*range(low, min(low + size, starts)), -1]
    return PatternWorld([(number, -1) for number in range(profiles)], numbers)


def crossed(first: int, last: int, *, events: int) -> PatternWorld:
    """Every one of `first` A-profiles with every one of `last` Z-profiles [003 fig 8].

    All of them come in any order, then all Z again, so that each sequence is found once; the other events are noise.

    >>> crossed(1, 1, events=4).pairs, sorted(crossed(1, 1, events=4).numbers)
    ([(0, -1)], [-1000000, -1, -1, 0])
    """
    starts, ends = list(range(first)), [-1 - number for number in range(last)]
    numbers = starts + ends
    Random(8).shuffle(numbers)
    numbers += ends
    pairs = [(a, z) for a in starts for z in ends]
    return PatternWorld(pairs, numbers + [_NOISE] * max(0, events - len(numbers)))


def measure(world: PatternWorld, method: str, *, unique: bool) -> Spent:
    """Processor time of the events: total, of composing, and after the last event of a composite."""
    watch = Stopwatch()
    kind = METHODS[method]
    detector = kind(matcher=watch.matcher, compiled=False)
    for number, pattern in enumerate(world.patterns()):
        detector.add(f"p{number}", pattern)
    return watch.run(detector, world.events(), remove=unique)


def _run(settings: ExperimentSettings) -> list[ExperimentReport]:
    experiment.check(settings)
    scale = _scale(settings)
    return [_groups(scale, settings), *_profiles(scale, settings), *_cardinality(scale, settings), _response(scale)]


def _scale(settings: ExperimentSettings) -> int:
    text = settings.options.get("starts", "200" if settings.quick else "1000")
    if not text.isdigit() or int(text) < 100:
        raise BuildError(f"starts must be a number of at least 100, not {text!r}", hint="the paper has 10000")
    return int(text)


Line = tuple[str, bool]
LINES: Final[dict[str, Line]] = {
    f"{method}, {'unique' if unique else 'all pairs'}": (method, unique)
    for unique in (True, False)
    for method in METHODS
}


def _groups(starts: int, settings: ExperimentSettings) -> ExperimentReport:
    """Figure 6."""
    rows = []
    for groups in _axis((1, 10, 100, 1000), most=starts // 2):
        settings.say(f"figure 6: {groups:,} groups")
        world = grouped(starts, starts=starts, groups=groups)
        rows.append({"groups": groups, **_per_event(world)})
    _chart(settings, "figure-6", rows, x="groups", title="Response time by groups [003 figure 6]", log=True)
    notes = [
        f"µs of processor time per event; {starts:,} profiles, {starts:,} starting events (the paper: 10,000 each)",
        _dearer(rows, LINES),
        _grows(rows),
    ]
    return ExperimentReport("003 figure 6: response time and composition order", rows, notes)


def _profiles(starts: int, settings: ExperimentSettings) -> Iterator[ExperimentReport]:
    """Figure 7."""
    counts = [max(1, int(starts * share)) for share in (0.25, 0.5, 0.75, 1, 2, 3)]
    for part, groups in (("a", 1), ("b", starts // 10)):
        rows = []
        for count in counts:
            settings.say(f"figure 7({part}): {count:,} profiles")
            rows.append({"profiles": count, **_per_event(grouped(count, starts=starts, groups=groups))})
        _chart(settings, f"figure-7{part}", rows, x="profiles", title=f"{groups} event-groups [003 figure 7({part})]")
        notes = [
            f"µs of processor time per event; {starts:,} starting events in {groups:,} groups; others stay unmatched",
            _dearer(rows, LINES),
            _linear(rows, until=starts),
        ]
        yield ExperimentReport(f"003 figure 7({part}): response time and number of profiles", rows, notes)


def _cardinality(starts: int, settings: ExperimentSettings) -> Iterator[ExperimentReport]:
    """Figure 8."""
    sequences = 3 * starts
    total_rows: list[dict[str, Cell]] = []
    composing: list[dict[str, Cell]] = []
    for first in sorted({1, max(1, starts // 100), max(1, starts // 10), sequences // 10, sequences}):
        last = sequences // first
        settings.say(f"figure 8: {first:,} first profiles, {last:,} last ones")
        world = crossed(first, last, events=2 * sequences + 1)
        spent = {method: best(lambda m=method, w=world: measure(w, m, unique=True)) for method in METHODS}  # type: ignore[misc]  # mypy cannot type defaults of a lambda
        name: dict[str, Cell] = {"first": first, "last": last}
        total_rows.append(name | {method: 1e3 * times.total for method, times in spent.items()})
        composing.append(
            name
            | {f"{method}: all": 1e3 * times.composing for method, times in spent.items()}
            | {f"{method}: after the last event": 1e6 * times.response for method, times in spent.items()}
        )
    _chart(settings, "figure-8a", total_rows, x="first", title="Overall time [003 figure 8(a)]", unit="ms", log=True)
    parts = [{key: value for key, value in row.items() if key == "first" or "all" in key} for row in composing]
    _chart(settings, "figure-8b", parts, x="first", title="Composition time [003 figure 8(b)]", unit="ms", log=True)
    lines = {method: (method, True) for method in METHODS}
    yield ExperimentReport(
        "003 figure 8(a): overall time and profile cardinality",
        total_rows,
        [
            f"ms of processor time for {2 * sequences + 1:,} events and {sequences:,} unique sequences",
            _dearer(total_rows, lines) + ", and 1 for a single first profile",
        ],
    )
    yield ExperimentReport(
        "003 figure 8(b): composition time",
        composing,
        [
            "all: ms of processor time without the matching of primitive events; after the last event: "
            "µs per detection; the paper's single step has none",
        ],
    )


def _response(starts: int) -> ExperimentReport:
    """The claim of 003 section 1: a composite is detected as fast as its last primitive event."""
    stream = [Event(str(i), (("value", -(i % 2)),), (), 1000 * i, 1000 * i) for i in range(2 * starts)]
    [pattern] = PatternWorld([(0, -1)], []).patterns()
    pattern = replace(pattern, consumption=Consumption.UNIQUE)
    detectors: dict[str, Detector] = {
        "the last event alone": Detector(compiled=False),
        "the composite, one step": Detector(compiled=False),
        "the composite, two steps": TwoStepDetector(),
        "the composite, compiled": Detector(),
    }
    rows: list[dict[str, Cell]] = []
    for name, detector in detectors.items():
        detector.add("p", profile(-1) if "alone" in name else pattern)
        rows.append({"what": name, "µs": 1e6 * response(detector, stream)})
    note = "median µs of processor time from the event to the detection (the paper: no more than the last event's)"
    return ExperimentReport("003 section 5.1: response time of a composite", rows, [note])


def _axis(values: Iterable[int], *, most: int) -> list[int]:
    return [value for value in values if value <= most]


def _per_event(world: PatternWorld) -> dict[str, Cell]:
    count = len(world.numbers)
    out: dict[str, Cell] = {}
    for name, (method, unique) in LINES.items():
        out[name] = 1e6 * best(lambda m=method, u=unique: measure(world, m, unique=u)).total / count  # type: ignore[misc]  # mypy cannot type defaults of a lambda
    return out


# --- the shapes of the curves, compared with the paper's -----------------------------------------


def _ratios(rows: Sequence[dict[str, Cell]], baseline: str, compared: str) -> list[float]:
    return [float(row[compared] or 0) / float(row[baseline] or 1) for row in rows]


def _dearer(rows: Sequence[dict[str, Cell]], lines: Iterable[str]) -> str:
    """The ratio of two steps to one, at each point of the axis."""
    texts = []
    for line in (name for name in lines if name.startswith("one step")):
        ratios = _ratios(rows, line, line.replace("one step", "two steps"))
        kind = line.removeprefix("one step").strip(", ") or "unique"
        texts.append(f"{kind} {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return f"two steps / one step along the axis: {'; '.join(texts)} (the paper: never below 1)"


def _grows(rows: Sequence[dict[str, Cell]]) -> str:
    gaps = [float(row["two steps, unique"] or 0) - float(row["one step, unique"] or 0) for row in rows]
    shape = "grows" if gaps[-1] > gaps[0] else "does not grow"
    texts = ", ".join(f"{gap:.1f}" for gap in gaps)
    return f"the gap {shape} with the groups, unique: {texts} µs (the paper: it grows)"


def _linear(rows: Sequence[dict[str, Cell]], *, until: int) -> str:
    """How the time for all events grows with the profiles that are matched: 1 is linear."""
    inside = [row for row in rows if int(row["profiles"] or 0) <= until]
    low, high = inside[0], inside[-1]
    texts = []
    for name in LINES:
        grown = float(high[name] or 0) / float(low[name] or 1)
        texts.append(f"{name} {grown:.1f}")
    times = int(high["profiles"] or 0) / int(low["profiles"] or 1)
    return f"with {times:.0f} times the profiles, the time grows by a factor of {'; '.join(texts)} (the paper: linear)"


def _chart(
    settings: ExperimentSettings,
    name: str,
    rows: Sequence[dict[str, Cell]],
    *,
    x: str,
    title: str,
    unit: str = "µs an event",
    log: bool = False,
) -> None:
    if settings.out is not None:
        save(lines_chart(rows, x=x, title=title, unit=unit, log=log), settings.out / f"{name}.html")


def lines_chart(rows: Sequence[dict[str, Cell]], *, x: str, title: str, unit: str, log: bool) -> Spec:
    """A line for each column except the axis."""
    values = [
        {x: row[x], "method": name, unit: value}
        for row in rows
        for name, value in row.items()
        if name not in (x, "last") and isinstance(value, float)
    ]
    return {
        "title": title,
        "width": 480,
        "height": 300,
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": x, "type": "quantitative", "scale": {"type": "log" if log else "linear"}, "title": x},
            "y": {"field": unit, "type": "quantitative", "title": unit},
            "color": {"field": "method", "type": "nominal", "title": None},
        },
    }


experiment = Experiment("composite", "003: response time in one step and in two, figures 6 to 8", _run, ("starts",))
