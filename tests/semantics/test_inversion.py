"""The inverted index of a worker: counted as by hand, the same however the articles are cut into batches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.semantics.space import inversion
from likewise.semantics.space.inversion import CONCEPT, POSTINGS, REJECTED, TALLY, WORD, Inversion, pieces

Article = tuple[str | None, str | None, str | None, str | None]


def run(articles: list[Article], *, min_words: int = 1, batch: int = 100) -> list[dict[str, object]]:
    batches = [
        pa.record_batch(
            [pa.array(column, pa.string()) for column in zip(*articles[at : at + batch], strict=True)],
            names=["title", "text", "skip", "flaw"],
        )
        for at in range(0, len(articles), batch)
    ]
    return [row for out in Inversion(min_words)(batches) for row in out.to_pylist()]


def article(title: str, text: str) -> Article:
    return title, text, None, None


def names(rows: list[dict[str, object]], kind: int) -> list[str]:
    return sorted(row["name"].decode() for row in rows if row["kind"] == kind)  # type: ignore[attr-defined]


def tallies(rows: list[dict[str, object]]) -> dict[str, int]:
    return {r["name"].decode(): np.frombuffer(r["values"], "<i8")[0] for r in rows if r["kind"] == TALLY}  # type: ignore[attr-defined,arg-type]


def postings(rows: list[dict[str, object]]) -> dict[str, Counter[int]]:
    found: dict[str, Counter[int]] = {}
    for row in rows:
        if row["kind"] == POSTINGS:
            keys = np.frombuffer(row["keys"], "<i8")  # type: ignore[arg-type]
            freq = np.frombuffer(row["values"], "<u2")  # type: ignore[arg-type]
            counter = found.setdefault(row["name"].decode(), Counter())  # type: ignore[attr-defined]
            counter.update(dict(zip(keys.tolist(), freq.tolist(), strict=True)))
    return found


def test_words_of_one_stem_are_one_term() -> None:
    rows = run([article("garage", "Parks, parked: the cars. PARK!")])
    assert {term: list(counts.values()) for term, counts in postings(rows).items()} == {"park": [3], "car": [1]}
    assert names(rows, WORD) == ["cars", "park", "parked", "parks"]
    [concept] = [row for row in rows if row["kind"] == CONCEPT]
    words, most, distinct = np.frombuffer(concept["values"], "<i8")  # type: ignore[arg-type]
    assert (words, most, distinct) == (4, 3, 2)


def test_what_does_not_count_is_said() -> None:
    rows = run(
        [
            article("good", "some words about parking"),
            article("short", "parking"),
            article("empty", ""),
            (None, "a text without a title", None, None),
            ("moved", "", "redirect", None),
            ("torn", None, None, "not JSON"),
        ],
        min_words=2,
    )
    assert names(rows, CONCEPT) == ["good"]
    assert names(rows, REJECTED) == ["", "empty", "torn"]
    assert tallies(rows) == {"words": 4, "dropped: redirect": 1, "dropped: short": 1, "rejected": 3}


def test_short_articles_leave_no_words_behind() -> None:
    rows = run([article("a", "zebra"), article("b", "parking spaces")], min_words=2)
    assert names(rows, WORD) == ["parking", "spaces"]
    assert set(postings(rows)) == {"parking", "space"}


def test_a_lone_short_article_gives_no_concept() -> None:
    assert names(run([article("a", "的 и the")]), CONCEPT) == []


def test_a_frequency_too_large_is_cut_not_wrapped() -> None:
    rows = run([article("loud", "noise " * 70_000)])
    assert list(postings(rows)["nois"].values()) == [65_535]


def test_a_huge_article_is_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inversion, "PIECE", 10)
    rows = run([article("long", "parking garage " * 100)])
    assert {term: list(counts.values()) for term, counts in postings(rows).items()} == {
        "parking": [100],
        "garag": [100],
    }


@given(st.text(alphabet="ab ", max_size=200), st.integers(1, 20))
def test_pieces_make_up_the_text(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inversion, "PIECE", size)
        assert "".join(pieces(text)) == text


WORDS = st.sampled_from(["car", "cars", "parking", "park", "the", "street", "énergie", "x", "42"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=8)


@given(TEXTS, st.integers(1, 8), st.integers(1, 30), st.integers(1, 6))
def test_batches_and_flushes_do_not_matter(texts: list[str], batch: int, flush: int, lexicon: int) -> None:
    articles = [article(f"t{at}", text) for at, text in enumerate(texts)]
    whole = run(articles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inversion, "FLUSH_WORDS", flush)
        patch.setattr(inversion, "LEXICON_WORDS", lexicon)
        cut = run(articles, batch=batch)
    assert postings(cut) == postings(whole)
    assert names(cut, CONCEPT) == names(whole, CONCEPT)
    assert tallies(cut) == tallies(whole)
    assert word_counts(cut) == word_counts(whole)


def word_counts(rows: list[dict[str, object]]) -> Counter[bytes]:
    counts: Counter[bytes] = Counter()
    for row in rows:
        if row["kind"] == WORD:
            counts[row["name"]] += int(np.frombuffer(row["values"], "<i8")[0])  # type: ignore[index,arg-type]
    return counts
