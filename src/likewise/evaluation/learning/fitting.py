"""Learns the weights of evidence from generated pairs, and reports their quality on held-out concepts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.learning.adaptation import Adaptations
from likewise.evaluation.learning.field_pairs import OF_TRADES
from likewise.evaluation.learning.logistic import fit
from likewise.evaluation.learning.pair import Pair
from likewise.semantics.evidence import (
    WORDS_COMPARED,
    Features,
    Model,
    OtherNames,
    PairShape,
    Sources,
    TermSide,
    features,
    probability,
)

BLOCK: Final = 128
"""Pairs whose terms are compared together."""

DROPPED: Final = {"embedding": 0.25, "esa": 0.4, "relation": 0.25}
"""How often a source of evidence is left out of a second copy of a pair, so that its weight is meaningful alone."""

ROUNDS: Final = 1
"""How often weights are learned again, with the readings of each pair that the weights before it take."""

UNSEEN: Final = 12.0
"""The weight of wrong pairs of two unknown terms: most terms of a stream mean something else, so a score without
evidence must be low."""

POSITIVE: Final = 0.5
"""The share of pairs that mean the same after weighting; the words of a stream change the odds, see `Evidence`."""

TRUST: Final = {
    "glossary": 0.5,
    "other names": 0.5,
    "states": 0.3,
    "quantities": 0.3,
    f"states{OF_TRADES}": 2.0,
    f"quantities{OF_TRADES}": 2.0,
    "extra words": 0.6,
    "numbers": 0.6,
    "framed": 0.2,
    "framed in French": 0.6,
    "WordNet phrases": 0.2,
    "WordNet replaced": 0.2,
    "EuroVoc, French only": 0.3,
    "EuroVoc compounds": 0.5,
    "IPTC compounds": 0.5,
    "appliances compounds": 0.5,
}
"""The weights of pairs by source, for sources made by rule; all others have weight 1."""

BY_KIND: Final = {"same field": 0.5, "nearest beside": 3.0}
"""The weights of pairs by kind: less for those that are clearly different, more for those that are easily confused."""

STRANGERS: Final = 4.0
"""The weight of descriptions beside names drawn at random: most values of a stream are of another kind altogether."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs with their features, labels and weights."""

    pairs: tuple[Pair, ...]
    features: Features
    labels: Floats
    weights: Floats
    options: Features
    """The features of all readings of every pair, each with each."""
    starts: NDArray[np.int64]
    """Where the readings of each pair begin."""

    def read_by(self, model: Model) -> MeasuredPairs:
        """The same pairs, each in the readings that the model takes: those with the most bits."""
        best = _first_of(model.bits(self.options).astype(np.float64), self.starts)
        return replace(self, features=self.options.take(best))


def learn(
    pairs: Sequence[Pair],
    sources: Sources,
    *,
    adaptations: Adaptations | None = None,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Model, MeasuredPairs]:
    """Learn weights on the pairs that are not held out; returns them, and all pairs with their features.

    With `adaptations`, the vectors of each pair are those of the one that has not seen its names.
    """
    views = Views(sources, adaptations)
    single = [pair for pair in pairs if _compares_words(pair)]
    words = measured(single, views, model=None, say=say)
    first = _fit(words, seed=seed, provenance={})
    say(f"words: {len(single):,} pairs")
    everything = measured(pairs, views, model=first, say=say)
    counts = Counter(f"{pair.source}: {pair.kind}" for pair in pairs if not pair.held_out)
    provenance = {"pairs": dict(sorted(counts.items())), "positive": POSITIVE, "seed": seed, **_described(sources)}
    model = _fit(everything, seed=seed, provenance=provenance)
    for _ in range(ROUNDS):
        everything = everything.read_by(model)
        model = _fit(everything, seed=seed, provenance=provenance)
    # The words of phrases were compared with the first weights.
    compared = {shape: first.shapes[shape] for shape in (PairShape.WORD, PairShape.UNLISTED_WORD)}
    return replace(model, shapes={**model.shapes, **compared}), everything


def _compares_words(pair: Pair) -> bool:
    """Whether the weights of words are learned on a pair.

    The list of other names has what WordNet lacks: on its words, WordNet's relations would seem to say little.
    """
    return " " not in pair.subscription and " " not in pair.event and not pair.source.endswith(OF_TRADES)


class Views:
    """What is visible of the sources for each pair; for most pairs from WordNet its relations are hidden.

    Other names are hidden on all pairs that are not made from them: weights are learned for terms that no list knows.
    For the same reason, the sentence encoder has an adaptation that was learned without the names of the pair.
    """

    def __init__(self, sources: Sources, adaptations: Adaptations | None = None) -> None:
        self._adaptations = adaptations
        unnamed, untold = (replace(sources, names=names) for names in (sources.names.unread(), OtherNames.none()))
        visible = (sources, unnamed, without_wordnet(unnamed), untold)
        encoders = {-1: sources.encoder} if adaptations is None else adaptations.encoders()
        self._sources = {
            (hidden, number): replace(shown, encoder=encoder)
            for hidden, shown in enumerate(visible)
            for number, encoder in encoders.items()
        }

    def key(self, pair: Pair) -> tuple[int, int]:
        """What is hidden on a pair, and the number of its encoder."""
        return _hidden(pair), -1 if self._adaptations is None else self._adaptations.encoder(pair.concept)

    def sources(self, key: tuple[int, int]) -> Sources:
        """The sources as they are visible."""
        return self._sources[key]


def measured(
    pairs: Sequence[Pair], views: Views, *, model: Model | None, say: Callable[[str], None] = lambda _: None
) -> MeasuredPairs:
    """The features of all pairs, each by what is visible of the sources."""
    ordered = sorted(pairs, key=lambda pair: (views.key(pair), pair.source))
    found: list[Features] = []
    for start in range(0, len(ordered), BLOCK):
        for key, part in itertools.groupby(ordered[start : start + BLOCK], key=views.key):
            found += _block(list(part), views.sources(key), model)
        if start and start % (BLOCK * 40) == 0:
            say(f"{start:,} of {len(ordered):,} pairs measured")
    count = np.array([len(options.shape) for options in found], np.int64)
    starts = np.cumsum(count) - count
    options = Features.concatenate(found)
    labels = np.array([pair.label for pair in ordered])
    chosen = options.take(_first_of(_preference(options), starts))
    return MeasuredPairs(tuple(ordered), chosen, labels, _weights(ordered, labels), options, starts)


def _hidden(pair: Pair) -> int:
    """What is hidden on a pair: nothing, other names, WordNet's relations too, or the whole list of names."""
    if pair.source.endswith(OF_TRADES):
        return 3
    return 2 if pair.blind else int(pair.source not in ("other names", "states", "quantities"))


def without_wordnet(sources: Sources) -> Sources:
    """The same sources, with WordNet used only to recognise English words."""
    spaces = tuple(space for space in sources.spaces if "wordnet" not in space.name)
    return replace(sources, spaces=spaces, relations=False)


def _block(pairs: Sequence[Pair], sources: Sources, model: Model | None) -> list[Features]:
    """For each pair, the features of its readings, each with each."""
    subscribed = [sources.reader.readings(pair.subscription) for pair in pairs]
    published = [sources.reader.readings(pair.event) for pair in pairs]
    side, events = TermSide(subscribed, sources), TermSide(published, sources)
    starts = [*side.first.tolist(), len(side.readings)]
    rows = features(side, events, model.word_scores if model is not None else _no_word)
    out: list[Features] = []
    at = 0
    for number in range(len(pairs)):
        columns = np.arange(starts[number], starts[number + 1])
        out.append(Features.concatenate([row.take(columns) for row in rows[at : at + len(published[number])]]))
        at += len(published[number])
    return out


def _preference(options: Features) -> Floats:
    """Before there are weights: readings with the same words come first, then those with all words of the other."""
    shape = options.shape
    near = np.nan_to_num(options.embedding).astype(np.float64)
    order = {PairShape.SAME: 4.0, PairShape.CONTAINED: 2.0, PairShape.SKIPPED: -8.0}
    return np.asarray(near + sum(worth * (shape == kind) for kind, worth in order.items()), np.float64)


def _first_of(values: Floats, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the greatest value of each part, the first one of equal ones."""
    parts = np.split(values, starts[1:])
    return starts + np.array([int(part.argmax()) for part in parts], np.int64)


def _weights(pairs: Sequence[Pair], labels: Floats) -> Floats:
    trusted = (TRUST.get(pair.source, 1.0) * BY_KIND.get(pair.kind, 1.0) * _strange(pair) for pair in pairs)
    weights = np.array(
        [trust * (2.0 if _sees_wordnet(pair) else 1.0) for trust, pair in zip(trusted, pairs, strict=True)]
    )
    return _balanced(weights, labels)


def _strange(pair: Pair) -> float:
    drawn = pair.source.startswith("descriptions") and pair.kind in ("random", "described at random")
    return STRANGERS if drawn else 1.0


def _sees_wordnet(pair: Pair) -> bool:
    """The weights of pairs; the few pairs from WordNet with its relations visible count double."""
    return pair.source.startswith("WordNet") and not pair.blind


def _fit(found: MeasuredPairs, *, seed: int, provenance: Mapping[str, Any]) -> Model:
    kept = np.flatnonzero([not pair.held_out for pair in found.pairs])
    plain = found.features.take(kept)
    rng = np.random.default_rng(seed)
    copies = [plain, _dropped(plain, rng), _dropped(plain, rng)]
    labels, weights = (np.tile(each[kept], len(copies)) for each in (found.labels, found.weights))
    unseen, some = _unseen(plain)
    right = found.weights[kept][some] * found.labels[kept][some]
    wrong = found.weights[kept][some] * (1 - found.labels[kept][some]) * UNSEEN
    return fit(
        Features.concatenate([*copies, unseen]),
        np.concatenate([labels, right / (right + wrong)]),
        np.concatenate([weights, right + wrong]) / len(copies),
        provenance=provenance,
    )


def _unseen(plain: Features) -> tuple[Features, NDArray[np.int64]]:
    """The pairs that share no word, without any knowledge of their terms."""
    without_common_words = [PairShape.WORD, PairShape.UNLISTED_WORD, PairShape.APART, PairShape.FOREIGN]
    some = np.flatnonzero(np.isin(plain.shape, without_common_words))
    made = plain.take(some)
    made.relation[:] = 0
    for name in ("embedding", "esa", *WORDS_COMPARED):
        getattr(made, name)[:] = np.nan
    return made, some


def _dropped(plain: Features, rng: np.random.Generator) -> Features:
    """A copy without some of the evidence."""
    made = Features(**{one.name: getattr(plain, one.name).copy() for one in fields(plain)})
    size = len(made.shape)
    for name, share in DROPPED.items():
        getattr(made, name)[rng.random(size) < share] = 0 if name == "relation" else np.nan
    return made


def _no_word(*known: NDArray[np.generic]) -> NDArray[np.float32]:
    """The first model, by which no word means the same as another."""
    return np.zeros(len(known[0]), np.float32)


def _described(sources: Sources) -> dict[str, Any]:
    return {
        "spaces": [f"{space.name} {space.id}" for space in sources.spaces],
        "encoder": "multilingual sentence encoder" if sources.encoder else "none",
    }


def _balanced(weights: Floats, labels: Floats) -> Floats:
    """Weights under which the share of pairs that mean the same is `POSITIVE`."""
    right, wrong = float(weights @ labels), float(weights @ (1 - labels))
    scale = POSITIVE * wrong / ((1 - POSITIVE) * right) if right else 1.0
    return np.asarray(weights * (labels * scale + (1 - labels)), np.float64)


def report(model: Model, found: MeasuredPairs) -> list[dict[str, str | float | int]]:
    """For each source, on pairs of held-out concepts: precision, recall and F1 at 0.5, and AUC."""
    scores = probability(model.bits(found.features))
    rows: list[dict[str, str | float | int]] = []
    for source in [*sorted({pair.source for pair in found.pairs}), "all"]:
        here = np.array([pair.held_out and source in (pair.source, "all") for pair in found.pairs])
        clear = here & ((found.labels >= 0.8) | (found.labels == 0))
        truth, given_scores = found.labels[clear] >= 0.8, scores[clear]
        right = int((truth & (given_scores >= 0.5)).sum())
        given, wanted = int((given_scores >= 0.5).sum()), int(truth.sum())
        f1 = 2 * right / max(1, given + wanted)
        rows.append({"source": source, "pairs": int(clear.sum()), "F1 at 0.5": f1,
                     "precision": right / max(1, given), "recall": right / max(1, wanted),
                     "AUC": auc(given_scores, truth)})  # fmt: skip
    return rows


def auc(scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> float:
    """The probability that a right pair scores higher than a wrong one; ties count half.

    >>> auc(np.array([0.9, 0.5, 0.1]), np.array([True, False, False]))
    1.0
    """
    right, wrong = np.sort(scores[truth]), np.sort(scores[~truth])
    if not len(right) or not len(wrong):
        return float("nan")
    below = np.searchsorted(wrong, right, side="left") + np.searchsorted(wrong, right, side="right")
    return float(below.sum() / (2 * len(right) * len(wrong)))


__all__ = ["MeasuredPairs", "Views", "auc", "learn", "measured", "report", "without_wordnet"]
