"""The generators of the random tests produce every feature, on the path that they are for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest
from guard_worlds import pattern_features
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_absence import silences
from test_counting import counted
from test_flat import plain_patterns
from test_flat_guard import guarded
from worlds import composites, families, gappy, pairs, traces

from likewise.composite import Detector
from likewise.events import Event
from likewise.language import Composite, Subscription

DRAWS = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ALL = """
    member; sequence; conjunction; disjunction; exclusiveor; negation; selection; repetition; longest; relation;
    timeevent; first member; last member; nth member; all member; consume unique; equality, same attribute;
    condition of a member with itself; condition with a value; condition <=; condition >;
    condition on an absent member; condition on a repeated member; sequence with an absence at the start;
    sequence with an absence between; sequence with an absence at the end; sequence with a silence of its own time;
    sequence without within; conjunction with an absence
"""
PLAIN = """
    member; sequence; conjunction; first member; last member; consume unique; equality, same attribute;
    sequence without within; conjunction without within; on the compiled path
"""
GUARDED = """
    sequence with an absence between; sequence with an absence at the end; first member; last member; consume unique;
    equality, same attribute; condition on an absent member; on the compiled path
"""
NAMES = "reference; first name; nth name; last name; condition on a name; consume unique; negation; repetition"
PAIRS = "reference; first name; nth name; consume unique; negation; repetition; selection; disjunction; exclusiveor"
COUNTED = """
    repetition; selection; condition of a member with itself; consume unique; sequence with an absence of several events
"""
SILENCES = """
    sequence with an absence between; sequence with an absence at the end; sequence without within; exclusiveor;
    condition on an absent member
"""


def of_pattern(composite: Composite) -> Iterator[str]:
    yield from pattern_features(composite)
    detector = Detector()
    detector.add("p", composite)
    yield (
        "on the compiled path"
        if detector._compiled is not None and "p" in detector._compiled
        else "on the general path"
    )


def of_family(family: tuple[Composite, list[Subscription]]) -> set[str]:
    bodies = [family[0], *(subscription.body for subscription in family[1])]
    return {name for body in bodies if isinstance(body, Composite) for name in pattern_features(body)}


def of_trace(trace: list[Event]) -> Iterator[str]:
    if len({event.end for event in trace}) < len(trace):
        yield "equal times"
    names = [{name for name, _ in event.tuples} for event in trace]
    for feature, there in {
        "an interval": any(event.start != event.end for event in trace),
        "a missing attribute": any({"room", "level"} - some for some in names),
        "a doubtful event": any("p" in some for some in names),
        "a near match": any("near" in some for some in names),
        "nothing": not trace,
    }.items():
        if there:
            yield feature


GENERATORS: dict[str, tuple[st.SearchStrategy[object], Callable[..., Iterable[str]], str]] = {
    "patterns": (composites(), pattern_features, ALL),
    "plain patterns": (plain_patterns(), of_pattern, PLAIN),
    "patterns with an absence": (guarded(), of_pattern, GUARDED),
    "silences": (silences(), pattern_features, SILENCES),
    "counts": (counted(), pattern_features, COUNTED),
    "names": (families(), of_family, NAMES),
    "names that consume": (pairs(), of_family, PAIRS),
    "traces": (traces(doubtful=True), of_trace, "equal times; an interval; a doubtful event; a near match; nothing"),
    "traces with gaps": (gappy(), of_trace, "equal times; an interval; a missing attribute"),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_makes_what_it_is_there_for(name: str) -> None:
    strategy, features, wanted = GENERATORS[name]
    seen: Counter[str] = Counter()

    @DRAWS
    @given(strategy)
    def draw(made: object) -> None:
        seen.update(set(features(made)))

    draw()
    missing = [feature for feature in (" ".join(text.split()) for text in wanted.split(";")) if not seen[feature]]
    assert not missing, f"{name}: {dict(seen)}"
