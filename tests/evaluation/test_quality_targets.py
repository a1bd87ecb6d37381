"""The targets for matching quality, checked on a smaller data set if the spaces are built."""

from __future__ import annotations

import pytest

from likewise.errors import LikewiseError
from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic
from likewise.evaluation.quality.approaches import APPROACHES, ComparedApproach, Laboratory, Trial
from likewise.evaluation.quality.ranking import quality

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trial() -> Trial:
    try:
        laboratory = Laboratory()
        _ = laboratory.spaces
        return Trial(build_thematic(DatasetRecipe(events=3000)), laboratory)
    except LikewiseError as error:
        pytest.skip(error.message)


AIMS = [approach for approach in APPROACHES if approach.target or approach.alone]


@pytest.mark.parametrize("approach", AIMS, ids=lambda approach: approach.name)
def test_each_approach_comes_near_its_aim(trial: Trial, approach: ComparedApproach) -> None:
    """Within three points: this is one seed and a fifth of the events; docs/quality.md has the whole run."""
    if (why := trial.laboratory.missing(approach)) is not None:
        pytest.skip(why)
    together = quality(trial.scores(approach), trial.data.truth).mean_max_f1
    alone = quality(trial.scores(approach, alone=True), trial.data.truth).mean_max_f1
    assert together >= (approach.target or 0) - 0.03
    assert alone >= (approach.alone or 0) - 0.03
