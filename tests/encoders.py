"""Sentence encoders that need no model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.evidence import SentenceEncoder


class HashedEncoder(SentenceEncoder):
    """Vectors that depend on nothing but the text."""

    def __init__(self) -> None:
        """Nothing to load and nothing to keep."""
        self._adaptation = None

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text."""
        rows = [np.random.default_rng(list(text.encode())).normal(size=4) for text in texts]
        found = np.array(rows, np.float32).reshape(len(texts), 4)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


class PlacedEncoder(SentenceEncoder):
    """Terms on a circle, in degrees; all others are on its far side."""

    def __init__(self, **places: float) -> None:
        self.places = places
        self._adaptation = None

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text."""
        angles = np.radians([self.places.get(text, 180.0) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
