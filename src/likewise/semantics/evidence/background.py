"""The words of the stream as evidence: how many of them are nearer to a term than the other term is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.evidence.features import Sources, TermSide, cosines

Floats = NDArray[np.float32]

MOST = 64
"""Ranks beyond this count alike."""

_TIE = np.float32(1e-4)  # scores that differ by rounding only are the same


class Surroundings:
    """Words of the stream, and how near each is to terms: by embedding or, without one, by the spaces."""

    def __init__(self, terms: Sequence[str], sources: Sources) -> None:
        self.side = TermSide([sources.reader.readings(term)[0] for term in terms], sources)
        self._stems = [frozenset(reading.stems) for reading in self.side.readings]
        self._places: dict[frozenset[str], list[int]] = {}
        for at, stems in enumerate(self._stems):
            self._places.setdefault(stems, []).append(at)

    def __len__(self) -> int:
        return len(self.side.readings)

    def around(self, side: TermSide) -> Floats:
        """For each reading of a side, how near the nearest other words of the stream are, in rising order."""
        near = nearness(self.side, side)
        for row, reading in enumerate(side.readings):
            near[row, self._places.get(frozenset(reading.stems), [])] = -1
        keep = min(MOST, near.shape[1])
        return np.sort(np.partition(near, near.shape[1] - keep, axis=1)[:, near.shape[1] - keep :], axis=1)


def nearness(side: TermSide, events: TermSide) -> Floats:
    """How near each reading of `events` (row) is to each of `side` (column)."""
    if side.vectors is not None and events.vectors is not None:
        return cosines(events.vectors, side.vectors)
    if not side.concepts:
        return np.zeros((len(events.readings), len(side.readings)), np.float32)
    return np.asarray(np.mean([np.sqrt(one.rows(events.texts)) for one in side.concepts], axis=0), np.float32)


def nearer(around: Floats, near: Floats) -> Floats:
    """log2(1 + n), n being how many of the ordered surroundings of each row are nearer than each of its terms.

    >>> [log] = nearer(np.array([[0.1, 0.5, 0.9]], np.float32), np.array([[0.2, 0.5, 0.95]], np.float32))
    >>> [round(float(each), 2) for each in log]
    [1.58, 1.0, 0.0]
    """
    out = np.zeros(near.shape, np.float32)
    for row, ordered in enumerate(around):
        out[row] = len(ordered) - np.searchsorted(ordered, near[row] + _TIE, side="right")
    return np.log2(1 + out, dtype=np.float32)


__all__ = ["Surroundings", "nearer", "nearness"]
