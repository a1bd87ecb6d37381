"""Sentence encoders that need no model."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.evidence import Network, SentenceEncoder
from likewise.semantics.evidence.network import WINDOWS, Embeddings

TOKENS = 500
"""The tokens that a tiny network knows."""


def tiny_network(*, width: int = 6, part: int = 4, seed: int = 1) -> Network:
    """All layers of the sentence encoder with random weights, a token for each word."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 256, (TOKENS, width)).astype(np.uint8)
    embeddings = Embeddings(table, np.full(3, 0.02), np.array([-2.4, -2.5, -2.6]))
    parts = len(WINDOWS) * part
    shapes: dict[str, tuple[int, ...]] = {
        "in": (width, parts), "in bias": (parts,), "in gain": (parts,), "in offset": (parts,),
        "gain": (width + parts,), "offset": (width + parts,), "text": (width + parts, width), "text bias": (width,),
        "text to first": (width, 5), "first to second": (5, 5), "text to second": (width, 5),
        "second to third": (5, width), "second to out": (5, width), "third to out": (width, width),
    }  # fmt: skip
    for size, _ in WINDOWS:
        for step in ("first", "second"):
            shapes |= {f"window {size} {step}": (size * part, part), f"window {size} {step} bias": (part,)}
    weights = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    return Network(_tokens, embeddings, weights, 1e-6)


def _tokens(text: str) -> list[int]:
    return [crc32(word.encode()) % TOKENS for word in ("<s>", *text.split(), "</s>")]


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
