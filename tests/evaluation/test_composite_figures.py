"""The worlds of 003's figures, and what one step saves in them, counted instead of timed."""

from __future__ import annotations

import pytest

from likewise.composite import Detector
from likewise.errors import BuildError
from likewise.evaluation.experiment import ExperimentSettings, experiments
from likewise.evaluation.experiments.composite import METHODS, crossed, experiment, grouped, lines_chart, measure


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unique", [True, False])
def test_each_profile_is_matched_by_one_pair_in_one_group(method: str, unique: bool) -> None:
    assert measure(grouped(12, starts=12, groups=1), method, unique=unique).detections == 12


@pytest.mark.parametrize("method", METHODS)
def test_all_pairs_meet_every_later_group(method: str) -> None:
    # Three groups of four: the first four meet three Z, the next two, the last one.
    world = grouped(12, starts=12, groups=3)
    assert measure(world, method, unique=True).detections == 12
    assert measure(world, method, unique=False).detections == 4 * 3 + 4 * 2 + 4


@pytest.mark.parametrize("method", METHODS)
def test_profiles_beyond_the_starts_remain_unmatched(method: str) -> None:
    assert measure(grouped(30, starts=12, groups=2), method, unique=True).detections == 12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("first", "last"), [(1, 12), (3, 4), (12, 1)])
def test_every_crossing_is_found_once(method: str, first: int, last: int) -> None:
    world = crossed(first, last, events=40)
    assert len(world.pairs) == 12
    assert len(world.numbers) == 40
    assert measure(world, method, unique=True).detections == 12


def test_one_step_has_fewer_profiles_in_the_pool() -> None:
    """The basis of figure 6: before its A, no pattern waits for a Z."""
    active = {}
    for name, kind in METHODS.items():
        detector: Detector = kind(compiled=False)
        for number, pattern in enumerate(crossed(5, 5, events=0).patterns()):
            detector.add(f"p{number}", pattern)
        detector.publish(grouped(1, starts=1, groups=1).events()[1])
        active[name] = detector.active
    assert active == {"one step": 5, "two steps": 10}


def test_the_experiment_is_listed_and_wants_a_number() -> None:
    assert experiments()["composite"] is experiment
    with pytest.raises(BuildError, match="starts must be a number"):
        experiment.run(ExperimentSettings(options={"starts": "few"}))


def test_a_chart_has_a_line_for_each_column() -> None:
    spec = lines_chart([{"groups": 1, "a": 2.0, "b": 3.0}], x="groups", title="t", unit="µs", log=True)
    assert [row["method"] for row in spec["data"]["values"]] == ["a", "b"]
