"""Evidence: glossary, features, weights in bits, their sum, and the fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.encoders import PlacedEncoder
from threadpoolctl import threadpool_info

from likewise.calibration import NEAREST
from likewise.errors import InputError, LikewiseError, MissingError
from likewise.evaluation.learning.logistic import fit
from likewise.semantics import Competitors, Evidence, Glossary, Model, WordNet
from likewise.semantics.evidence import (
    Features,
    PairShape,
    Sources,
    Surroundings,
    TermSide,
    features,
    probability,
)
from likewise.semantics.evidence.encoder import one_thread
from likewise.semantics.evidence.features import HEADS, Exclusion
from likewise.semantics.evidence.lexical import WordRelation
from likewise.semantics.evidence.model import MOST_BITS, WORDS_COMPARED


@pytest.fixture(scope="module")
def plain() -> Evidence:
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    return Evidence(encoder=False)


def bare() -> Evidence:
    """Evidence of the glossary and the words themselves."""
    return Evidence(encoder=False, wordnet=False)


def one(measure: Evidence, mine: str, theirs: str) -> float:
    return float(measure.matrix([mine], [theirs])[0, 0])


def row_of(measure: Evidence, mine: str, theirs: str) -> Features:
    return measure.prepare([mine]).evidence([theirs])[1][0]


def test_small_products_take_one_thread() -> None:
    """Several threads wait for each other on a busy machine; the sentence encoder asks for one in the same way."""
    before = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    with one_thread():
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}
    assert [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"] == before
    assert before


# Glossary


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("temp = temperature\ntemp = temporary", "two lines"),
        ("a1 = b1\nb1 = a1", "a circle: a1 = b1 = a1"),
        ("temperature", "not an entry"),
        ("= temperature", "not an entry"),
    ],
)
def test_a_glossary_that_clashes_or_runs_in_a_circle_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Glossary.from_text(text)


def test_the_users_glossary_comes_before_the_shipped_one() -> None:
    own = Evidence(encoder=False, wordnet=False, glossary=Glossary.from_text("qty = quality"))
    assert one(own, "quality", "qty") > 0.9
    assert one(own, "quantity", "qty") < 0.5
    assert one(bare(), "quantity", "qty") > 0.9


def test_short_forms_inside_a_phrase_are_written_out() -> None:
    assert one(bare(), "room temperature", "rm_tmp") > 0.9
    assert one(bare(), "estimated time of departure", "ETOD") > 0.9, "initials"
    assert one(bare(), "number of faults", "no fault") < 0.5, "`no` in a phrase is no number"


@pytest.mark.parametrize(
    ("label", "reading"),
    [
        ("AHU1.RaTmp", "air handling unit 1 return air temperature"),
        ("Bldg1.Flr2.Rm203b", "building 1 floor 2 room 203b"),
        ("ZnCO2", "zone carbon dioxide"),
        ("supplyAirTemp2", "supply air temperature 2"),
        ("speed km/h", "speed kilometre per hour"),
    ],
)
def test_labels_of_points_are_written_out(label: str, reading: str) -> None:
    assert reading in [found.text for found in bare().sources.reader.readings(label)]


def test_likelier_meanings_of_all_parts_are_tried_before_the_last_meaning_of_one() -> None:
    glossary = Glossary.from_text("aa = first; second; third\nbb = near; far; farther; farthest; beyond; lost")
    assert "second near" in glossary.readings("aa bb")


def test_a_number_says_which_one_and_not_another_thing(plain: Evidence) -> None:
    assert one(plain, "pump", "pump 3") > 0.9
    assert one(plain, "pump", "pump3") > 0.9
    assert one(plain, "pump 2", "pump3") < 0.1
    assert one(plain, "pump 3", "pump") < 0.2
    assert one(plain, "alarm", "alarm test 3") < 0.5
    assert one(plain, "building A", "building B") < 0.1
    assert one(plain, "building", "building A") > 0.9


@pytest.mark.parametrize(
    ("one_street", "other"),
    [
        ("Oak Avenue", "Maple Street"),
        ("Dyke Road", "Quay Street"),
        ("Paseo Pereda", "Calle Vargas"),
        ("rue de Rivoli", "rue Saint-Honoré"),
        ("Hauptstraße", "Bahnhofstraße"),
    ],
)
def test_streets_of_different_names_are_different(plain: Evidence, one_street: str, other: str) -> None:
    assert int(row_of(plain, one_street, other).opposed[0])
    assert one(plain, one_street, other) < 0.1


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("Oak Avenue", "Oak Street"),
        ("busy road", "congested street"),
        ("main road", "trunk road"),
        ("road accident", "street crash"),
        ("road", "street"),
    ],
)
def test_kinds_of_streets_are_no_names(plain: Evidence, kind: str, other: str) -> None:
    assert not int(row_of(plain, kind, other).opposed[0])


def test_entries_of_several_words_are_found_within_a_term() -> None:
    glossary = Glossary.from_text("discharge air = supply air\ntemp = temperature")
    assert glossary.readings("discharge air temp fault")[1] == "supply air temperature fault"
    assert glossary.readings("cold air") == ("cold air",)
    assert one(bare(), "supply air temperature", "dischargeAirTemp") > 0.8


# Shapes and what they say


@pytest.mark.parametrize(
    ("mine", "theirs", "shape"),
    [
        ("lift", "elevator", PairShape.WORD),
        ("lift", "moving staircase", PairShape.APART),
        ("supply air", "return air", PairShape.REPLACED),
        ("fire", "fire drill", PairShape.CONTAINED),
        ("water leak", "leak water", PairShape.SAME),
        ("temperature", "влажность", PairShape.UNLISTED_WORD),
        ("parking space", "place de stationnement", PairShape.FOREIGN),
        ("regions of Ireland", "régions de l'Irlande", PairShape.FOREIGN),
        ("Cantabria", "Autonomous Community of Cantabria", PairShape.CONTAINED),
        ("Quay Street", "Headford Road", PairShape.APART),
    ],
)
def test_the_shape_of_a_pair(plain: Evidence, mine: str, theirs: str, shape: PairShape) -> None:
    assert PairShape(int(row_of(plain, mine, theirs).shape[0])) is shape


def test_extra_words_say_what_they_do(plain: Evidence) -> None:
    said = {extra: one(plain, "alarm", f"alarm {extra}") for extra in ("reading", "cleared", "clock")}
    assert said["reading"] > 0.9 > said["clock"] > said["cleared"], "an alarm clock is an alarm in a rare sense"
    assert said["cleared"] < 0.5
    assert one(plain, "printer", "laser printer") > 0.5 > one(plain, "laser printer", "printer")


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        ("laptop", "laptop computer", True),
        ("Spain", "Kingdom of Spain", True),
        ("monitor", "computer monitor", True),
        ("in stock", "out of stock", False),
        ("lender", "borrower", False),
    ],
)
def test_what_contains_the_other_is_the_same_only_where_it_means_it(
    plain: Evidence, mine: str, theirs: str, same: bool
) -> None:
    assert (one(plain, mine, theirs) >= 0.5) == same


def test_a_rare_sense_may_be_a_kind_of_the_other(plain: Evidence) -> None:
    assert WordRelation(int(row_of(plain, "tap", "faucet").relation[0])) is WordRelation.RARE_KIND
    assert HEADS[int(row_of(plain, "air temperature", "water consumption").head[0])] == "different"


def test_what_wordnet_says_of_two_words(plain: Evidence) -> None:
    relations = {
        ("lift", "elevator"): WordRelation.RARE_SYNONYMS,
        ("truck", "lorry"): WordRelation.NARROWER,
        ("vehicle", "car"): WordRelation.FAR_NARROWER,
        ("car", "vehicle"): WordRelation.FAR_WIDER,
        ("cat", "dog"): WordRelation.COUSINS,
        ("road", "albericia"): WordRelation.ONE_UNLISTED,
        ("sardinero", "albericia"): WordRelation.BOTH_UNLISTED,
    }
    for (mine, theirs), relation in relations.items():
        assert WordRelation(int(row_of(plain, mine, theirs).relation[0])) is relation, (mine, theirs)
    nothing = row_of(bare(), "sardinero", "albericia")
    assert int(nothing.relation[0]) == WordRelation.NO_EVIDENCE, "without WordNet nobody knows what is a name"


def test_names_are_not_the_same_for_being_names(plain: Evidence) -> None:
    assert one(plain, "El Sardinero", "La Albericia") < 0.3
    assert one(plain, "Quay Street", "Headford Road") < 0.5
    assert one(plain, "Bus Eireann", "bus") < 0.5
    assert "a name" in " ".join(weight.text for weight in plain.weights("Bus Eireann", "bus"))


def test_opposites_and_codes_speak_against(plain: Evidence) -> None:
    assert one(plain, "door open", "door closed") < 0.2
    assert one(plain, "room 112", "room 113") < 0.05 < one(plain, "room 112", "chamber 112")
    assert one(plain, "desk 112c", "desk 113a") < 0.05
    assert any("exclude each other" in weight.text for weight in plain.weights("door open", "door closed"))


def test_numbers_in_words_are_numbers(plain: Evidence) -> None:
    for mine, theirs in (("first floor", "1st floor"), ("second floor", "floor 2"), ("line one", "line 1")):
        assert one(plain, mine, theirs) > 0.5, (mine, theirs)
    for mine, theirs in (("first floor", "second floor"), ("floor one", "floor two"), ("third line", "line 2")):
        assert one(plain, mine, theirs) < 0.05, (mine, theirs)
    # A second at the end is a unit of time.
    assert row_of(plain, "bits per second", "bits per minute").codes[0] == 0


def test_scripts_that_nothing_knows_keep_the_prior(plain: Evidence) -> None:
    score = one(plain, "temperature", "влажность")
    assert 0 < score < 0.5
    assert one(plain, "влажность", "влажность") == 1
    assert one(plain, "Straße", "strasse") == 1


# The sum


def test_the_weights_add_up_to_the_score(plain: Evidence) -> None:
    for mine, theirs in (("lift", "elevator"), ("fire", "fire drill"), ("supply air", "return air")):
        total = sum(weight.bits for weight in plain.weights(mine, theirs))
        assert one(plain, mine, theirs) == pytest.approx(1 / (1 + 2**-total), abs=0.02), "small weights are not listed"


def test_the_prior_comes_first_and_then_what_weighs_most(plain: Evidence) -> None:
    first, *rest = plain.weights("lift", "elevator")
    assert first.text.startswith("prior")
    assert [abs(weight.bits) for weight in rest] == sorted((abs(weight.bits) for weight in rest), reverse=True)


def test_missing_evidence_weighs_nothing() -> None:
    nothing = Features.empty(1)
    parts = dict(Model.shipped().parts(nothing))
    assert all(float(bits[0]) == 0 for name, bits in parts.items() if name != "prior")


def test_scores_are_probabilities_for_any_text(plain: Evidence) -> None:
    terms = ["", "!", "a", "112", "Ω", "temp", "no", "x" * 300, "lift", "ⅷ", "%"]
    scores = plain.matrix(terms, terms)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert (np.diag(scores) == 1).all()


CLOCK = PlacedEncoder(noon=0, dusk=90, dawn=-100, night=195, three=50, five=80)
"""Noon and dusk are 90 degrees apart, and three and five lie between them; dawn and night do not."""


def test_words_of_the_stream_that_are_nearer_speak_against_a_pair() -> None:
    lone = Evidence.of(Sources(encoder=CLOCK, wordnet=None), Model.shipped())
    words = ["dawn", "night", "three", "five", "noon", "dusk"]
    beside = lone.beside(Surroundings(words, lone.sources))
    assert lone.surroundings is None
    # Two words are nearer to dusk, two to noon: log2(1 + 2) doublings each, and the bits of a known stream.
    bits = beside.bits("noon", "dusk") - lone.bits("noon", "dusk")
    assert bits == pytest.approx(NEAREST - (0.75 + 1.0) * np.log2(3), abs=1e-4)
    assert one(beside, "noon", "dusk") < one(lone, "noon", "dusk")
    assert one(beside, "noon", "noon") == 1
    said = [str(weight) for weight in beside.weights("noon", "dusk")]
    assert any("2 words of the stream are nearer to the event's term" in text for text in said)


def test_other_words_for_what_was_asked_do_not_compete_with_it() -> None:
    """Three makers have three words for one thing: a word very near to the subscription's term is one of them."""
    encoder = PlacedEncoder(noon=0, midday=20, three=60, dusk=90)
    surroundings = Surroundings(["midday", "three"], Sources(encoder=encoder, wordnet=None))
    _, mine = surroundings.prepare(["noon"]).ranks(["dusk"])
    assert mine.tolist() == [[1.0]], "three counts, midday does not"


def test_ranks_of_some_pairs_are_those_of_all_pairs(wordnet: WordNet) -> None:
    encoder = PlacedEncoder(**{"server room": 0, "kitchen": 40, "hall": 150, "lobby": 100, "data centre": 10})
    words = ["SrvRm", "kitchen", "hall", "Kit", "lobby"]
    surroundings = Surroundings(words, Sources(encoder=encoder, wordnet=wordnet))
    prepared, events = surroundings.prepare(["server room", "hall", "Lby"]), ["Kit", "data centre", "lobby", "SrvRm"]
    whole = prepared.bits(events)
    rows, columns = np.nonzero(np.ones_like(whole))
    assert np.array_equal(prepared.bits_of(events, rows, columns), whole.ravel())


def test_a_short_form_is_ranked_by_what_it_stands_for(wordnet: WordNet) -> None:
    encoder = PlacedEncoder(**{"server room": 0, "srv rm": 170, "kitchen": 40, "hall": 150})
    surroundings = Surroundings(["SrvRm", "kitchen", "hall"], Sources(encoder=encoder, wordnet=wordnet))
    theirs, mine = surroundings.prepare(["server room"]).ranks(["SrvRm"])
    assert (theirs.tolist(), mine.tolist()) == ([[0.0]], [[0.0]])


def test_letters_of_a_word_stand_for_it(plain: Evidence) -> None:
    """No list has to know `WtrLk` or `Lby`; a word of English is not a short form."""
    assert one(plain, "water leak", "WtrLk") > 0.9
    assert one(plain, "Lby", "lobby") > 0.9
    assert one(plain, "water lock", "water leak") < 0.5
    assert one(plain, "water lamp", "WtrLk") < 0.5
    said = [str(weight) for weight in plain.weights("water leak", "WtrLk")]
    assert any("short for water leak" in text for text in said)


def test_little_speaks_against_a_name_that_says_little(plain: Evidence) -> None:
    """The attribute `type` may hold what another maker calls `incident`; `place` may not."""
    assert one(plain, "type", "incident") == pytest.approx(0.2)
    assert one(plain, "incident", "event name") == pytest.approx(0.2)
    assert one(plain, "place", "incident") < 0.1
    said = plain.weights("type", "incident")
    assert any("says little" in str(weight) for weight in said)
    assert sum(weight.bits for weight in said) == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("mine", "theirs", "related"),
    [
        ("room", "location", True),  # where
        ("type", "signal", True),  # what
        ("value", "level", True),  # a figure
        ("type", "work area", False),  # what, where
        ("location", "operator", False),  # where, who
    ],
)
def test_attributes_of_one_role_may_be_meant_by_each_other(
    plain: Evidence, mine: str, theirs: str, *, related: bool
) -> None:
    score = one(plain.for_attributes(), mine, theirs)
    assert score >= 0.5 if related else score < 0.05
    bits = max(plain.for_attributes().bits(mine, theirs), -MOST_BITS)
    assert score == pytest.approx(float(probability(np.array([bits]))[0]), abs=1e-6)


def test_a_figure_may_be_called_anything(plain: Evidence) -> None:
    """A `reading` may be the measurement itself, so roles say nothing here, and the score is that of values."""
    assert one(plain.for_attributes(), "reading", "measurement") == one(plain, "reading", "measurement")


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("measurement", "engineering unit"),
        ("measurement", "unit of measure"),
        ("measurement", "unitCode"),
        ("measurement", "uom"),
        ("reading", "plant area"),
        ("observation type", "dept"),
    ],
)
def test_what_is_measured_is_neither_a_unit_nor_a_place(plain: Evidence, mine: str, theirs: str) -> None:
    assert one(plain.for_attributes(), mine, theirs) < 0.1


def test_a_unit_without_measuring_may_be_a_place_or_a_thing(plain: Evidence) -> None:
    attributes = plain.for_attributes()
    assert one(attributes, "measurement", "engineering unit") < one(attributes, "device", "unit")


def test_a_short_form_has_the_roles_of_what_it_stands_for(plain: Evidence) -> None:
    side = TermSide([plain.sources.reader.readings(term) for term in ("dept", "department")], plain.sources)
    assert side.roles[side.owner == 0].all()
    assert side.roles[0] == side.roles[side.first[1]]


def test_roles_count_for_attributes_only(plain: Evidence) -> None:
    """As values, a room and a hall are two places."""
    assert one(plain, "room", "hall") < one(plain.for_attributes(), "room", "hall")


def test_words_of_the_events_language_are_not_counted_as_nearer_to_its_term(wordnet: WordNet) -> None:
    """`porte de garage` and `porte de cave` are near each other because both are French."""
    places = {"garage door": 0, "porte de garage": 60, "porte de cave": 65, "cellar door": -50, "porte du jardin": 90}
    sources = Sources(encoder=PlacedEncoder(**places), wordnet=wordnet)
    french = Surroundings(list(places), sources)
    theirs, mine = french.prepare(["garage door"]).ranks(["porte de garage", "cellar door"])
    assert theirs.tolist() == [[0.0], [0.0]]
    assert mine.tolist() == [[1.0], [0.0]], "the cellar door is nearer to the garage door than its name in French"
    english = Surroundings(["garage door", "porte de cave", "cellar door"], sources)
    theirs, _ = english.prepare(["garage door"]).ranks(["porte de garage"])
    assert theirs.tolist() == [[1.0]], "there a name is compared as any other term"


def test_without_encoder_and_spaces_the_stream_says_nothing(plain: Evidence) -> None:
    beside = plain.with_background(Competitors.of(["Ireland", "Spain", "Kingdom of Spain"]))
    assert one(beside, "Ireland", "Kingdom of Spain") == one(plain, "Ireland", "Kingdom of Spain")


# The file of weights


def test_the_shipped_weights_are_a_small_readable_file_with_their_origin() -> None:
    text = Model.shipped().to_text()
    assert len(text) < 16_000
    assert {"pairs", "spaces", "encoder", "seed"} <= set(json.loads(text)["provenance"])
    assert Model.from_text(text).to_text() == text


@pytest.mark.parametrize("name", ["embedding", "esa", *WORDS_COMPARED])
def test_more_of_a_thing_never_speaks_less_for_a_pair(name: str) -> None:
    for weights in Model.shipped().shapes.values():
        bits = weights.bits.get(name, (0.0,))
        assert list(bits) == sorted(bits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw.update(version=99), "99"),
        (lambda raw: raw.pop("shapes"), "shapes"),
        (lambda raw: raw["shapes"].pop("word"), "word"),
        (lambda raw: raw["shapes"]["word"]["relation"].pop("synonyms"), "relation"),
        (lambda raw: raw["shapes"]["word"]["esa"].update({"0": float("nan")}), "no number"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, change: object, message: str) -> None:
    raw = json.loads(Model.shipped().to_text())
    change(raw)  # type: ignore[operator]
    (tmp_path / "weights.json").write_text(json.dumps(raw))
    with pytest.raises(LikewiseError, match=message):
        Model.from_file(tmp_path / "weights.json")


# The fit


def test_the_fit_finds_what_speaks_for_a_pair() -> None:
    rng = np.random.default_rng(1)
    made = Features.empty(4000)
    labels = rng.random(4000) < 0.5
    made.embedding[:] = np.where(labels, rng.normal(0.7, 0.15, 4000), rng.normal(0.3, 0.15, 4000))
    made.opposed[:] = (~labels & (rng.random(4000) < 0.3)).astype(np.int8)
    model = fit(made, labels.astype(np.float64), np.ones(4000), provenance={})
    bits = model.shapes[PairShape.WORD].bits["embedding"]
    assert bits[-1] - bits[0] > 3
    assert model.shared.bits["opposed"][1] < -2
    assert ((probability(model.bits(made)) >= 0.5) == labels).mean() > 0.9


def test_calibration_makes_scores_as_often_right_as_they_say() -> None:
    rng = np.random.default_rng(2)
    bits = rng.normal(0, 2, 20_000)
    truth = rng.random(20_000) < 1 / (1 + 2 ** -(2 * bits + 1))
    found = Model.shipped().calibrated(bits, truth)
    assert found.sureness / Model.shipped().sureness == pytest.approx(2, rel=0.1)


def test_pairs_alone_and_in_a_matrix_are_the_same(plain: Evidence) -> None:
    mine, theirs = ["lift", "fire alarm", "rm temp"], ["elevator", "fire drill", "room temperature"]
    whole = plain.matrix(mine, theirs)
    assert [one(plain, a, b) for a in mine for b in theirs] == pytest.approx(whole.ravel().tolist(), abs=1e-6)


def test_sides_without_words_are_compared_too() -> None:
    sources = Sources(wordnet=None, encoder=None)
    side = TermSide([sources.reader.readings(term) for term in ("", "!")], sources)
    assert len(features(side, side, Model.shipped().word_scores)) == 2


def test_a_score_does_not_depend_on_other_forms_of_its_words_beside_it(plain: Evidence) -> None:
    """Words of one stem are the same as each other, but not to the rest: an organ is not what an organisation is."""
    mine = ["organ donor", "organisation chart", "car parking", "park bench", "universe", "university fee"]
    theirs = ["organisations list", "organs bank", "parked car", "garden bench", "universal remote", "college fee"]
    alone = [[float(plain.matrix([one], [other])[0, 0]) for other in theirs] for one in mine]
    assert plain.matrix(mine, theirs).tolist() == alone
    assert plain.matrix(mine[::-1], theirs[::-1])[::-1, ::-1].tolist() == alone


def test_a_description_has_a_shape_of_its_own(plain: Evidence) -> None:
    """Its words need not occur in the name of the thing; `the` and `of` alone do not make a description."""

    def shape(subscription: str, event: str) -> PairShape:
        side, events = (
            TermSide([plain.sources.reader.readings(term)[:1]], plain.sources) for term in (subscription, event)
        )
        return PairShape(int(features(side, events, plain.model.word_scores)[0].shape[0]))

    assert shape("how full the tank is", "reservoir level") is PairShape.DESCRIBED
    assert shape("reservoir level", "how full the tank is") is PairShape.DESCRIBED
    assert shape("how full the tank is", "tank level") is PairShape.DESCRIBED_IN_PART
    assert shape("level of the reservoir", "tank content") is PairShape.APART
    assert shape("the fan has failed", "fan failed") is not PairShape.DESCRIBED_IN_PART
    assert shape("trash can full", "container level") is not PairShape.DESCRIBED, "a can is a thing"


def test_opposite_words_say_less_in_a_description(plain: Evidence) -> None:
    side, events = (
        TermSide([plain.sources.reader.readings(term)[:1]], plain.sources)
        for term in ("the door is not closed any more", "open gate")
    )
    found = features(side, events, plain.model.word_scores)[0]
    assert Exclusion(int(found.opposed[0])) is not Exclusion.YES
