"""Rank correlation of two lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError


def spearman(left: Sequence[float] | NDArray[np.floating], right: Sequence[float] | NDArray[np.floating]) -> float:
    """Spearman's rank correlation; equal values share their mean rank; 0 if one list is constant.

    >>> spearman([1, 2, 3], [10, 20, 25]), spearman([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    if len(left) != len(right):
        raise BuildError(f"{len(left)} values cannot be compared with {len(right)}", hint="give lists of equal length")
    a, b = ranks(np.asarray(left, np.float64)), ranks(np.asarray(right, np.float64))
    a, b = a - a.mean() if len(a) else a, b - b.mean() if len(b) else b
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / spread, 12) if spread > 0 else 0.0


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1 for the smallest; equal values share the mean of their ranks.

    >>> ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[where], np.float64)
