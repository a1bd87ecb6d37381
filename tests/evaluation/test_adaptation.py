"""The adaptation of the sentence encoder: names of a thing come nearer to each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.encoders import HashedEncoder

from likewise.errors import LikewiseError
from likewise.evaluation.learning import adaptation
from likewise.evaluation.learning.adaptation import Described, described_things, learn_adaptations
from likewise.evaluation.learning.pair import Pair
from likewise.semantics import SentenceEncoder
from likewise.semantics.evidence.encoder import WIDTH, mapped

THINGS = [
    Described((f"name {number}", f"other name {number}"), (f"description {number}",), f"field {number // 5}")
    for number in range(60)
]


@pytest.fixture(scope="module")
def learned() -> adaptation.Adaptations:
    return learn_adaptations(THINGS, HashedEncoder())


def nearness(matrix: np.ndarray, left: list[str], right: list[str]) -> float:
    encoder = HashedEncoder()
    one, other = (mapped(encoder.vectors(terms), matrix) for terms in (left, right))
    return float((one * other).sum(axis=1).mean())


def test_names_of_a_thing_are_nearer_than_names_of_two_things(learned: adaptation.Adaptations) -> None:
    """Vectors of four random numbers have little to learn from, but what they have is learned."""
    names, others = [thing.names[0] for thing in THINGS], [thing.names[1] for thing in THINGS]
    gain = [
        nearness(matrix, names, others) - nearness(matrix, names, others[7:] + others[:7])
        for matrix in (np.eye(4), learned.whole)
    ]
    assert gain[1] > gain[0]


def test_the_slope_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(3)
    left, right = (rng.normal(size=(6, 4)).astype(np.float32) for _ in range(2))
    owner = np.array([0, 0, 1, 2, 3, 4])

    def loss(change: np.ndarray) -> float:
        one, other = (mapped(rows, np.eye(4) + change) for rows in (left, right))
        near = one @ other.T / adaptation.TEMPERATURE
        near[0, 1] = near[1, 0] = -1e4  # names of one thing
        forth = near - np.log(np.exp(near).sum(axis=1, keepdims=True))
        back = near - np.log(np.exp(near).sum(axis=0, keepdims=True))
        return float(-(np.diagonal(forth) + np.diagonal(back)).mean())

    change = rng.normal(size=(4, 4)) / 10
    slope = adaptation._slope(change.astype(np.float32), left, right, owner)
    for at in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[at] = 1e-5
        assert slope[at] == pytest.approx((loss(change + step) - loss(change - step)) / 2e-5, abs=1e-2)


def test_a_pair_is_measured_with_a_map_that_has_not_seen_its_names(learned: adaptation.Adaptations) -> None:
    """Another name in one field changes the whole map and those of other folds, but not that of its own fold."""
    changed = [*THINGS[:-1], Described(("name 59", "something else entirely"), (), THINGS[-1].field)]
    again = learn_adaptations(changed, HashedEncoder())
    own = learned.encoder("name 59")
    for fold in range(adaptation.FOLDS):
        assert np.array_equal(learned.by_fold[fold], again.by_fold[fold]) == (fold == own)
    assert not np.array_equal(learned.whole, again.whole)


def test_unknown_names_are_measured_with_the_whole_map(learned: adaptation.Adaptations) -> None:
    pair = Pair("laptop", "notebook", "synonym", "WordNet", "1234")
    assert learned.encoder(pair.concept) == -1
    assert set(learned.encoders()) == {-1, *range(adaptation.FOLDS)}


def test_every_described_thing_has_names_and_descriptions() -> None:
    things = described_things()
    assert len(things) > 5000
    assert all(all(thing.names) and all(thing.descriptions) and thing.descriptions for thing in things)


def test_a_vector_does_not_depend_on_those_mapped_with_it(learned: adaptation.Adaptations) -> None:
    rows = HashedEncoder().vectors([f"term {number}" for number in range(300)])
    whole = mapped(rows, learned.whole).astype(np.float16)
    assert all(
        np.array_equal(mapped(rows[at : at + 1], learned.whole).astype(np.float16)[0], whole[at]) for at in range(300)
    )
    assert not mapped(np.zeros((2, 4)), learned.whole).any()


def test_a_file_that_is_no_map_is_refused(tmp_path: Path) -> None:
    words, small, wild = tmp_path / "words.npy", tmp_path / "small.npy", tmp_path / "wild.npy"
    words.write_text("no array")
    np.save(small, np.eye(4))
    np.save(wild, np.full((WIDTH, WIDTH), np.nan))
    for path in (words, small, wild, tmp_path / "missing.npy"):
        with pytest.raises(LikewiseError, match=r"adaptation|map of"):
            SentenceEncoder.from_file(path)


def test_a_learned_map_is_written_as_it_is_shipped(learned: adaptation.Adaptations, tmp_path: Path) -> None:
    learned.save(tmp_path / "map.npy")
    assert np.array_equal(np.load(tmp_path / "map.npy"), learned.whole.astype(np.float16))
