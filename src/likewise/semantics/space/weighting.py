"""How raw frequencies become weights; chosen when rows are read, so one space serves all weightings."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError

Weighting: TypeAlias = Literal["augmented", "log"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
DEFAULT_WEIGHTING: Weighting = "log"

LENGTH_POWER = 0.25
"""How strongly long concepts are damped: chosen on the human judgements of docs/spaces.md."""


def term_frequency(
    freq: NDArray[np.uint16],
    *,
    weighting: Weighting,
    max_freq: NDArray[np.uint16],
    length: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """Weights of postings, before idf; `max_freq` and `length` are those of each posting's concept.

    `augmented` is 0.5 + 0.5 f / maxf [000 eq 2]; `log` is (1 + log f) / length^p, which damps long concepts.

    >>> one = np.array([1, 3], np.uint16)
    >>> top, words = np.array([4, 4], np.uint16), np.array([16, 16], np.uint32)
    >>> term_frequency(one, weighting="augmented", max_freq=top, length=words).tolist()
    [0.625, 0.875]
    """
    f = freq.astype(np.float32)
    if weighting == "augmented":
        return (0.5 + 0.5 * f / max_freq).astype(np.float32)
    if weighting == "log":
        damped = np.power(length, -LENGTH_POWER, dtype=np.float32)
        return ((1 + np.log(f)) * damped).astype(np.float32)
    raise BuildError(f"no weighting {weighting!r}", hint=f"one of: {', '.join(WEIGHTINGS)}")


def inverse_document_frequency(df: NDArray[np.integer], concepts: int) -> NDArray[np.float32]:
    """log(N / df) [000 eq 3]; 0 for a term of no concept.

    >>> inverse_document_frequency(np.array([1, 4, 0]), 4)
    array([1.3862944, 0.       , 0.       ], dtype=float32)
    """
    return np.where(df > 0, np.log(concepts / np.maximum(df, 1)), 0).astype(np.float32)
