"""Text and terms are cut alike, so that a term finds the words of the corpus."""

from __future__ import annotations

import hashlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.semantics import tokens
from likewise.semantics.space.format import VERSION
from likewise.semantics.text import LONGEST_WORD, STOP_WORDS, is_word, raw_words, stem


@pytest.mark.parametrize(
    ("term", "stems"),
    [
        ("parking spaces", ("parking", "space")),
        ("parkingSpace", ("parking", "space")),
        ("parking_space", ("parking", "space")),
        ("http://example.org/vocabulary#ParkingSpace", ("parking", "space")),
        ("parked cars", ("park", "car")),
        ("the end of the street", ("end", "street")),
        ("Café", ("cafe",)),
        ("", ()),
        ("猫", ()),
    ],
)
def test_terms_are_split_and_stemmed(term: str, stems: tuple[str, ...]) -> None:
    assert tokens(term) == stems


def test_stop_words_and_lone_letters_do_not_count() -> None:
    assert not any(map(is_word, ("the", "x", "", "a" * (LONGEST_WORD + 1))))
    assert all(map(is_word, ("car", "42", "a" * LONGEST_WORD)))


def test_stop_words_are_as_the_text_is_cut() -> None:
    """A stop word that the text can never hold would be a slip of the pen."""
    assert all(raw_words(word) == [word] for word in STOP_WORDS)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=12))
def test_a_plain_word_is_found_as_the_corpus_stems_it(word: str) -> None:
    # Terms are made singular first; what that leaves is cut as the corpus is.
    found = tokens(word)
    assert len(found) <= 1
    assert all(stem(part) for part in found)


@given(st.text())
def test_any_text_is_cut_into_lower_case_words(text: str) -> None:
    assert all(word.isascii() and word.isalnum() and word == word.lower() for word in raw_words(text))


def test_threads_stem_alike() -> None:
    words = [f"parking{number}s" for number in range(500)]
    expected = [stem(word) for word in words]
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append([stem(word) for word in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_another_cut_of_text_needs_another_format_version() -> None:
    """A space built by one cut does not know the words of another: when this fails, raise VERSION, then the digest."""
    sample = "parking parked Buildings energies running houses café wind-speed readings 112 the of unhappily series"
    digest = hashlib.sha256(" ".join(tokens(sample)).encode()).hexdigest()[:12]
    assert (VERSION, digest) == (1, "30863f5e5607")
