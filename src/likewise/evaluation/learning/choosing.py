"""Chooses the prior and the bits of attributes on data that was written by hand.

The data was looked at while Likewise was built: lists of pairs, and feeds. Nothing that is held out takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from likewise.evaluation.experiments.feed import LOOKED_AT, delivered, figures, written
from likewise.evaluation.learning.hand_pairs import DOMAINS, TRADES, HandPair, read_hand_pairs, score_pairs
from likewise.events import Event
from likewise.language import Profile
from likewise.matching import Background
from likewise.semantics import Evidence, Model
from likewise.semantics.evidence import Sources

PRIORS: Final = (-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
ATTRIBUTE_BITS: Final = (4.0, 6.0, 8.0, 10.0)
LEAST_SCORE: Final = 1e-4
"""Scores nearer to 0 or 1 count as this: one surprise must not outweigh all else."""


@dataclass(frozen=True)
class WrittenFeed:
    """A feed with its truth, and the background of its first events."""

    events: Sequence[Event]
    profiles: Mapping[str, Profile]
    truth: Mapping[str, set[str]]
    background: Background

    @classmethod
    def read(cls, name: str) -> WrittenFeed:
        """The feed of this name."""
        events, profiles, truth = written(name)
        return cls(events, profiles, truth, Background.of(events))

    def f1(self, measure: Evidence) -> float:
        """F1 at the default threshold, the mean of all subscriptions together and each alone."""
        total = 0.0
        for together in (True, False):
            found = delivered(self.events, self.profiles, measure, together=together, background=self.background)
            total += float(figures(list(found.values()), [self.truth[name] for name in found])["F1"] or 0) / 2
        return total


def loss_of_pairs(pairs: Sequence[HandPair], measure: Evidence) -> float:
    """The mean log loss of the scores, in bits: 1 for scores of 0.5, 0 for scores that are certain and right."""
    scores = np.clip(score_pairs(measure, pairs).astype(np.float64), LEAST_SCORE, 1 - LEAST_SCORE)
    truth = np.array([pair.same for pair in pairs])
    return float(-np.log2(np.where(truth, scores, 1 - scores)).mean())


def chosen(model: Model, sources: Sources, *, say: Callable[[str], None] = lambda _: None) -> Model:
    """The model with the prior of the least loss on pairs, and the bits of attributes of the highest F1 on feeds.

    Pairs are compared alone, without a stream; what the words of a stream add to the prior is a constant of its own.
    Only feeds have attributes.
    """
    lists = [[pair for pair in read_hand_pairs(name) if not pair.held_out] for name in ("pairs", TRADES)]
    lists.append(read_hand_pairs(DOMAINS))
    feeds = [WrittenFeed.read(name) for name in LOOKED_AT]

    def of_pairs(tried: Model) -> float:
        measure = Evidence.of(sources, tried)
        found = sum(loss_of_pairs(pairs, measure) for pairs in lists) / len(lists)
        say(f"prior {tried.prior:g}: loss of pairs {found:.4f} bits")
        return found

    def of_feeds(tried: Model) -> float:
        measure = Evidence.of(sources, tried)
        found = sum(feed.f1(measure) for feed in feeds) / len(feeds)
        say(f"attributes {tried.attribute_bits:g} bits: F1 of feeds {found:.4f}")
        return found

    model = min((replace(model, prior=prior) for prior in PRIORS), key=of_pairs)
    model = max((replace(model, attribute_bits=bits) for bits in ATTRIBUTE_BITS), key=of_feeds)
    judged = f"log loss on {len(lists)} lists of pairs, F1 at 0.5 on {len(feeds)} feeds, all of them looked at"
    return replace(model, provenance={**model.provenance, "prior and attribute_bits": judged})


__all__ = ["WrittenFeed", "chosen", "loss_of_pairs"]
