"""Chooses the prior and the bits of attributes on data that was written by hand.

The data was looked at while Likewise was built: lists of pairs, and feeds. Nothing that is held out takes part.
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
    """The model with the prior and the bits of attributes that have the highest F1.

    Pairs are compared alone, so the prior is chosen on lists of pairs; what the words of a stream add to it is a
    constant of its own. The bits of attributes are chosen on feeds, the only data with attributes.
    """
    lists = [[pair for pair in read_hand_pairs(name) if not pair.held_out] for name in ("pairs", TRADES)]
    lists.append(read_hand_pairs(DOMAINS))
    feeds = [WrittenFeed.read(name) for name in LOOKED_AT]

    def of_pairs(tried: Model) -> float:
        measure = Evidence.of(sources, tried)
        found = sum(f1_of_pairs(pairs, measure) for pairs in lists) / len(lists)
        say(f"prior {tried.prior:.1f}: F1 of pairs {found:.4f}")
        return found

    def of_feeds(tried: Model) -> float:
        measure = Evidence.of(sources, tried)
        found = sum(feed.f1(measure) for feed in feeds) / len(feeds)
        say(f"attributes {tried.attribute_bits:g} bits: F1 of feeds {found:.4f}")
        return found

    model = max((replace(model, prior=prior) for prior in PRIORS), key=of_pairs)
    model = max((replace(model, attribute_bits=bits) for bits in ATTRIBUTE_BITS), key=of_feeds)
    judged = f"F1 at 0.5 on {len(lists)} lists of pairs, and on {len(feeds)} feeds, that were looked at"
    return replace(model, provenance={**model.provenance, "prior and attribute_bits": judged})


__all__ = ["WrittenFeed", "chosen", "f1_of_pairs"]
