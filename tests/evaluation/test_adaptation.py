"""The adaptation of the sentence encoder: names of a thing come nearer to each other."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.encoders import tiny_network

from likewise.errors import LikewiseError
from likewise.evaluation.learning import adaptation
from likewise.evaluation.learning.adaptation import (
    Adaptations,
    Described,
    contrast,
    described_things,
    learn_adaptations,
    translated_things,
)
from likewise.evaluation.learning.field_pairs import description_pairs
from likewise.evaluation.learning.pair import Pair
from likewise.semantics import SentenceEncoder
from likewise.semantics.evidence import ChangedWeights, slopes
from likewise.semantics.evidence.network import encoder_backend

THINGS = [
    Described((f"name {number}", f"other {number} name"), (f"description {number}",), f"field {number // 5}")
    for number in range(1000)
]
needs_encoder = pytest.mark.skipif(not SentenceEncoder.installed(), reason="the sentence encoder is not installed")


@pytest.fixture(scope="module")
def learned() -> Adaptations:
    return learn_adaptations(THINGS, tiny_network())


def test_names_of_a_thing_come_nearer_than_names_of_two_things(learned: Adaptations) -> None:
    names, others = [thing.names[0] for thing in THINGS], [thing.names[1] for thing in THINGS]
    gains = []
    for network in (tiny_network(), tiny_network().changed(learned.whole)):
        near = network.units(names) @ network.units(others).T
        gains.append(near.diagonal().mean() - near.mean())
    assert gains[1] > 1.05 * gains[0]


def test_slopes_are_those_of_the_loss() -> None:
    """For one number of every weight, the slope is what the loss changes by when that number changes."""
    network = tiny_network()
    owner = np.array([0, 0, 1, 2])
    texts = [[1, 5, 9], [2], [3, 4], [7, 8, 20, 30, 31], [5, 9], [40], [6, 7], [11, 12, 13]]

    def loss(name: str, at: tuple[int, ...], step: float) -> float:
        changed = {other: weight.copy() for other, weight in network.weights.items()}
        changed[name][at] += step
        return contrast(network.with_weights(changed).run(texts).units, owner)[0]

    layers = network.run(texts)
    found = slopes(layers, network.weights, contrast(layers.units, owner)[1])
    assert found.keys() == network.weights.keys()
    rng = np.random.default_rng(2)
    moved = 0
    for name, weight in network.weights.items():
        for _ in range(4):
            at = tuple(int(rng.integers(size)) for size in weight.shape)
            expected = (loss(name, at, 1e-6) - loss(name, at, -1e-6)) / 2e-6
            assert found[name][at] == pytest.approx(expected, abs=1e-6), name
            moved += expected != 0
    assert moved > len(network.weights)


def test_names_of_one_thing_do_not_compete() -> None:
    units = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert contrast(units, np.array([0, 0]))[0] == pytest.approx(0.0, abs=1e-6)
    assert contrast(units, np.array([0, 1]))[0] == pytest.approx(np.log(2))


def test_a_pair_is_measured_with_weights_that_have_not_seen_its_names(learned: Adaptations) -> None:
    """Another name in one field changes the whole and the other folds, but not its own fold."""
    changed = [*THINGS[:-1], Described(("name 999", "something else entirely"), (), THINGS[-1].field)]
    again = learn_adaptations(changed, tiny_network())
    own = learned.encoder("name 999")
    for fold in range(adaptation.FOLDS):
        assert (learned.by_fold[fold].version == again.by_fold[fold].version) == (fold == own)
    assert learned.whole.version != again.whole.version


@needs_encoder
def test_unknown_names_are_measured_with_the_whole_adaptation(learned: Adaptations) -> None:
    pair = Pair("laptop", "notebook", "synonym", "WordNet", "1234")
    assert learned.encoder(pair.concept) == -1
    assert set(learned.encoders()) == {-1, *range(adaptation.FOLDS)}


@needs_encoder
def test_a_description_is_confused_with_a_name_of_another_thing_of_its_field(learned: Adaptations) -> None:
    things = THINGS[:10]
    found = learned.confused(things)
    for thing in things:
        other = found[thing.descriptions[0]]
        owner = next(each for each in things if other in each.names)
        assert owner is not thing
        assert owner.field == thing.field


def test_pairs_of_confused_things_are_made_for_descriptions() -> None:
    things = [Described(("pump",), ("moves water",)), Described(("fan",), ("moves air",))]
    pairs = list(description_pairs(things, random.Random(1), confused={"moves air": "pump"}))
    [pair] = [pair for pair in pairs if pair.kind == "nearest beside"]
    assert {pair.subscription, pair.event} == {"moves air", "pump"}
    assert pair.label < 0.5


def test_every_described_thing_has_names_and_descriptions() -> None:
    things = described_things()
    assert len(things) > 10_000
    assert all(all(thing.names) and all(thing.descriptions) and thing.descriptions for thing in things)


def test_every_translated_thing_has_a_name_in_five_languages() -> None:
    things = translated_things()
    assert len(things) > 1000
    assert all(all(thing.names) and len(thing.names) >= 5 for thing in things)


def test_a_vector_does_not_depend_on_those_computed_with_it(learned: Adaptations) -> None:
    network = tiny_network().changed(learned.whole)
    terms = [f"term {number} of {number % 7}" for number in range(200)]
    whole = network.units(terms).astype(np.float16)
    assert all(np.array_equal(network.units([term]).astype(np.float16)[0], whole[at]) for at, term in enumerate(terms))


@needs_encoder
def test_without_changes_the_layers_give_the_vectors_of_the_package() -> None:
    from likewise.semantics.evidence import Network

    terms = ["supply fan failure", "CO2", "wie warm das Wasser ist", "a", "how full the tank is, in percent"]
    ours, theirs = Network.shipped().units(terms), encoder_backend().encode(terms)
    assert np.einsum("ij,ij->i", ours, theirs) == pytest.approx(np.ones(len(terms)), abs=1e-5)


@needs_encoder
def test_a_file_that_is_no_adaptation_is_refused(tmp_path: Path) -> None:
    words, arrays, small = tmp_path / "words.npz", tmp_path / "arrays.npz", tmp_path / "small.npz"
    words.write_text("no arrays")
    np.savez(arrays, first=np.eye(4))
    network = tiny_network()
    ChangedWeights.of(network.weights, network.weights).save(small)
    for path in (words, arrays, small, tmp_path / "missing.npz"):
        with pytest.raises(LikewiseError, match="adaptation"):
            SentenceEncoder.from_file(path)


def test_a_learned_adaptation_is_read_as_it_was_written(learned: Adaptations, tmp_path: Path) -> None:
    learned.save(tmp_path / "adaptation.npz")
    assert ChangedWeights.load(tmp_path / "adaptation.npz").version == learned.whole.version
