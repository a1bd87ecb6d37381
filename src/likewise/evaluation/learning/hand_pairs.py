"""Pairs of the field, written by hand before any score was seen: same, sibling, unrelated, contained, abbreviated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.experiment import Row
from likewise.evaluation.learning.fitting import auc
from likewise.semantics import Evidence, Measure, Model
from likewise.semantics.evidence import Sources

KINDS = ("same", "sibling", "unrelated", "contained", "abbreviated")


@dataclass(frozen=True, slots=True)
class HandPair:
    """A subscription's term, an event's term, and whether they should match."""

    kind: str
    same: bool
    subscription: str
    event: str

    @property
    def held_out(self) -> bool:
        """Whether the pair is held out: half of the pairs, by their text, were never looked at one by one."""
        return int(sha256(f"{self.subscription}|{self.event}".encode()).hexdigest(), 16) % 2 == 0


OTHER_FIELDS = "pairs_of_other_fields"
"""Logistics, hospitals, farms, shops, factories, power, transport, computers and water. Nothing is fitted on them."""

TRADES = "pairs_of_trades"
"""Pairs of many trades, written by someone who had not seen any list of words of Likewise."""


DOMAINS = "pairs_of_domains"
"""Pairs of sixteen domains, written by someone who had seen nothing of Likewise: the half that was looked at."""

UNSEEN = "pairs_of_domains_unseen"
"""The other half of these pairs; nobody has looked at them one by one, and nothing is fitted on them."""

TYPES = "pairs_of_types"
"""Types of events as one would subscribe to them, each with a synonym, a sibling and an unrelated term; by the same
writer, and nothing is fitted on them."""

OPERATIONS = "pairs_of_operations"
"""Pairs of shops, utilities, airports and other fields, by a third writer; nobody has looked at them one by one."""

PRACTICE = "pairs_of_practice"
"""Pairs of twelve fields as consumers and producers write them, by a fourth writer; nobody has looked at them."""


def read_hand_pairs(name: str = "pairs") -> list[HandPair]:
    """All pairs of a list."""
    text = files("likewise.evaluation").joinpath(f"data/{name}.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return [HandPair(kind, same == "1", subscription, event) for kind, same, subscription, event in rows]


def calibrated(model: Model, sources: Sources) -> Model:
    """The model calibrated on the development halves of the first list and of that of many trades."""
    pairs = [pair for name in ("pairs", TRADES) for pair in read_hand_pairs(name) if not pair.held_out]
    scores = score_pairs(Evidence.of(sources, model), pairs).astype(np.float64)
    kept = np.clip(scores, 1e-4, 1 - 1e-4)
    return model.calibrated(np.log2(kept / (1 - kept)), np.array([pair.same for pair in pairs]))


def score_pairs(measure: Measure, pairs: Sequence[HandPair]) -> NDArray[np.float32]:
    """The score of each pair."""
    return measure.pairwise([pair.subscription for pair in pairs], [pair.event for pair in pairs])


def accepted(pairs: Sequence[HandPair], scores: NDArray[np.floating], *, threshold: float) -> list[Row]:
    """For each kind: accepted pairs that mean the same, other accepted pairs, F1 and AUC."""
    kinds = [kind for kind in KINDS if any(pair.kind == kind for pair in pairs)]
    return [_accepted(pairs, scores, kind, threshold=threshold) for kind in (*kinds, "all")]


def accepted_by_half(pairs: Sequence[HandPair], scores: NDArray[np.floating], *, threshold: float) -> list[Row]:
    """The same figures for the development half and the held-out half."""
    rows: list[Row] = []
    for half in ("looked at", "held out"):
        places = [at for at, pair in enumerate(pairs) if pair.held_out == (half == "held out")]
        chosen = accepted([pairs[at] for at in places], scores[places], threshold=threshold)
        rows += [{**row, "pairs": f"{row['pairs']}, {half}"} for row in chosen]
    return rows


def _accepted(pairs: Sequence[HandPair], scores: NDArray[np.floating], kind: str, *, threshold: float) -> Row:
    here = np.array([kind in (pair.kind, "all") for pair in pairs])
    truth = np.array([pair.same for pair in pairs])[here]
    taken = scores[here] >= threshold
    right = int((truth & taken).sum())
    total = int(taken.sum()) + int(truth.sum())
    return {
        "pairs": kind,
        "right": f"{right} of {int(truth.sum())}",
        "wrong": f"{int((~truth & taken).sum())} of {int((~truth).sum())}",
        "F1": 2 * right / total if truth.any() and total else None,
        "AUC": auc(scores[here], truth) if 0 < truth.sum() < len(truth) else None,
    }


__all__ = [
    "DOMAINS",
    "KINDS",
    "OPERATIONS",
    "OTHER_FIELDS",
    "PRACTICE",
    "TRADES",
    "TYPES",
    "UNSEEN",
    "HandPair",
    "accepted",
    "accepted_by_half",
    "calibrated",
    "read_hand_pairs",
    "score_pairs",
]
