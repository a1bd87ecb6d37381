"""Chooses the prior and the bits of attributes, which concern streams and predicates, on data written by hand.

Both are chosen on data that was written by hand and looked at while Likewise was built: feeds, and lists of pairs.
Nothing that is held out takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from likewise.calibration import DEFAULT_THRESHOLD
from likewise.evaluation.experiments.feed import LOOKED_AT, delivered, figures, written
from likewise.evaluation.learning.hand_pairs import DOMAINS, TRADES, HandPair, read_hand_pairs, score_pairs
from likewise.events import Event
from likewise.language import Profile
from likewise.matching import Background
from likewise.semantics import Evidence, Model
from likewise.semantics.evidence import Sources

PRIORS: Final = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
ATTRIBUTE_BITS: Final = (2.0, 4.0, 6.0, 8.0, 10.0)


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


def f1_of_pairs(pairs: Sequence[HandPair], measure: Evidence) -> float:
    """F1 at the default threshold."""
    accepted = score_pairs(measure, pairs) >= DEFAULT_THRESHOLD
    right = sum(pair.same for pair, taken in zip(pairs, accepted.tolist(), strict=True) if taken)
    return 2 * right / (int(accepted.sum()) + sum(pair.same for pair in pairs))


def chosen(model: Model, sources: Sources, *, say: Callable[[str], None] = lambda _: None) -> Model:
    """The model with the prior, and then the bits of attributes, that have the highest F1.

    F1 is the mean of two means: over feeds, and over lists of pairs.
    """
    feeds = [WrittenFeed.read(name) for name in LOOKED_AT]
    lists = [[pair for pair in read_hand_pairs(name) if not pair.held_out] for name in ("pairs", TRADES)]
    lists.append(read_hand_pairs(DOMAINS))

    def f1(tried: Model) -> float:
        measure = Evidence.of(sources, tried)
        of_feeds = sum(feed.f1(measure) for feed in feeds) / len(feeds)
        of_pairs = sum(f1_of_pairs(pairs, measure) for pairs in lists) / len(lists)
        say(f"prior {tried.prior:.1f}, attributes {tried.attribute_bits:g} bits: "
            f"F1 of feeds {of_feeds:.3f}, of pairs {of_pairs:.3f}")  # fmt: skip
        return (of_feeds + of_pairs) / 2

    model = max((replace(model, prior=prior) for prior in PRIORS), key=f1)
    model = max((replace(model, attribute_bits=bits) for bits in ATTRIBUTE_BITS), key=f1)
    judged = f"F1 at 0.5 on {len(feeds)} feeds and {len(lists)} lists of pairs that were looked at"
    return replace(model, provenance={**model.provenance, "prior and attribute_bits": judged})


__all__ = ["WrittenFeed", "chosen", "f1_of_pairs"]
