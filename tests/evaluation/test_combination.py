"""The weights of attributes and other subscriptions are learned from events with known truth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.evaluation.tiny import tiny

from likewise.errors import MissingError
from likewise.evaluation.learning.combination import MadeEvents, surprise
from likewise.semantics import Evidence, WordNet


def test_a_right_score_surprises_less() -> None:
    import numpy as np

    truth = np.array([True, False])
    assert surprise(np.array([0.9, 0.1]), truth) < surprise(np.array([0.6, 0.4]), truth)
    assert np.isfinite(surprise(np.array([0.0, 1.0]), truth)), "the cost of a certain error is high but finite"


def test_the_loss_depends_on_what_an_attribute_tells() -> None:
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    made = MadeEvents.of(replace(tiny()), Evidence(encoder=False))
    assert len({round(made.loss(bits, 0.5), 6) for bits in (0.0, 4.0)}) == 2
