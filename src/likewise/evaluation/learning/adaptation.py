"""Learns the adaptation of the sentence encoder: weights of its layers that bring the names of a thing together.

The encoder puts *supply fan failure* beside *exhaust fan failure*, and *sewage* far from *dirty water*. All layers
above its vectors of tokens learn from sets of names for the same thing, and from descriptions in the words of people
who do not know these names: each must be nearer to the others of its set than to those of all other sets of a batch
(the contrastive loss InfoNCE). A batch has whole fields, so that its wrong answers include things that are easily
confused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.semantics import OtherNames, SentenceEncoder
from likewise.semantics.evidence import ChangedWeights, Network, slopes

FIELD: Final = 30
"""So many neighbouring lines of a list are taken for one field."""

FIELDS: Final = 24
"""Fields in a batch."""

FOLDS: Final = 3
"""Parts of the fields; the pairs of each are measured with weights that were learned on the others."""

EPOCHS: Final = 4
TEMPERATURE: Final = 0.07
"""How sharply names are told apart."""

LAST_SHARE: Final = 0.03
"""The rate falls to this share of its greatest value."""

INERTIA: Final = 0.9
STEADINESS: Final = 0.99
"""How slowly the means of slopes and of their squares follow."""

WARMING: Final = 20
"""Steps in which the rate rises to its greatest value."""

RATE: Final = 6e-4
"""The step of each weight at most. Of 0.0002, 0.0003 and 0.0006, the one that ranks names of held-out fields best."""

Field = Sequence[Sequence[int]]
"""The things of a field, each as the numbers of its names."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Described:
    """A thing with its names, and with descriptions in words of people who do not know the names."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...] = ()
    field: str = ""


@lru_cache(maxsize=1)
def described_things() -> tuple[Described, ...]:
    """The things of the list of descriptions."""
    text = files("likewise.evaluation").joinpath("data/descriptions.txt").read_text(encoding="utf-8")
    lines = (line.split("|") for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        Described(_terms(names), _terms(descriptions), f"descriptions {place // FIELD}")
        for place, (names, descriptions) in enumerate(lines)
    )


def _terms(text: str) -> tuple[str, ...]:
    return tuple(normalise(term) for term in text.split(";"))


@lru_cache(maxsize=1)
def translated_things() -> tuple[Described, ...]:
    """The things of the list of names in five languages."""
    text = files("likewise.evaluation").joinpath("data/translated_names.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        Described(tuple(name for names in line.split("|") for name in _terms(names)), field=f"translated {at // FIELD}")
        for at, line in enumerate(lines)
    )


def named_things(names: OtherNames) -> tuple[Described, ...]:
    """The things of the list of other names, with their sure names."""
    return tuple(
        Described(tuple(normalise(name) for name, sure in found if sure), field=f"names {place // FIELD}")
        for place, found in enumerate(names.sets)
    )


@dataclass(frozen=True)
class Adaptations:
    """What is learned on everything, and for each fold what is learned without the names of that fold."""

    network: Network
    """The encoder with its own weights."""
    whole: ChangedWeights
    by_fold: tuple[ChangedWeights, ...]
    fold_of: Mapping[str, int]
    """The fold of each name."""

    def encoder(self, term: str) -> int:
        """The number of the adaptation for a pair of this concept: that of its fold, or -1 for the whole one."""
        return self.fold_of.get(normalise(term), -1)

    def encoders(self) -> dict[int, SentenceEncoder]:
        """An encoder for each adaptation, by its number."""
        changes = {-1: self.whole, **dict(enumerate(self.by_fold))}
        return {
            number: SentenceEncoder(change, network=lambda: self.network, stored=False)
            for number, change in changes.items()
        }

    def confused(self, things: Sequence[Described]) -> dict[str, str]:
        """For each description the nearest name of another thing of its field, by an encoder that saw neither."""
        encoders = self.encoders()
        fields: dict[str, list[Described]] = defaultdict(list)
        for thing in things:
            fields[thing.field].append(thing)
        found: dict[str, str] = {}
        for field in fields.values():
            encoder = encoders[self.encoder(field[0].names[0])]
            names = [(name, at) for at, thing in enumerate(field) for name in thing.names]
            described = [(text, at) for at, thing in enumerate(field) for text in thing.descriptions]
            near = encoder.vectors([text for text, _ in described]) @ encoder.vectors([name for name, _ in names]).T
            near[np.array([at for _, at in described])[:, None] == np.array([at for _, at in names])] = -1
            found |= {
                text: names[best][0] for (text, _), best in zip(described, near.argmax(axis=1).tolist(), strict=True)
            }
        return found

    def save(self, path: Path) -> None:
        """Write the whole adaptation, as the package ships it."""
        self.whole.save(path)


def learn_shipped(*, seed: int = 1, say: Say = lambda _: None) -> Adaptations | None:
    """Learn the adaptations on the shipped lists; None without a sentence encoder."""
    if not SentenceEncoder.installed():
        return None
    things = [*named_things(OtherNames.shipped()), *described_things(), *translated_things()]
    return learn_adaptations(things, Network.shipped(), seed=seed, say=say)


def learn_adaptations(
    things: Sequence[Described], network: Network, *, seed: int = 1, say: Say = lambda _: None
) -> Adaptations:
    """Learn the weights on all things, and for each fold on those that share no name with the fold."""
    number_of: dict[str, int] = {}
    sets = [[number_of.setdefault(term, len(number_of)) for term in _all(thing)] for thing in things]
    texts = [network.tokenize(text) for text in number_of]
    say(f"{len(texts):,} names and descriptions of {len(things):,} things")
    owner = _joined(sets, len(number_of))
    fields = sorted({thing.field for thing in things})
    fold_of_field = dict(zip(fields, np.random.default_rng(seed).integers(0, FOLDS, len(fields)).tolist(), strict=True))
    folds = [fold_of_field[thing.field] for thing in things]
    made = []
    for fold in (None, *range(FOLDS)):
        seen = {owner[terms[0]] for terms, mine in zip(sets, folds, strict=True) if mine == fold and terms}
        kept: dict[str, list[list[int]]] = defaultdict(list)
        for thing, terms in zip(things, sets, strict=True):
            if len(terms) > 1 and owner[terms[0]] not in seen:
                kept[thing.field].append(terms)
        say(f"learning the adaptation {'on all things' if fold is None else f'without fold {fold + 1}'}")
        learner = Learner(network, texts, np.array(owner), seed=seed)
        made.append(learner.learned(list(kept.values()), say=say))
    fold_of = {normalise(term): fold for thing, fold in zip(things, folds, strict=True) for term in _all(thing)}
    return Adaptations(network, made[0], tuple(made[1:]), fold_of)


def _all(thing: Described) -> tuple[str, ...]:
    return tuple(dict.fromkeys(thing.names + thing.descriptions))


def _joined(sets: Iterable[Sequence[int]], count: int) -> list[int]:
    """For each name, the first name of its thing: sets that share a name are one thing."""
    first = list(range(count))

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = number = first[first[number]]
        return number

    for numbers in sets:
        for other in numbers[1:]:
            first[root(other)] = root(numbers[0])
    return [root(number) for number in range(count)]


class Learner:
    """Learns weights by stochastic gradient descent (Adam, with a rate that falls to almost nothing)."""

    def __init__(
        self, network: Network, texts: Sequence[Sequence[int]], owner: NDArray[np.int64], *, seed: int
    ) -> None:
        self._start = network
        self._network = network.with_weights({name: np.array(w, np.float32) for name, w in network.weights.items()})
        self._texts = texts
        self._owner = owner
        self._rng = np.random.default_rng(seed)
        self._mean = {name: np.zeros_like(weight) for name, weight in self._network.weights.items()}
        self._square = {name: np.zeros_like(weight) for name, weight in self._network.weights.items()}

    def learned(self, fields: Sequence[Field], *, say: Say = lambda _: None) -> ChangedWeights:
        """What all epochs add to the weights."""
        each = -(-len(fields) // FIELDS)
        losses: list[float] = []
        for step, batch in enumerate(_batches(fields, self._rng), 1):
            chosen = np.array([self._rng.choice(terms, 2, replace=False) for terms in batch])
            rate = RATE * min(1.0, step / WARMING) * max(LAST_SHARE, 1 - step / (EPOCHS * each))
            losses.append(self._step(chosen, step, rate))
            if step % each == 0:
                say(f"  epoch {step // each} of {EPOCHS}, loss {np.mean(losses):.3f}")
                losses.clear()
        return ChangedWeights.of(self._start.weights, self._network.weights)

    def _step(self, chosen: NDArray[np.int64], step: int, rate: float) -> float:
        """Learn from two names of each thing; returns the loss before."""
        layers = self._network.run([self._texts[number] for number in chosen.T.ravel().tolist()])
        loss, slope = contrast(layers.units, self._owner[chosen[:, 0]])
        for name, change in slopes(layers, self._network.weights, slope).items():
            mean, square = self._mean[name], self._square[name]
            mean += np.float32(1 - INERTIA) * (change - mean)
            square += np.float32(1 - STEADINESS) * (change**2 - square)
            pace = mean / np.float32(1 - INERTIA**step)
            pace /= np.sqrt(square / np.float32(1 - STEADINESS**step)) + np.float32(1e-8)
            self._network.weights[name][...] -= np.float32(rate) * pace
        return loss


def _batches(fields: Sequence[Field], rng: np.random.Generator) -> Iterator[list[Sequence[int]]]:
    """Whole fields in random order, for all epochs."""
    for _ in range(EPOCHS):
        order = rng.permutation(len(fields)).tolist()
        for start in range(0, len(order), FIELDS):
            yield [terms for place in order[start : start + FIELDS] for terms in fields[place]]


def contrast(units: NDArray[np.floating], owner: NDArray[np.int64]) -> tuple[float, NDArray[np.floating]]:
    """The loss of two names for each thing, and its slope by their vectors.

    The first half of the rows are names of `owner`, the second half other names of the same things in the same order:
    every row should be nearest to its partner. Names of one thing do not compete.
    """
    count = len(owner)
    one, other = units[:count], units[count:]
    near = one @ other.T / np.asarray(TEMPERATURE, units.dtype)
    same = owner[:, None] == owner[None, :]
    np.fill_diagonal(same, val=False)
    near[same] = -1e4
    forth, back = _shares(near), _shares(near.T).T
    diagonal = np.diag_indices(count)
    loss = -float(np.log(np.maximum(forth[diagonal] * back[diagonal], 1e-30)).mean()) / 2
    away = forth + back
    away[diagonal] -= 2
    away /= np.asarray(2 * TEMPERATURE * count, units.dtype)
    return loss, np.vstack([away @ other, away.T @ one])


def _shares(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Each row as shares that add up to 1."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


__all__ = [
    "Adaptations",
    "Described",
    "Learner",
    "contrast",
    "described_things",
    "learn_adaptations",
    "learn_shipped",
    "named_things",
    "translated_things",
]
