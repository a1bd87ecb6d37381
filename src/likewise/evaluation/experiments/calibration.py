"""Calibration of scores on hand-written pairs: is a score of 0.8 right in 8 of 10 cases, also at other base rates?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.charts import reliability
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.learning.hand_pairs import (
    DOMAINS,
    OPERATIONS,
    OTHER_FIELDS,
    PRACTICE,
    TRADES,
    TYPES,
    UNSEEN,
    HandPair,
    accepted,
    accepted_by_half,
    read_hand_pairs,
    score_pairs,
)
from likewise.matching import Approach, default_threshold
from likewise.semantics import Evidence, Manifest, Measure, list_spaces

BINS = 10
RATES = (1, 3, 12)
"""Wrong candidates per right one."""


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Hand-written pairs by kind, the reliability of their scores, and precision at several base rates."""
    experiment.check(settings)
    spaces = settings.spaces or tuple(str(path) for path, state in list_spaces() if isinstance(state, Manifest))
    measure = Evidence(spaces)
    pairs = read_hand_pairs()
    scores = score_pairs(measure, pairs)
    limit = default_threshold(Approach.parse("evidence"), "evidence")
    apart = np.array([pair.held_out for pair in pairs])
    truth = np.array([pair.same for pair in pairs])
    curves = {
        half: reliability_rows(scores[here], truth[here]) for half, here in (("looked at", ~apart), ("held out", apart))
    }
    settings.draw("reliability", reliability(curves, title="How often a score is right"))
    held = [pair for pair in pairs if pair.held_out]
    errors: list[Row] = [
        {
            "pairs": half,
            "number": int(here.sum()),
            "expected calibration error": calibration_error(scores[here], truth[here]),
        }
        for half, here in (("looked at", ~apart), ("held out", apart))
    ]
    return [
        ExperimentReport("Hand-written pairs, at the default threshold",
                         accepted_by_half(pairs, scores, threshold=limit)),
        _more_pairs(measure, limit, OTHER_FIELDS, "Pairs of nine other fields"),
        _more_pairs(measure, limit, TRADES, "Pairs of many trades, held out", held_out=True),
        _more_pairs(measure, limit, DOMAINS, "Pairs of sixteen domains, looked at"),
        _more_pairs(measure, limit, UNSEEN, "Pairs of sixteen domains, held out"),
        _more_pairs(measure, limit, TYPES, "Types of events, one predicate, held out"),
        _more_pairs(measure, limit, OPERATIONS, "Pairs of shops, utilities and airports, held out"),
        _more_pairs(measure, limit, PRACTICE, "Pairs of twelve fields as they are used, held out"),
        ExperimentReport("Expected calibration error, ten bins", errors, ["it was calibrated on the first half"]),
        ExperimentReport("Reliability, held out", curves["held out"]),
        ExperimentReport("Other base rates, held out", [_rate(measure, held, wrong, limit) for wrong in RATES],
                         ["wrong candidates are the events' terms of other pairs, drawn at random"]),
    ]  # fmt: skip


def _more_pairs(measure: Measure, limit: float, name: str, title: str, *, held_out: bool = False) -> ExperimentReport:
    """The pairs of another list; only the held-out half if the scores were calibrated on the other half."""
    pairs = [pair for pair in read_hand_pairs(name) if pair.held_out or not held_out]
    scores = score_pairs(measure, pairs)
    error = calibration_error(scores, np.array([pair.same for pair in pairs]))
    rows = accepted(pairs, scores, threshold=limit)
    return ExperimentReport(title, rows, [f"expected calibration error {error:.3f}"])


def reliability_rows(scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> list[Row]:
    """For each bin of scores: the number of pairs, their mean score, and the share that is right.

    >>> reliability_rows(np.array([0.85, 0.86, 0.1]), np.array([True, False, False]))[1]["right"]
    0.5
    """
    places = np.minimum((scores * BINS).astype(int), BINS - 1)
    return [
        {
            "from": place / BINS,
            "number": int((places == place).sum()),
            "score": float(scores[places == place].mean()),
            "right": float(truth[places == place].mean()),
        }
        for place in range(BINS)
        if (places == place).any()
    ]


def calibration_error(scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> float:
    """The mean difference of score and share that is right, weighted by the size of the bins.

    >>> round(calibration_error(np.array([0.9, 0.9]), np.array([True, False])), 3)
    0.4
    """
    rows = reliability_rows(scores, truth)
    return float(
        sum(_size(row) * abs(float(row["score"] or 0) - float(row["right"] or 0)) for row in rows) / len(scores)
    )


def _size(row: Row) -> float:
    return float(row["number"] or 0)


def _rate(measure: Measure, pairs: Sequence[HandPair], wrong: int, limit: float) -> Row:
    """Precision and recall with a number of random wrong candidates per right one."""
    rng = np.random.default_rng(wrong)
    right = [pair for pair in pairs if pair.same]
    drawn = [
        HandPair("drawn", False, pair.subscription, pairs[at].event)
        for pair in right
        for at in rng.choice(len(pairs), wrong, replace=False)
        if pairs[at].subscription != pair.subscription
    ]
    everything = [*right, *drawn]
    scores = score_pairs(measure, everything)
    truth = np.array([pair.same for pair in everything])
    taken = scores >= limit
    right_taken = int((taken & truth).sum())
    return {
        "wrong per right": wrong,
        "precision": right_taken / max(1, int(taken.sum())),
        "recall": right_taken / max(1, int(truth.sum())),
        "expected calibration error": calibration_error(scores, truth),
    }


experiment = Experiment("calibration", "Whether scores are calibrated probabilities, on hand-written pairs", run)
