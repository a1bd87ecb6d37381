"""Other names of things: how sets of names are read, and what they change in scores."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from likewise.errors import InputError, MissingError
from likewise.evaluation.learning.hand_pairs import OTHER_FIELDS, TRADES, read_hand_pairs
from likewise.events import normalise
from likewise.semantics import Evidence, Glossary, OtherNames, WordNet, lists_version
from likewise.semantics.evidence import glossary
from likewise.semantics.evidence.terms import content_words


def read(names: OtherNames, term: str) -> list[tuple[str, bool]]:
    return [(" ".join(words), sure) for words, sure in names.readings(content_words(normalise(term)))]


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    try:
        return Evidence(encoder=False, wordnet=WordNet.load())
    except MissingError as error:
        pytest.skip(error.message)


def test_the_longest_name_counts_and_the_order_of_its_words_does_not() -> None:
    names = OtherNames.from_text("smoke detector; detector of smoke\nalarm; siren\nheat detector alarm; heat siren")
    assert read(names, "heat detector alarm") == [("heat siren", True)]
    assert read(names, "smoke detectors siren") == [("smoke detector alarm", True)]


def test_an_unsure_name_is_replaced_after_sure_ones_and_never_makes_a_longer_term_longer() -> None:
    names = OtherNames.from_text("heart rate; pulse?\nfan; ventilator?")
    assert read(names, "pulse") == [("heart rate", False)]
    assert read(names, "pulse generator") == []
    assert read(names, "bathroom ventilator") == [("bathroom fan", False)]


@pytest.mark.parametrize("name", ["over current", "in use", "too hot", "under test"])
def test_a_name_is_ignored_if_its_small_words_say_something(name: str) -> None:
    """Without them, `over current` would be another name of any current."""
    names = OtherNames.from_text(f"something; {name}")
    assert read(names, name.rsplit(maxsplit=1)[-1]) == []


@pytest.mark.parametrize("text", ["a; ", "; b", ";"])
def test_a_line_that_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"names\.txt:2: not a set of names"):
        OtherNames.from_text(f"# comment\n{text}", source="names.txt")


def test_the_shipped_names_are_read_as_terms_are() -> None:
    """A shipped name gets a reading, unless it is the shortest of its set or its small words say something."""
    names = OtherNames.shipped()
    assert len(names.sets) > 20_000
    sure = [name for found in names.sets[::20] for name, sure in found[1:] if sure]
    assert sum(bool(read(names, name)) for name in sure) > 0.7 * len(sure)


def test_no_shipped_set_repeats_a_name() -> None:
    for found in OtherNames.shipped().sets:
        ordered = sorted(name for name, _ in found)
        assert not [name for name, other in pairwise(ordered) if name == other]


def test_other_names_mean_the_same_alone_and_within_terms(evidence: Evidence) -> None:
    for subscribed, published in (("power cut", "blackout"), ("consignment delayed", "shipment delayed")):
        assert evidence.pairwise([subscribed], [published])[0] > 0.9
    texts = [weight.text for weight in evidence.weights("blackout", "mains failure")]
    assert any("another name of" in text for text in texts)


def test_things_are_told_apart_by_their_sets() -> None:
    names = OtherNames.from_text("petrol; gasoline; gas?\nnatural gas; gas?\ndiesel\nfuel oil; burner oil")
    petrol, gasoline, gas, diesel = (names.things([word]) for word in ("petrol", "gasolin", "gas", "diesel"))
    assert petrol == gasoline
    assert len(gas) == 2
    assert petrol < gas
    assert diesel
    assert diesel.isdisjoint(petrol)
    assert names.things(["burner", "oil"]) == names.things(["fuel", "oil"])
    assert names.things(["oil"]) == frozenset()


def test_sets_that_share_a_sure_name_are_one_thing() -> None:
    sure = OtherNames.from_text("traffic jam; congestion\ncongestion; queue of cars\nroad works")
    assert sure.things(["jam", "traffic"]) == sure.things(["car", "queue"])
    unsure = OtherNames.from_text("traffic jam; congestion?\ncongestion?; stuffy nose\nroad works")
    assert unsure.things(["jam", "traffic"]).isdisjoint(unsure.things(["nose", "stuffi"]))


def test_unread_names_still_tell_things_apart() -> None:
    names = OtherNames.from_text("petrol; gasoline\ndiesel")
    assert names.unread().readings(["gasoline"]) == []
    assert names.readings(["gasoline"])
    assert names.unread().things(["gasolin"]) == names.things(["petrol"])


@pytest.mark.parametrize(
    ("subscribed", "published", "apart"),
    [
        ("natural gas", "petrol", True),
        ("petrol price", "diesel price", True),  # the words that differ are names of different things
        ("blood pressure", "blood pressure cuff", True),  # an extra word makes another thing
        ("printer", "laser printer", False),  # an extra word names a kind
        ("petrol", "gasoline", False),
        ("gas", "natural gas", False),
        ("vehicle", "car", False),  # WordNet lists a car as a kind of vehicle
    ],
)
def test_names_of_different_things_count_against_a_pair(
    evidence: Evidence, subscribed: str, published: str, apart: bool
) -> None:
    texts = [weight.text for weight in evidence.weights(subscribed, published)]
    assert ("names of different things" in texts) == apart


@pytest.mark.parametrize("list_of_pairs", ["pairs", OTHER_FIELDS, TRADES])
def test_every_pair_has_evidence_to_show(evidence: Evidence, list_of_pairs: str) -> None:
    """Also where a skipped reading has as few bits as the counted ones: `vacant` and `occupied`."""
    for pair in read_hand_pairs(list_of_pairs):
        first = evidence.weights(pair.subscription, pair.event)[0].text
        assert first.startswith(("prior", "the same term")), pair


def test_opposites_stay_opposites_by_any_other_name(evidence: Evidence) -> None:
    """`inpatient` is another name of an admitted patient, and says nothing of the opposite."""
    assert evidence.pairwise(["patient admitted"], ["patient discharged"])[0] < 0.1


def test_a_glossary_of_ones_own_replaces_other_names() -> None:
    own = Evidence(encoder=False, wordnet=False, glossary=Glossary.from_text("blackout = loss of consciousness"))
    assert own.pairwise(["power cut"], ["blackout"])[0] < 0.5 < own.pairwise(["power cut"], ["mains failure"])[0]
    assert own.pairwise(["loss of consciousness"], ["blackout"])[0] > 0.5


def test_the_letter_a_may_be_a_code(evidence: Evidence) -> None:
    assert evidence.pairwise(["phase A current"], ["phase B current"])[0] < 0.2


def test_another_name_does_not_hide_a_word_that_turns_a_term(evidence: Evidence) -> None:
    """`set temperature` is another name of a temperature setpoint, which is still no temperature."""
    assert evidence.pairwise(["temperature"], ["temperature setpoint"])[0] < 0.5
    assert evidence.pairwise(["set temperature"], ["temperature setpoint"])[0] > 0.9


def test_the_version_of_the_lists_changes_with_every_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of other lists must not be continued."""
    for name in ("evidence", "words"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "list.txt").write_text("a\n")
    monkeypatch.setattr(glossary, "files", lambda _: tmp_path)
    versions = [lists_version.__wrapped__()]
    for name in ("evidence", "words"):
        (tmp_path / name / "list.txt").write_text("b\n")
        versions.append(lists_version.__wrapped__())
    assert len(set(versions)) == 3


def test_names_of_things_are_recognised_in_shortened_words(evidence: Evidence) -> None:
    assert evidence.pairwise(["access denied"], ["acc den"])[0] > 0.7
    assert evidence.pairwise(["access granted"], ["acc den"])[0] < 0.5


def test_a_short_word_is_a_name_only_as_it_is_written() -> None:
    names = OtherNames.from_text("temperature; temp\nhumidity; hum")
    assert names.readings(["temp"])
    assert not names.readings(["temping"])


def test_a_short_form_that_is_spelled_out_does_not_count_as_a_word(evidence: Evidence) -> None:
    """`tmp` is near to nothing by its letters; only what it stands for is compared, unless both say `tmp`."""
    readings = evidence.sources.reader.readings("rm tmp")
    assert readings[0].shorthand
    assert not any(reading.shorthand for reading in readings[1:])
    assert evidence.pairwise(["room temperature"], ["rm tmp"])[0] > 0.9
    assert evidence.pairwise(["tmp"], ["rm tmp"])[0] > 0.5
