"""The weights of evidence: from features to bits, and from bits to a probability.

Each piece of evidence has a weight in bits, the logarithm to base 2 of how much likelier it is between terms that
mean the same than between others; missing evidence weighs 0. Their sum gives the score 1 / (1 + 2^-sum), as Fellegi and
Sunter add the agreement weights of records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.files import read_whole
from likewise.semantics.evidence.features import (
    EXTRAS,
    HEADS,
    CodesSay,
    Exclusion,
    Features,
    Listed,
    PairShape,
)
from likewise.semantics.evidence.lexical import WordRelation
from likewise.semantics.evidence.terms import Spelling

Floats = NDArray[np.float32]

FORMAT: Final = "likewise evidence"
VERSION: Final = 10

CURVES: Final[Mapping[str, tuple[float, ...]]] = {
    "embedding": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "esa": (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8),
    "aligned": (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    "worst_subscription": (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    "worst_event": (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
}
"""Numeric evidence, and the points between which its weight is interpolated."""

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "relation": tuple(each.name.lower() for each in WordRelation),
    "extra": EXTRAS,
    "head": HEADS,
    "codes": tuple(each.name.lower() for each in CodesSay),
    "opposed": tuple(each.name.lower() for each in Exclusion),
    "spelling": tuple(each.name.lower() for each in Spelling),
    "listed": tuple(each.name.lower() for each in Listed),
}
"""Categorical evidence; the first category means none and weighs 0."""

WORDS_COMPARED: Final = ("aligned", "worst_subscription", "worst_event")
"""How well the words of two terms agree: on average, and the least agreeing word of each side."""

OF_SHAPE: Final[Mapping[PairShape, tuple[str, ...]]] = {
    PairShape.WORD: ("embedding", "esa", "relation", "spelling"),
    PairShape.APART: ("embedding", "esa", "relation", *WORDS_COMPARED, "head", "spelling"),
    PairShape.REPLACED: ("embedding", "esa", "relation", *WORDS_COMPARED, "head", "spelling"),
    PairShape.CONTAINED: ("embedding", "esa", "relation", "extra", "spelling"),
    PairShape.FOREIGN: ("embedding", "relation", *WORDS_COMPARED, "spelling"),
    PairShape.SAME: ("spelling",),
    PairShape.UNLISTED_WORD: ("embedding", "relation", "spelling"),
    PairShape.DESCRIBED: ("embedding", "esa", "relation", *WORDS_COMPARED, "spelling"),
    PairShape.DESCRIBED_IN_PART: ("embedding", "esa", *WORDS_COMPARED, "spelling"),
}
"""The evidence that counts for each shape."""

SHARED: Final = ("codes", "opposed", "listed")
"""The evidence that has the same weights for all shapes."""

_UNLISTED: Final = (WordRelation.ONE_UNLISTED, WordRelation.BOTH_UNLISTED)

_NUMBERS: Final = ("prior", "sureness", "attribute_bits", "temperature")

MOST_BITS: Final = 12.0
"""The limit of a sum of evidence: one error in four thousand."""


@dataclass(frozen=True)
class Weights:
    """A base, and for each piece of evidence the bits at each point of its curve or for each category."""

    base: float
    bits: Mapping[str, tuple[float, ...]]

    def parts(self, features: Features, names: Sequence[str]) -> Iterator[tuple[str, Floats]]:
        """The weight of each piece of evidence for all pairs."""
        for name in names:
            if name in self.bits:
                yield name, weigh(name, getattr(features, name), self.bits[name])


def weigh(name: str, values: NDArray[Any], bits: Sequence[float]) -> Floats:
    """The bits of one piece of evidence; 0 where there is none.

    >>> weigh("opposed", np.array([0, 1]), (0.0, -6.0, -2.0)).tolist()
    [0.0, -6.0]
    >>> weigh("esa", np.array([0.05, np.nan]), (-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)).tolist()
    [0.0, 0.0]
    """
    if name in TABLES:
        found: Floats = np.asarray(bits, np.float32)[values]
        return found
    made = np.interp(values, CURVES[name], bits)
    return np.where(np.isnan(values), 0.0, made).astype(np.float32)


@dataclass(frozen=True)
class Model:
    """All weights, with their provenance."""

    shapes: Mapping[PairShape, Weights]
    shared: Weights
    provenance: Mapping[str, Any] = field(default_factory=dict)
    prior: float = 0.0
    """Bits added to every pair: how much likelier a pair means the same here than among the pairs learned from."""
    sureness: float = 1.0
    """A factor on all learned weights that calibrates the scores."""
    attribute_bits: float = 4.0
    """How many bits likelier an attribute is meant if its text value is."""
    temperature: float = 0.5
    """How much it counts against a pair that the event's term is nearer to another subscription's term. It is small,
    because subscribers may use different words for the same thing."""

    @classmethod
    def blank(cls) -> Model:
        """No weights yet."""
        return cls({}, Weights(0.0, {}))

    @classmethod
    def shipped(cls) -> Model:
        """The shipped weights."""
        return _shipped()

    @classmethod
    def from_file(cls, path: Path | str) -> Model:
        """Weights that `likewise train` wrote."""
        return cls.from_text(read_whole(path), source=str(path))

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> Model:
        """From JSON; a file of another format or version is refused."""
        hint = "make it anew with `likewise train`"
        try:
            raw = json.loads(text)
            if raw["format"] != FORMAT or raw["version"] != VERSION:
                said = f"{raw['format']} {raw['version']}"
                raise InputError(f"this is {said!r}, not '{FORMAT} {VERSION}'", source=source, hint=hint)
            shapes = {PairShape[name.upper()]: _weights(part, source) for name, part in raw["shapes"].items()}
            model = cls(
                shapes,
                _weights(raw["shared"], source),
                raw["provenance"],
                **{name: float(raw[name]) for name in _NUMBERS},
            )
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a file of weights: {error}", source=source, hint=hint) from None
        if missing := [shape.name.lower() for shape in OF_SHAPE if shape not in shapes]:
            raise InputError(f"no weights for {missing[0]!r}", source=source, hint=hint)
        return model

    def to_text(self) -> str:
        """JSON that a person can read: curves as `place: bits`, tables as `kind: bits`."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "provenance": self.provenance,
            **{name: round(getattr(self, name), 2) for name in _NUMBERS},
            "shapes": {shape.name.lower(): _plain(weights) for shape, weights in self.shapes.items()},
            "shared": _plain(self.shared),
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    @property
    def version(self) -> str:
        """A digest of the weights: equal versions give equal scores."""
        return blake2b(replace(self, provenance={}).to_text().encode(), digest_size=8).hexdigest()

    def parts(self, features: Features) -> Iterator[tuple[str, Floats]]:
        """Every piece of evidence with its bits for all pairs; `prior` is the base of the pair's shape."""
        base = np.zeros(len(features.shape), np.float32)
        places = {shape: np.flatnonzero(features.shape == shape) for shape in self.shapes}
        for shape, weights in self.shapes.items():
            base[places[shape]] = weights.base * self.sureness + self.prior
        yield "prior", base
        for name in dict.fromkeys(name for names in OF_SHAPE.values() for name in names):
            total = np.zeros(len(features.shape), np.float32)
            for shape, weights in self.shapes.items():
                here = places[shape]
                if len(here) and name in OF_SHAPE[shape] and name in weights.bits:
                    total[here] = weigh(name, getattr(features, name)[here], weights.bits[name])
            yield name, total * np.float32(self.sureness)
        for name, bits in self.shared.parts(features, SHARED):
            yield name, bits * np.float32(self.sureness)

    def bits(self, features: Features) -> Floats:
        """The sum of all evidence."""
        total = np.zeros(len(features.shape), np.float32)
        for _, bits in self.parts(features):
            total += bits
        total[features.shape == PairShape.SKIPPED] = -MOST_BITS
        return np.clip(total, -MOST_BITS, MOST_BITS)

    def calibrated(self, bits: NDArray[np.floating], truth: NDArray[np.bool_]) -> Model:
        """This model, calibrated on pairs whose bits and truth are given.

        Only two numbers are fitted: the sureness of all weights and the prior.
        """
        from scipy.optimize import minimize

        signs = np.where(truth, 1.0, -1.0)

        def loss(given: NDArray[np.float64]) -> float:
            logits = np.log(2.0) * (given[0] * bits + given[1])
            return float(np.logaddexp(0.0, -signs * logits).sum())

        slope, offset = minimize(loss, np.array([1.0, 0.0])).x
        return replace(self, sureness=self.sureness * float(slope), prior=self.prior * float(slope) + float(offset))

    def word_scores(self, embedding: Floats, esa: Floats, relation: NDArray[np.int8]) -> Floats:
        """The probability that two single words mean the same, from the evidence for words alone."""
        total = np.zeros(len(relation), np.float32)
        unlisted = np.isin(relation, _UNLISTED)
        for shape, here in ((PairShape.WORD, ~unlisted), (PairShape.UNLISTED_WORD, unlisted)):
            weights = self.shapes[shape]
            total[here] = weights.base
            for name, values in (("embedding", embedding), ("esa", esa), ("relation", relation)):
                if name in weights.bits:
                    total[here] += weigh(name, values[here], weights.bits[name])
        return probability(total)


def probability(bits: NDArray[np.floating]) -> Floats:
    """1 / (1 + 2^-bits).

    Powers are taken in double precision: NumPy's single precision differs in the last digit by the length of an array.

    >>> [round(float(each), 3) for each in probability(np.array([0.0, 1.0, -2.0]))]
    [0.5, 0.667, 0.2]
    """
    exact = np.asarray(bits, np.float64)
    return np.asarray(1.0 / (1.0 + np.exp2(-np.clip(exact, -60.0, 60.0))), np.float32)


def _weights(raw: Mapping[str, Any], source: str) -> Weights:
    bits: dict[str, tuple[float, ...]] = {}
    for name, part in raw.items():
        if name == "base":
            continue
        known = TABLES[name] if name in TABLES else tuple(f"{place:g}" for place in CURVES[name])
        if sorted(part) != sorted(known):
            raise InputError(f"{name} has other places than {', '.join(known)}", source=source)
        bits[name] = tuple(float(part[place]) for place in known)
        if not np.isfinite(bits[name]).all():
            raise InputError(f"{name} has a weight that is no number", source=source)
    return Weights(float(raw.get("base", 0.0)), bits)


def _plain(weights: Weights) -> dict[str, Any]:
    out: dict[str, Any] = {"base": round(weights.base, 2)}
    for name, bits in weights.bits.items():
        places = TABLES[name] if name in TABLES else [f"{place:g}" for place in CURVES[name]]
        out[name] = {place: round(value, 2) for place, value in zip(places, bits, strict=True)}
    return out


@lru_cache(maxsize=1)
def _shipped() -> Model:
    text = files("likewise.semantics.evidence").joinpath("weights.json").read_text(encoding="utf-8")
    return Model.from_text(text, source="weights.json")


__all__ = ["CURVES", "OF_SHAPE", "SHARED", "TABLES", "WORDS_COMPARED", "Model", "Weights", "probability", "weigh"]
