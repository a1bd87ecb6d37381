"""Trials of whole federations: nothing that was acknowledged is missing, and nothing is told twice."""

from __future__ import annotations

import pytest

from likewise.overlay.simulation import OverlayTrial, run_trial

SMALL = OverlayTrial(nodes=30, composites=20, members=3, topics=30, events=200, seconds=20, compare=True)


def test_a_quiet_federation_is_complete() -> None:
    found = run_trial(SMALL)
    assert (found["acknowledged"], found["complete"], found["told twice"]) == (200, 1.0, 0)
    assert found["reports"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_federation_under_churn_is_complete(seed: int) -> None:
    """With seed 1, two roots of one key are merged after events had come to both."""
    found = run_trial(OverlayTrial(nodes=100, events=1000, churn=0.1, compare=True, seed=seed))
    assert (found["complete"], found["told twice"]) == (1.0, 0)
