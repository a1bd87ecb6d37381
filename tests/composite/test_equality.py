"""Single step == two steps == the definition, on random traces and random nested patterns."""

from __future__ import annotations

import numpy as np
from brute_force import Trace
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from worlds import SimpleMatcher, composites, gappy, match, relate, traces

from likewise.composite import Detector
from likewise.errors import BuildError
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Composite, Options
from likewise.semantics import Measure

EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


class Rooms(Measure):
    """Relatedness for the tests: the same first letter is half related."""

    name = "rooms"
    symmetric = True

    def matrix(self, left: list[str], right: list[str], **_: object) -> np.ndarray:
        return np.array([[relate(x, y) for y in right] for x in left], dtype=np.float32)


def defined(composite: Composite, trace: list[Event], horizon: int, threshold: float = 0.1) -> list[object]:
    found = Trace(composite, trace, match=match, horizon=horizon, threshold=threshold, relate=relate).detections()
    return [
        ("p", f.time, f.start, f.end, tuple((a, e.id, e.start, e.end) for a, _, e in f.roles), round(f.p, 9))
        for f in found
    ]


def detector(
    composite: Composite, *, threshold: float | None = None, kind: type[Detector] = Detector, **options: object
) -> Detector:
    given_options = {"matcher": SimpleMatcher(), "measure": Rooms(), "relatedness": 0.1} | options
    made = kind(**given_options)  # type: ignore[arg-type]
    try:
        made.add("p", composite, Options(threshold=threshold))
    except BuildError:
        assume(False)
    return made


def detected(made: Detector, trace: list[Event], horizon: int) -> list[object]:
    out = [detection.signature for event in trace for detection in made.publish(event)]
    return out + [detection.signature for detection in made.advance(horizon)]


@EXAMPLES
@given(composites(), traces())
def test_single_step_is_the_definition(composite: Composite, trace: list[Event]) -> None:
    horizon = (trace[-1].end if trace else 10) + 9
    assert detected(detector(composite), trace, horizon) == defined(composite, trace, horizon)


@EXAMPLES
@given(composites(), gappy())
def test_events_that_lack_an_attribute_are_as_defined(composite: Composite, trace: list[Event]) -> None:
    horizon = (trace[-1].end if trace else 10) + 9
    assert detected(detector(composite), trace, horizon) == defined(composite, trace, horizon)


@EXAMPLES
@given(composites(meaning=True), traces(doubtful=True), st.sampled_from((0.0, 0.3)))
def test_single_step_is_the_definition_with_probabilities(
    composite: Composite, trace: list[Event], threshold: float
) -> None:
    horizon = (trace[-1].end if trace else 10) + 9
    single = detected(detector(composite, threshold=threshold), trace, horizon)
    assert single == defined(composite, trace, horizon, threshold)


@EXAMPLES
@given(composites(meaning=True), traces(doubtful=True))
def test_two_steps_are_the_definition(composite: Composite, trace: list[Event]) -> None:
    horizon = (trace[-1].end if trace else 10) + 9
    assert detected(detector(composite, kind=TwoStepDetector), trace, horizon) == defined(composite, trace, horizon)


@EXAMPLES
@given(composites(meaning=True), traces(doubtful=True), st.integers(0, 9))
def test_a_restart_changes_nothing(composite: Composite, trace: list[Event], cut: int) -> None:
    """Snapshot, restore and replay of the rest give the same as an uninterrupted run."""
    horizon = (trace[-1].end if trace else 10) + 9
    made = detector(composite)
    before = [detection.signature for event in trace[:cut] for detection in made.publish(event)]
    again = Detector.restore(made.snapshot(), matcher=SimpleMatcher(), measure=Rooms())
    # A removed pattern leaves its last numbers once; from then on nothing changes.
    settled = again.snapshot()
    assert Detector.restore(settled, matcher=SimpleMatcher(), measure=Rooms()).snapshot() == settled
    assert before + detected(again, trace[cut:], horizon) == defined(composite, trace, horizon)


@EXAMPLES
@given(composites(), traces(), st.randoms(use_true_random=False), st.integers(0, 9))
def test_arrival_order_inside_the_lateness_changes_nothing(
    composite: Composite, trace: list[Event], random: object, cut: int
) -> None:
    """Any arrival order within the lateness, with a restart in the middle."""
    lateness = 6
    horizon = (trace[-1].end if trace else 10) + 9
    shuffled = sorted(trace, key=lambda event: event.end + random.uniform(0, lateness))  # type: ignore[attr-defined]
    made = detector(composite, lateness=lateness)
    out = [detection.signature for event in shuffled[:cut] for detection in made.publish(event)]
    made = Detector.restore(made.snapshot(), matcher=SimpleMatcher(), measure=Rooms())
    assert out + detected(made, shuffled[cut:], horizon) == defined(composite, trace, horizon)
    assert made.late == 0


@EXAMPLES
@given(composites(), traces())
def test_nothing_is_left_when_a_pattern_is_removed(composite: Composite, trace: list[Event]) -> None:
    matcher = SimpleMatcher()
    made = detector(composite, matcher=matcher)
    for event in trace:
        made.publish(event)
    made.remove("p")
    assert not matcher.profiles
    assert not len(made._timers)


@settings(EXAMPLES, max_examples=40)
@given(
    st.lists(composites(), min_size=1, max_size=3),
    traces(most=14),
    st.integers(0, 14),
    st.sampled_from((0, 6)),
    st.sampled_from(({}, {"compiled": False})),
)
def test_batches_are_the_same_as_single_events(
    patterns: list[Composite], trace: list[Event], cut: int, lateness: int, options: dict[str, object]
) -> None:
    """With the real matcher: simple profiles are looked up, plain patterns are compiled, the order is kept.

    The guard compares batches with single events on many more cases; these have several patterns and a lateness.
    """
    horizon = (trace[-1].end if trace else 10) + 9
    made = [Detector(lateness=lateness, **options) for _ in range(2)]  # type: ignore[arg-type]
    batched, single, plain = *made, Detector(lateness=lateness, matcher=SimpleMatcher())
    for detector in (batched, single, plain):
        for number, composite in enumerate(patterns):
            try:
                detector.add(f"p{number}", composite)
            except BuildError:
                assume(False)
    expected = [detection.signature for event in trace for detection in plain.publish(event)]
    expected += [detection.signature for detection in plain.advance(horizon)]
    found = batched.publish_batch(trace[:cut]) + batched.publish_batch(trace[cut:]) + batched.advance(horizon)
    alone = [detection for event in trace for detection in single.publish(event)] + single.advance(horizon)
    assert [detection.signature for detection in found] == expected
    assert [detection.signature for detection in alone] == expected
