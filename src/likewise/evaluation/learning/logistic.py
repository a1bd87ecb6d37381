"""Learning the weights: a monotone, regularised logistic model, fitted with bounds by SciPy.

A curve is a value at its first point and steps to the next points, all of one sign: more similarity never counts
less. Categories are free within their signs. Weights of single words are learned first, because phrases are compared
word by word with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.evidence import CURVES, OF_SHAPE, SHARED, TABLES, Features, Model, PairShape, Weights

Floats = NDArray[np.float64]

RIDGE: Final = 2.0
"""The strength of the ridge penalty: weights that few pairs support stay near 0."""

_LOG2: Final = float(np.log(2.0))

_SIGNS: Final[Mapping[str, Mapping[str, int]]] = {
    "relation": {
        "synonyms": 1,
        "rare_synonyms": 1,
        "derived": 1,
        "short": 1,
        "none": -1,
        "one_unlisted": -1,
        "both_unlisted": -1,
    },
    "opposed": {"yes": -1, "in_a_description": -1},
    "listed": {"apart": -1},
    "codes": {"different": -1, "one_side": -1, "same": 1},
    "extra": {"event turning": -1, "subscription turning": -1, "event head": -1, "subscription head": -1},
    "head": {"different": -1},
}
"""Categories whose sign is known beforehand."""

_MOST_BITS: Final[Mapping[tuple[str, str], float]] = {
    ("extra", "event turning"): -2.8,
    ("extra", "subscription turning"): -2.8,
}
"""The most bits of a category, set by hand: descriptions that contain a name often have a word that turns it, which
would let *alarm cleared* pass for *alarm*."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number to learn: a base, the first value or a step of a curve, or a kind of a table."""

    shape: PairShape | None
    name: str
    place: int
    low: float | None = None
    high: float | None = None


def fit(features: Features, labels: Floats, weights: Floats, *, provenance: Mapping[str, Any]) -> Model:
    """All weights, words first; the features of phrases must already stand on a model of words (see `fit_words`)."""
    parameters = list(_parameters())
    return _fitted(parameters, features, labels, weights, provenance=provenance)


def _fitted(
    parameters: Sequence[Parameter],
    features: Features,
    labels: Floats,
    weights: Floats,
    *,
    provenance: Mapping[str, Any],
) -> Model:
    from scipy.optimize import minimize

    design = np.stack([_column(parameter, features) for parameter in parameters], axis=1)
    start = np.zeros(len(parameters))
    free = np.array([parameter.name != "base" for parameter in parameters], np.float64)

    def loss(beta: Floats) -> tuple[float, Floats]:
        logits = design @ beta
        value = float(weights @ (np.logaddexp(0.0, logits) - labels * logits)) + RIDGE * float(free @ beta**2)
        slope = design.T @ (weights * (_sigmoid(logits) - labels)) + 2 * RIDGE * free * beta
        return value, slope

    bounds = [(parameter.low, parameter.high) for parameter in parameters]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    return _model(parameters, np.asarray(found.x, np.float64) / _LOG2, provenance)


def _parameters() -> Iterator[Parameter]:
    for shape in OF_SHAPE:
        yield Parameter(shape, "base", 0)
        for name in OF_SHAPE[shape]:
            yield from _evidence(shape, name)
    for name in SHARED:
        yield from _evidence(None, name)


def _evidence(shape: PairShape | None, name: str) -> Iterator[Parameter]:
    if name in TABLES:
        for place, kind in enumerate(TABLES[name]):
            sign = _SIGNS.get(name, {}).get(kind, 0)
            if place:
                high = _MOST_BITS.get((name, kind), 0.0) * _LOG2
                yield Parameter(shape, name, place, 0.0 if sign > 0 else None, high if sign < 0 else None)
        return
    yield Parameter(shape, name, 0, None, 0.0)
    for place in range(1, len(CURVES[name])):
        yield Parameter(shape, name, place, 0.0, None)


def _column(parameter: Parameter, features: Features) -> Floats:
    """The column of the design matrix for one parameter."""
    here = np.ones(len(features.shape)) if parameter.shape is None else features.shape == parameter.shape
    if parameter.name == "base":
        return np.asarray(here, np.float64)
    values = getattr(features, parameter.name)
    if parameter.name in TABLES:
        return np.asarray(here * (values == parameter.place), np.float64)
    given = ~np.isnan(values)
    if not parameter.place:
        return np.asarray(here * given, np.float64)
    low, high = CURVES[parameter.name][parameter.place - 1 : parameter.place + 1]
    ramp = np.clip((np.nan_to_num(values) - low) / (high - low), 0.0, 1.0)
    return np.asarray(here * given * ramp, np.float64)


def _model(parameters: Sequence[Parameter], bits: Floats, provenance: Mapping[str, Any]) -> Model:
    found = {(p.shape, p.name, p.place): float(value) for p, value in zip(parameters, bits, strict=True)}

    def weights(shape: PairShape | None, names: Sequence[str]) -> Weights:
        made = {}
        for name in names:
            size = len(TABLES[name]) if name in TABLES else len(CURVES[name])
            values = [found.get((shape, name, place), 0.0) for place in range(size)]
            made[name] = tuple(values if name in TABLES else np.cumsum(values).tolist())
        return Weights(found.get((shape, "base", 0), 0.0), made)

    shapes = {shape: weights(shape, OF_SHAPE[shape]) for shape in OF_SHAPE}
    return Model(shapes, weights(None, SHARED), provenance)


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -40.0, 40.0))), np.float64)


__all__ = ["fit"]
