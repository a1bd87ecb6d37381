"""Learning the weights of evidence from made pairs: features, dropped at random, then the fit; and what it reaches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.learning.training_pairs import Pair
from likewise.semantics.evidence import (
    Features,
    Model,
    PairShape,
    Sources,
    Surroundings,
    TermSide,
    features,
    fit,
    nearer,
    probability,
)

BLOCK: Final = 128
"""Pairs whose terms are compared together."""

DROPPED: Final = {"embedding": 0.25, "esa": 0.4, "relation": 0.25, "nearer": 0.5}
"""How often a source of evidence is left out of a second copy of a pair, so that each has a weight of its own."""

UNSEEN: Final = 12.0
"""How much wrong pairs count where nothing at all is known of two terms: most terms of a stream mean something else, so
that a score without evidence must be low."""

POSITIVE: Final = 0.5
"""The share of pairs that mean the same after weighting: the words of a stream change the odds, see `Evidence`."""

BACKGROUNDS: Final = (60, 250, 1000)
"""How many words of a stream surround the made pairs, in turn."""

PRIOR_STEP: Final = 0.05
PRIOR_STEPS: Final = 20
"""Priors are tried in such steps, so many up and down from the one that is calibrated."""

PRIOR_BESIDE: Final = 4
"""So many neighbours on either side of a prior are judged with it: one pair more or less must not decide."""

TRUST: Final = {
    "glossary": 0.5,
    "extra words": 0.6,
    "numbers": 0.6,
    "framed": 0.6,
    "WordNet phrases": 0.7,
    "WordNet replaced": 0.35,
    "EuroVoc, French only": 0.3,
}
"""How much the pairs of a source count, where they are made by rule; all others count 1."""

LOOSE: Final = {"same field": 0.5}
"""How much pairs of a kind count that few would take for the same."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs with their features, labels and weights."""

    pairs: tuple[Pair, ...]
    features: Features
    labels: Floats
    weights: Floats


def learn(
    pairs: Sequence[Pair], sources: Sources, *, seed: int = 1, say: Callable[[str], None] = lambda _: None
) -> tuple[Model, MeasuredPairs]:
    """Weights learned on the pairs that are not held out, and all pairs with their features."""
    single = [pair for pair in pairs if " " not in pair.subscription and " " not in pair.event]
    words = measured(single, sources, model=None, say=say)
    first = _fit(words, seed=seed, provenance={})
    say(f"words: {len(single):,} pairs")
    whole = measured(pairs, sources, model=first, say=say)
    counts = Counter(f"{pair.source}: {pair.kind}" for pair in pairs if not pair.held_out)
    provenance = {"pairs": dict(sorted(counts.items())), "positive": POSITIVE, "seed": seed, **_described(sources)}
    return _fit(whole, seed=seed, provenance=provenance), whole


def measured(
    pairs: Sequence[Pair], sources: Sources, *, model: Model | None, say: Callable[[str], None] = lambda _: None
) -> MeasuredPairs:
    """The features of all pairs; those that WordNet made mostly do not see WordNet, see `Pair.blind`."""
    blind = Sources(
        tuple(space for space in sources.spaces if "wordnet" not in space.name),
        sources.encoder,
        sources.wordnet,
        sources.glossary,
        relations=False,
    )
    ordered = sorted(pairs, key=lambda pair: (pair.blind, pair.source))
    surroundings = _surroundings(ordered, sources)
    found: list[Features] = []
    for start in range(0, len(ordered), BLOCK):
        block = ordered[start : start + BLOCK]
        for hidden in (False, True):
            part = [pair for pair in block if pair.blind == hidden]
            if part:
                found.append(_block(part, blind if hidden else sources, model, surroundings))
        if start and start % (BLOCK * 40) == 0:
            say(f"{start:,} of {len(ordered):,} pairs measured")
    whole = Features.concatenate(found)
    labels = np.array([pair.label for pair in ordered])
    return MeasuredPairs(tuple(ordered), whole, labels, _weights(ordered, labels))


def _block(
    pairs: Sequence[Pair], sources: Sources, model: Model | None, surroundings: Mapping[str, Sequence[Surroundings]]
) -> Features:
    """The features of each pair in its best reading."""
    mine = [sources.reader.readings(pair.subscription) for pair in pairs]
    theirs = [sources.reader.readings(pair.event) for pair in pairs]
    side = TermSide([reading for each in mine for reading in each], sources)
    events = TermSide([reading for each in theirs for reading in each], sources)
    starts = np.cumsum([0, *map(len, mine)])
    rows = list(features(side, events, model.word_scores if model is not None else _no_word))
    out: list[Features] = []
    places: list[tuple[int, int]] = []
    at = 0
    for number in range(len(pairs)):
        columns = np.arange(starts[number], starts[number + 1])
        options = [(row, column) for row in range(at, at + len(theirs[number])) for column in columns.tolist()]
        best = max(options, key=lambda option: _preference(rows[option[0]], option[1]))
        places.append(best)
        out.append(rows[best[0]].take(np.array([best[1]])))
        at += len(theirs[number])
    made = Features.concatenate(out)
    _rank(made, pairs, side=side, events=events, places=places, surroundings=surroundings)
    return made


def _preference(row: Features, column: int) -> tuple[bool, bool, float]:
    same = row.shape[column] == PairShape.SAME
    return bool(same), bool(row.shape[column] == PairShape.CONTAINED), float(np.nan_to_num(row.embedding[column]))


def _rank(
    made: Features,
    pairs: Sequence[Pair],
    *,
    side: TermSide,
    events: TermSide,
    places: Sequence[tuple[int, int]],
    surroundings: Mapping[str, Sequence[Surroundings]],
) -> None:
    """How many words of a stream are nearer; the streams are the terms of the pair's own source."""
    near = made.embedding if side.vectors is not None else np.nan_to_num(made.esa)
    for source in {pair.source for pair in pairs}:
        streams = surroundings[source]
        which = [at for at, pair in enumerate(pairs) if pair.source == source]
        for number, stream in enumerate(streams):
            chosen = [at for at in which if at % len(streams) == number]
            if not chosen:
                continue
            ends = TermSide([events.readings[places[at][0]] for at in chosen], events.sources)
            starts = TermSide([side.readings[places[at][1]] for at in chosen], side.sources)
            sought = near[chosen][:, None]
            made.nearer_event[chosen] = nearer(stream.around(ends), sought)[:, 0]
            made.nearer_subscription[chosen] = nearer(stream.around(starts), sought)[:, 0]


def _surroundings(pairs: Sequence[Pair], sources: Sources) -> dict[str, list[Surroundings]]:
    terms: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        terms[pair.source].append(pair.event)
    found = {}
    for source, said in terms.items():
        rng = np.random.default_rng(len(said))
        once = sorted(set(said))
        sizes = [min(size, len(once)) for size in BACKGROUNDS]
        found[source] = [Surroundings(rng.choice(once, size, replace=False).tolist(), sources) for size in sizes]
    return found


def _weights(pairs: Sequence[Pair], labels: Floats) -> Floats:
    trusted = (TRUST.get(pair.source, 1.0) * LOOSE.get(pair.kind, 1.0) for pair in pairs)
    weights = np.array(
        [trust * (2.0 if _sees_wordnet(pair) else 1.0) for trust, pair in zip(trusted, pairs, strict=True)]
    )
    return _balanced(weights, labels)


def _sees_wordnet(pair: Pair) -> bool:
    """Pairs of WordNet that see its relations are few, and count double."""
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
    """The pairs that share no word, without anything that is known of their terms."""
    some = np.flatnonzero(np.isin(plain.shape, [PairShape.WORD, PairShape.STRANGE, PairShape.APART, PairShape.FOREIGN]))
    made = plain.take(some)
    made.relation[:] = 0
    for name in ("embedding", "esa", "aligned", "worst", "nearer_event", "nearer_subscription"):
        getattr(made, name)[:] = np.nan
    return made, some


def _dropped(plain: Features, rng: np.random.Generator) -> Features:
    """A copy without some of the evidence."""
    made = Features(**{one.name: getattr(plain, one.name).copy() for one in fields(plain)})
    size = len(made.shape)
    for name, share in DROPPED.items():
        gone = rng.random(size) < share
        for field in (name,) if name != "nearer" else ("nearer_event", "nearer_subscription"):
            getattr(made, field)[gone] = 0 if field == "relation" else np.nan
    return made


def _no_word(*known: NDArray[np.generic]) -> NDArray[np.float32]:
    """Before words are learned, none means the same as another."""
    return np.zeros(len(known[0]), np.float32)


def _described(sources: Sources) -> dict[str, Any]:
    return {
        "spaces": [f"{space.name} {space.id}" for space in sources.spaces],
        "encoder": "multilingual sentence encoder" if sources.encoder else "none",
    }


def settled(model: Model, found: MeasuredPairs, *, say: Callable[[str], None] = lambda _: None) -> Model:
    """The model with the prior by which the default threshold divides the held-out concepts best.

    Best is the greatest F1 where half of the pairs mean the same.
    """
    here, truth = _clear(found)
    weights = _balanced(found.weights[here], truth.astype(np.float64))
    bits = model.bits(found.features.take(here)) - np.float32(model.prior)
    reach = PRIOR_STEPS + PRIOR_BESIDE
    priors = np.arange(-reach, reach + 1) * PRIOR_STEP + model.prior
    scores = [_f1(bits + prior >= 0, truth, weights) for prior in priors]
    width = 2 * PRIOR_BESIDE + 1
    smooth = np.convolve(scores, np.ones(width) / width, "valid")
    best = float(priors[PRIOR_BESIDE + int(smooth.argmax())])
    say(f"prior {best:.2f} instead of {model.prior:.2f}")
    judged = f"F1 at 0.5 on {len(here):,} pairs of held-out concepts"
    return replace(model, prior=best, provenance={**model.provenance, "prior": judged})


def _clear(found: MeasuredPairs) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The held-out pairs that surely mean the same or do not, and which do."""
    held = np.array([pair.held_out for pair in found.pairs])
    here = np.flatnonzero(held & ((found.labels >= 0.8) | (found.labels == 0)))
    return here, found.labels[here] >= 0.8


def _balanced(weights: Floats, labels: Floats) -> Floats:
    """Weights under which the share of pairs that mean the same is `POSITIVE`."""
    right, wrong = float(weights @ labels), float(weights @ (1 - labels))
    scale = POSITIVE * wrong / ((1 - POSITIVE) * right) if right else 1.0
    return np.asarray(weights * (labels * scale + (1 - labels)), np.float64)


def _f1(taken: NDArray[np.bool_], truth: NDArray[np.bool_], weights: Floats) -> float:
    right = float(weights[taken & truth].sum())
    return 2 * right / (float(weights[taken].sum()) + float(weights[truth].sum()))


def report(model: Model, found: MeasuredPairs) -> list[dict[str, str | float | int]]:
    """By source, on pairs of concepts that were not learned from: how well 0.5 divides them, and AUC."""
    scores = probability(model.bits(found.features))
    rows: list[dict[str, str | float | int]] = []
    for source in [*sorted({pair.source for pair in found.pairs}), "all"]:
        here = np.array([pair.held_out and source in (pair.source, "all") for pair in found.pairs])
        clear = here & ((found.labels >= 0.8) | (found.labels == 0))
        truth, said = found.labels[clear] >= 0.8, scores[clear]
        right = int((truth & (said >= 0.5)).sum())
        given, wanted = int((said >= 0.5).sum()), int(truth.sum())
        f1 = 2 * right / max(1, given + wanted)
        rows.append({"source": source, "pairs": int(clear.sum()), "F1 at 0.5": f1,
                     "precision": right / max(1, given), "recall": right / max(1, wanted),
                     "AUC": auc(said, truth)})  # fmt: skip
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


__all__ = ["MeasuredPairs", "auc", "learn", "measured", "report", "settled"]
