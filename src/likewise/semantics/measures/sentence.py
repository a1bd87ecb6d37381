"""Sentence embeddings of terms by the multilingual encoder that evidence uses, as a measure of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.measures.embedding import Embedding


class Sentence(Embedding):
    """Cosine of multilingual sentence embeddings, negative values taken as 0. Themes are not used."""

    name = "sentence"

    def __init__(self, *, encoder: SentenceEncoder | None = None) -> None:
        self._encoder = encoder or SentenceEncoder.shared()

    def vectors(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per term; zeros for a term without a letter or digit."""
        return self._encoder.vectors([normalise(term) for term in terms])
