"""Spaces built in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.semantics import Space, build_local

DOCUMENTS = [("parking", "a place to park cars"), ("garage", "a place for cars"), ("garage", "a place for cars")]


def test_a_document_that_comes_twice_counts_once(tmp_path: Path) -> None:
    summary = build_local(DOCUMENTS, tmp_path / "space", corpus="docs", format="documents")
    assert (summary.manifest.counts["concepts"], summary.duplicates) == (2, 1)


def test_a_corpus_without_words_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no article"):
        build_local([("empty", "1 2 3")], tmp_path / "space", corpus="docs", format="documents")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.slow
def test_wordnet_has_the_same_bytes_with_and_without_spark(shelf: Path, tmp_path: Path, spark: Any) -> None:
    from likewise.pipeline import Corpus, build_space

    build_space(spark, Corpus.find("wordnet"), tmp_path / "wordnet")
    assert Space.open(tmp_path / "wordnet").id == Space.open(shelf / "wordnet").id
