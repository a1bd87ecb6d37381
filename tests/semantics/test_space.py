"""A space is read as it was written, and a damaged one is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import BuildError, SpaceError
from likewise.semantics import Space, SpaceWriter, find_space, list_spaces, spaces_folder, write_space
from likewise.semantics.space.format import FILES, MANIFEST
from likewise.semantics.space.space import strongest

DOCUMENTS = [
    ("garage", "parks parks cars"),
    ("street", "the cars parked on a street, street lights"),
    ("light", "light of a street"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_space(tmp_path / "tiny", DOCUMENTS)
    return tmp_path / "tiny"


@pytest.fixture
def space(folder: Path) -> Space:
    return Space.open(folder, verify=True)


def test_counts(space: Space) -> None:
    # Stems: car, light, park, street; garage holds park and car, light holds light and street, street all four.
    assert (space.concepts, space.terms, space.postings) == (3, 4, 2 + 2 + 4)
    assert [space.title(c) for c in range(3)] == ["garage", "light", "street"]
    assert [space.term(t) for t in range(4)] == ["car", "light", "park", "street"]
    assert space.length.tolist() == [3, 2, 5]
    assert space.max_freq.tolist() == [2, 1, 2]


def test_unknown_words_are_minus_one(space: Space) -> None:
    assert space.index(["park", "zebra", "car", ""]).tolist() == [2, -1, 0, -1]


def test_rows_are_raw_and_in_the_order_asked(space: Space) -> None:
    indptr, concepts, freq = space.rows(space.index(["street", "nothing", "park"]))
    assert indptr.tolist() == [0, 2, 2, 4]
    assert concepts.tolist() == [1, 2, 0, 2]
    assert freq.tolist() == [1, 2, 2, 1]


def test_augmented_weight_is_the_papers(space: Space) -> None:
    """[000 eq 2-4]: park stands 2 of at most 2 times in garage and 1 of at most 2 times in street."""
    row = space.matrix(["parks"], weighting="augmented").toarray()[0]
    idf = log(3 / 2)
    np.testing.assert_allclose(row, [(0.5 + 0.5 * 2 / 2) * idf, 0, (0.5 + 0.5 * 1 / 2) * idf], rtol=1e-6)


def test_log_weight_damps_long_concepts(space: Space) -> None:
    row = space.matrix(["parks"], weighting="log").toarray()[0]
    idf = log(3 / 2)
    np.testing.assert_allclose(row, [(1 + log(2)) / 3**0.25 * idf, 0, 1 / 5**0.25 * idf], rtol=1e-6)


def test_unknown_weighting_is_refused(space: Space) -> None:
    with pytest.raises(BuildError, match="unknown weighting 'bm25'"):
        space.matrix(["parks"], weighting="bm25")  # type: ignore[arg-type]


def test_a_phrase_is_the_sum_of_its_words(space: Space) -> None:
    phrase, park, street = space.matrix(["parksStreet", "park", "street"]).toarray()
    np.testing.assert_allclose(phrase, park + street, rtol=1e-6)


def test_a_phrase_without_known_words_is_empty(space: Space) -> None:
    assert space.matrix(["zebra", "", "the"]).nnz == 0
    assert space.matrix([]).shape == (0, 3)


def test_tf_matrix_leaves_idf_out(space: Space) -> None:
    assert space.tf_matrix(["park"], weighting="augmented").toarray()[0].tolist() == [1.0, 0.0, 0.75]


def test_pruning_keeps_the_strongest(space: Space) -> None:
    assert space.tf_matrix(["park"], weighting="augmented", pruning=1).toarray()[0].tolist() == [1.0, 0.0, 0.0]


def test_word_counts_are_unstemmed(space: Space) -> None:
    assert space.word_counts == {"cars": 2, "light": 1, "lights": 1, "parked": 1, "parks": 2, "street": 3}
    assert sum(space.word_counts.values()) == 10


def test_the_same_content_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_space(tmp_path / "again", reversed(DOCUMENTS))
    for path in folder.iterdir():
        if path.name != MANIFEST:
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert Space.open(tmp_path / "again").id == Space.open(folder).id


def test_an_empty_space_opens(tmp_path: Path) -> None:
    write_space(tmp_path / "empty", [])
    space = Space.open(tmp_path / "empty", verify=True)
    assert (space.concepts, space.terms, space.postings) == (0, 0, 0)
    assert space.matrix(["park"]).shape == (1, 0)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), SpaceWriter(tmp_path / "half"):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_a_space_is_not_replaced_unasked(folder: Path) -> None:
    with pytest.raises(SpaceError, match="already exists"):
        write_space(folder, DOCUMENTS)
    write_space(folder, DOCUMENTS[:1], overwrite=True)
    assert Space.open(folder).concepts == 1
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_short_file_is_refused(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    with pytest.raises(SpaceError, match="bytes, expected"):
        Space.open(folder)
    (folder / name).unlink()
    with pytest.raises(SpaceError, match="lacks"):
        Space.open(folder)


@pytest.mark.parametrize("name", FILES)
def test_verify_finds_one_changed_bit(folder: Path, name: str) -> None:
    whole = bytearray((folder / name).read_bytes())
    whole[-1] ^= 1
    (folder / name).write_bytes(whole)
    with pytest.raises(SpaceError, match="checksum differs"):
        Space.open(folder, verify=True)


def test_another_version_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(SpaceError, match="format version 99, this program reads version 1") as caught:
        Space.open(folder)
    assert "space build" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"format": "likewise-space", "version": 1}', "\0"])
def test_a_broken_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    with pytest.raises(SpaceError):
        Space.open(folder)


def test_a_forged_manifest_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["counts"]["concepts"] = 4
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(SpaceError, match="was changed"):
        Space.open(folder)


def test_no_folder_is_no_space(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match="no space at"):
        Space.open(tmp_path / "nowhere")


def test_spaces_stand_on_the_shelf_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path))
    write_space(tmp_path / "tiny", DOCUMENTS)
    (tmp_path / "broken").mkdir()
    assert find_space("tiny").concepts == 3
    assert find_space(tmp_path / "tiny").concepts == 3
    with pytest.raises(SpaceError, match="there are: tiny"):
        find_space("tinny")
    (broken, error), (path, _) = list_spaces()
    assert (broken.name, path.name) == ("broken", "tiny")
    assert isinstance(error, SpaceError)


def test_the_shelf_follows_the_environment(tmp_path: Path) -> None:
    assert spaces_folder({"LIKEWISE_SPACES": "/x"}) == Path("/x")
    assert spaces_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/likewise/spaces")


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=5), st.integers(1, 4))
def test_strongest_keeps_the_largest_of_each_row(rows: list[list[int]], limit: int) -> None:
    indptr = np.cumsum([0, *map(len, rows)])
    flat = np.array([value for row in rows for value in row], np.float32)
    keep = strongest(flat, indptr, limit=limit)
    for row, (start, end) in zip(rows, pairwise(indptr), strict=True):
        assert sorted(flat[start:end][keep[start:end]], reverse=True) == sorted(row, reverse=True)[:limit]
