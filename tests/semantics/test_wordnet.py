"""WordNet's files become synsets, senses and pointers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import MissingError, SpaceError
from likewise.semantics import WordNet
from likewise.semantics.wordnet import files
from likewise.semantics.wordnet.wordnet import HYPERNYMS

Writer = Callable[[Path], Path]


def test_a_synset_has_its_words_and_gloss(small: WordNet) -> None:
    car = small.synset(1)
    assert car.words == ("motor car", "automobile")
    assert car.gloss == "a thing with four wheels"
    assert (car.part, car.offset) == ("noun", 20)
    assert car.title == "motor car, automobile (noun)"


def test_senses_come_most_common_first_with_their_counts(small: WordNet) -> None:
    assert [(sense.synset, sense.count) for sense in small.senses("motor_car")] == [(1, 7), (0, 0)]


def test_pointers_lead_to_synsets_of_all_parts_of_speech(small: WordNet) -> None:
    assert small.pointers(1, HYPERNYMS) == [0]
    assert small.pointers(1) == [0, small.at("verb", 10)]
    assert [column.tolist() for column in small.edges(["@"])] == [[1, 2], [0, 0]]


def test_an_offset_that_is_not_there_is_an_error(small: WordNet) -> None:
    with pytest.raises(KeyError):
        small.at("noun", 15)


@pytest.mark.parametrize(
    ("form", "base"), [("oxen", "ox"), ("motor cars", "motor car"), ("drives", "drive"), ("driving", "drive")]
)
def test_inflected_forms_find_their_base(small: WordNet, form: str, base: str) -> None:
    assert small.senses(form) == small.senses(base) != []


def test_an_unknown_word_has_no_sense(small: WordNet) -> None:
    assert small.senses("zzyzx") == []
    assert small.senses("") == []


def test_an_adjectives_marker_is_no_part_of_the_word(small: WordNet) -> None:
    assert small.words(small.at("adj", 10)) == ("galore",)
    assert small.senses("galore")[0].count == 2


def test_the_cache_gives_the_same_tables_and_follows_the_files(tmp_path: Path, write_wordnet: Writer) -> None:
    (tmp_path / "dict").mkdir()
    place = write_wordnet(tmp_path / "dict")
    first = files.read(place, cache=tmp_path / "cache")
    again = files.read(place, cache=tmp_path / "cache")
    assert again.words == first.words
    np.testing.assert_array_equal(again.sense_count, first.sense_count)
    (place / "index.sense").write_text("ox%1:03:00:: 00000030 1 123\n")
    assert files.read(place, cache=tmp_path / "cache").sense_count.max() == 123


def test_a_damaged_cache_is_read_anew(tmp_path: Path, write_wordnet: Writer) -> None:
    (tmp_path / "dict").mkdir()
    place = write_wordnet(tmp_path / "dict")
    files.read(place, cache=tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b"PK\x03\x04 no more")
    assert len(files.read(place, cache=tmp_path / "cache").part) == 5


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, write_wordnet: Writer) -> None:
    (tmp_path / "dict").mkdir()
    (tmp_path / "file").write_text("in the way")
    assert len(files.read(write_wordnet(tmp_path / "dict"), cache=tmp_path / "file" / "cache").part) == 5


def test_files_of_another_format_are_refused(tmp_path: Path, write_wordnet: Writer) -> None:
    (write_wordnet(tmp_path) / "data.noun").write_text("no synset at all\n")
    with pytest.raises(SpaceError, match="not in WordNet"):
        files.parse(tmp_path)


def test_a_missing_wordnet_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_WORDNET", str(tmp_path))
    with pytest.raises(MissingError, match="wordnet-base"):
        files.folder()


def test_the_installed_wordnet_is_whole(wordnet: WordNet) -> None:
    assert len(wordnet) == 117_659  # the number of synsets of WordNet 3.0
    dog = wordnet.synset(wordnet.senses("dogs")[0].synset)
    assert dog.words == ("dog", "domestic dog", "Canis familiaris")
    assert wordnet.words(wordnet.pointers(dog.id, HYPERNYMS)[0]) == ("canine", "canid")
