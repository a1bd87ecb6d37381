"""Learns the adaptation of the sentence encoder: a linear map that brings the names of a thing together.

The encoder puts *supply fan failure* beside *exhaust fan failure*, and *sewage* far from *dirty water*. The map is
learned from sets of names for the same thing, and from descriptions in the words of people who do not know these names:
each must be nearer to the others of its set than to those of all other sets of a batch (the contrastive loss InfoNCE).
A batch has whole fields, so that its wrong answers include things that are easily confused.
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
from likewise.files import whole_file
from likewise.semantics import OtherNames, SentenceEncoder

FIELD: Final = 30
"""So many neighbouring lines of a list are taken for one field."""

FIELDS: Final = 24
"""Fields in a batch."""

FOLDS: Final = 3
"""Parts of the fields; the pairs of each are measured with a map that was learned on the others."""

EPOCHS: Final = 10
TEMPERATURE: Final = 0.1
"""How sharply names are told apart. Of 0.03, 0.05 and 0.1, the one that ranks names of held-out fields best."""

RATE: Final = 1e-3
DECAY: Final = 0.1
"""How strongly the map is held near the identity."""

Floats = NDArray[np.float32]
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


def named_things(names: OtherNames) -> tuple[Described, ...]:
    """The things of the list of other names, with their sure names."""
    return tuple(
        Described(tuple(normalise(name) for name, sure in found if sure), field=f"names {place // FIELD}")
        for place, found in enumerate(names.sets)
    )


@dataclass(frozen=True)
class Adaptations:
    """The map that is learned on everything, and one for each fold, which never saw the names of that fold."""

    whole: Floats
    by_fold: tuple[Floats, ...]
    fold_of: Mapping[str, int]
    """The fold of each name."""

    def encoder(self, term: str) -> int:
        """The number of the map for a pair of this concept: that of its fold, or -1 for the whole one."""
        return self.fold_of.get(normalise(term), -1)

    def encoders(self) -> dict[int, SentenceEncoder]:
        """An encoder for each map, by its number."""
        maps = {-1: self.whole, **dict(enumerate(self.by_fold))}
        return {number: SentenceEncoder(adaptation=matrix.astype(np.float16)) for number, matrix in maps.items()}

    def save(self, path: Path) -> None:
        """Write the whole map, as the package ships it."""
        with whole_file(path) as target:
            np.save(target, self.whole.astype(np.float16))


def learn_shipped(*, seed: int = 1, say: Say = lambda _: None) -> Adaptations | None:
    """Learn the maps on the shipped lists; None without a sentence encoder."""
    if not SentenceEncoder.installed():
        return None
    things = [*named_things(OtherNames.shipped()), *described_things()]
    return learn_adaptations(things, SentenceEncoder.shared(), seed=seed, say=say)


def learn_adaptations(
    things: Sequence[Described], encoder: SentenceEncoder, *, seed: int = 1, say: Say = lambda _: None
) -> Adaptations:
    """Learn the map on all things, and for each fold on those that share no name with the fold."""
    number_of: dict[str, int] = {}
    sets = [[number_of.setdefault(term, len(number_of)) for term in _all(thing)] for thing in things]
    vectors = encoder.vectors(list(number_of))
    say(f"{len(number_of):,} names and descriptions encoded")
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
        made.append(_learn(vectors, list(kept.values()), np.array(owner), seed=seed))
        say(f"adaptation learned {'on all things' if fold is None else f'without fold {fold + 1}'}")
    fold_of = {normalise(term): fold for thing, fold in zip(things, folds, strict=True) for term in _all(thing)}
    return Adaptations(made[0], tuple(made[1:]), fold_of)


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


def _learn(vectors: Floats, fields: Sequence[Field], owner: NDArray[np.int64], *, seed: int) -> Floats:
    """The map, by stochastic gradient descent (Adam with decoupled decay, towards the identity)."""
    rng = np.random.default_rng(seed)
    width = vectors.shape[1]
    change = np.zeros((width, width), np.float32)
    mean, square = np.zeros_like(change), np.zeros_like(change)
    steps = EPOCHS * -(-len(fields) // FIELDS)
    for step, batch in enumerate(_batches(fields, rng)):
        chosen = np.array([rng.choice(terms, 2, replace=False) for terms in batch])
        slope = _slope(change, vectors[chosen[:, 0]], vectors[chosen[:, 1]], owner[chosen[:, 0]])
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        pace = mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
        change -= np.float32(RATE * max(0.05, 1 - step / steps)) * (pace + np.float32(DECAY) * change)
    return np.asarray(change + np.eye(width, dtype=np.float32), np.float32)


def _batches(fields: Sequence[Field], rng: np.random.Generator) -> Iterator[list[Sequence[int]]]:
    """Whole fields in random order, for all epochs."""
    for _ in range(EPOCHS):
        order = rng.permutation(len(fields)).tolist()
        for start in range(0, len(order), FIELDS):
            yield [terms for place in order[start : start + FIELDS] for terms in fields[place]]


def _slope(change: Floats, left: Floats, right: Floats, owner: NDArray[np.int64]) -> Floats:
    """The gradient of the loss: every row of `left` should be nearest to the same row of `right`, and the reverse."""
    (one, one_length), (other, other_length) = (_unit(rows + rows @ change.T) for rows in (left, right))
    near = one @ other.T / np.float32(TEMPERATURE)
    same = owner[:, None] == owner[None, :]
    np.fill_diagonal(same, val=False)
    near[same] = -1e4  # names of one thing do not compete
    away = _shares(near) + _shares(near.T).T
    away[np.diag_indices(len(away))] -= 2
    away /= TEMPERATURE * len(away)
    slopes = ((one, one_length, away @ other, left), (other, other_length, away.T @ one, right))
    return np.asarray(
        sum(
            ((slope - unit * (unit * slope).sum(axis=1, keepdims=True)) / length).T @ rows
            for unit, length, slope, rows in slopes
        ),
        np.float32,
    )


def _unit(rows: Floats) -> tuple[Floats, Floats]:
    length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))
    return rows / length, length


def _shares(logits: Floats) -> Floats:
    """Each row as shares that add up to 1."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


__all__ = ["Adaptations", "Described", "described_things", "learn_adaptations", "learn_shipped", "named_things"]
