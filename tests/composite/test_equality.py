"""Single step == two steps == the definition, on random traces and random nested patterns."""

from __future__ import annotations

import numpy as np
from brute_force import Trace
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from worlds import SimpleMatcher, composites, match, relate, traces

from likewise.composite import Detector
from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Composite, Options

EXAMPLES = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


class Rooms:
    """Relatedness for the tests: the same first letter is half related."""

    name = "rooms"
    symmetric = True

    def matrix(self, left: list[str], right: list[str], **_: object) -> np.ndarray:
        return np.array([[relate(x, y) for y in right] for x in left], dtype=np.float32)

    def reason(self, *_: object, **__: object) -> list[object]:
        return []


def defined(composite: Composite, trace: list[Event], horizon: int, threshold: float = 0.0) -> list[object]:
    found = Trace(composite, trace, match=match, horizon=horizon, threshold=threshold, relate=relate).detections()
    return [
        ("p", f.time, f.start, f.end, tuple((a, e.id, e.start, e.end) for a, _, e in f.roles), round(f.p, 9))
        for f in found
    ]


def detector(composite: Composite, *, threshold: float | None = None, **options: object) -> Detector:
    made = Detector(matcher=SimpleMatcher(), measure=Rooms(), relatedness=0.1, **options)  # type: ignore[arg-type]
    try:
        made.add("p", composite, Options(threshold=threshold))
    except BuildError:
        assume(False)
    return made


def detected(made: Detector, trace: list[Event], horizon: int) -> list[object]:
    out = [found.signature for event in trace for found in made.publish(event)]
    return out + [found.signature for found in made.advance(horizon)]


@EXAMPLES
@given(composites(), traces())
def test_single_step_is_the_definition(composite: Composite, trace: list[Event]) -> None:
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
