"""The embedding model, where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import MissingError
from likewise.semantics import Embedding
from likewise.semantics.measures import embedding as embedding_module


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    try:
        return Embedding()
    except MissingError as error:
        pytest.skip(str(error))


def test_meaning_counts_and_not_spelling(embedding: Embedding) -> None:
    scores = embedding.matrix(["laptop"], ["notebook computer", "lap dance", "parking garage"])[0]
    assert scores[0] > scores[1] > scores[2]


def test_a_term_is_embedded_alike_alone_and_in_a_crowd(embedding: Embedding) -> None:
    crowd = ["energy", "a rather long phrase about parking in the inner city", "x"]
    np.testing.assert_allclose(Embedding().vectors(["energy"])[0], embedding.vectors(crowd)[0], atol=1e-6)


def test_vectors_have_length_1(embedding: Embedding) -> None:
    np.testing.assert_allclose(
        np.linalg.norm(embedding.vectors(["energy", "Room 112", "?"]), axis=1), [1, 1, 0], atol=1e-5
    )


def test_a_missing_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_module, "find_spec", lambda _name: None)
    with pytest.raises(MissingError, match=r"likewise\[embedding\]"):
        Embedding()
