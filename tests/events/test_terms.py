"""Different spellings of a term have one normal form."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.events import normalise, words
from likewise.events.text.plurals import _INVARIANT, _IRREGULAR, singular


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("buses", "bus"),
        ("batteries", "battery"),
        ("people", "person"),
        ("criteria", "criterion"),
        ("analyses", "analysis"),
        ("hypotheses", "hypothesis"),
        ("viruses", "virus"),
        ("statuses", "status"),
        ("houses", "house"),
        ("causes", "cause"),
        ("uses", "use"),
        ("gases", "gas"),
        ("cases", "case"),
        ("databases", "database"),
        ("glasses", "glass"),
        ("addresses", "address"),
        ("boxes", "box"),
        ("switches", "switch"),
        ("dishes", "dish"),
        ("sizes", "size"),
        ("quizzes", "quiz"),
        ("shoes", "shoe"),
        ("tomatoes", "tomato"),
        ("videos", "video"),
        ("movies", "movie"),
        ("ties", "tie"),
        ("valves", "valve"),
        ("knives", "knife"),
        ("cameras", "camera"),
        ("devices", "device"),
        ("temperatures", "temperature"),
        ("conferences", "conference"),
        ("accidents", "accident"),
        ("ids", "id"),
        ("cafés", "café"),
    ],
)
def test_plural_becomes_singular(plural: str, expected: str) -> None:
    assert singular(plural) == expected


UNCHANGED = re.findall(
    r"\w+",
    "gas status series news address bus lens species this is was has does plus always tennis analysis virus chess "
    "physics paris texas atlas famous data wales kw gps us",
)


@pytest.mark.parametrize("word", UNCHANGED)
def test_word_that_only_looks_plural_stays(word: str) -> None:
    assert singular(word) == word


def test_every_table_entry_is_settled_after_one_step() -> None:
    assert {word for word in _IRREGULAR.values() if singular(word) != word} == set()
    assert {word for word in _INVARIANT if singular(word) != word} == set()


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("Parking_Spot", "parking spot"),
        ("parking-spots", "parking spot"),
        ("parkingSpot", "parking spot"),
        ("PARKING  SPOT ", "parking spot"),
        ("http://dbpedia.org/ontology/FootballMatch", "football match"),
        ("<http://dbpedia.org/ontology/FootballMatch>", "football match"),
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "type"),
        ("http://example.org/caf%C3%A9/", "café"),
        ("urn:ngsi-ld:ParkingSpot", "parking spot"),
        ("HTTPServers", "http server"),
        ("xPosition", "x position"),
        ("CO2Sensor", "co2 sensor"),
        ("H2O", "h2o"),
        ("kWh", "kwh"),
        ("MHz", "mhz"),
        ("pH", "ph"),
        ("km/h", "km/h"),
        ("AC/DC", "ac/dc"),
        ("-5", "-5"),
        ("10th-century BC Conflicts", "10th century bc conflict"),
        ("Aviation Accidents And Incidents In 2001", "aviation accident and incident in 2001"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("cafe\u0301", "café"),
        ("", ""),
        ("http://", "http://"),
    ],
)
def test_normal_form(term: str, expected: str) -> None:
    assert normalise(term) == expected


TRICKY = st.text(alphabet="aAesSxyoi ux_-–'/#:%1éßİ\u0130ǅ")


@given(st.one_of(st.text(), TRICKY, TRICKY.map("http://a/".__add__), st.sampled_from([*sorted(_IRREGULAR)])))
def test_normalising_twice_changes_nothing(term: str) -> None:
    assert normalise(normalise(term)) == normalise(term)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=4))
def test_spelling_style_does_not_matter(parts: list[str]) -> None:
    plain = normalise(" ".join(parts))
    assert normalise("_".join(parts)) == plain
    assert normalise("-".join(parts)) == plain
    assert normalise(" ".join(parts).upper()) == plain


def test_long_term_is_not_kept_in_memory() -> None:
    from likewise.events.text import terms

    before = terms._cached.cache_info().currsize
    assert normalise("X" * 10_000) == "x" * 10_000
    assert terms._cached.cache_info().currsize == before


def test_words_are_the_tokens_of_the_normal_form() -> None:
    assert words("increasedEnergy usages, 3rd floor (women's)") == (
        "increased",
        "energy",
        "usage",
        "3rd",
        "floor",
        "woman",
    )


@given(st.text())
def test_words_are_lower_case_and_not_empty(term: str) -> None:
    assert all(word and " " not in word for word in words(term))


@pytest.mark.parametrize("piece", ["x", "X", "xX", "_", "-", "s", "http://", "urn:", "#", "%41", "é", "'s ", "ses"])
def test_very_long_terms_are_no_trouble(piece: str) -> None:
    """Quadratic cost would take too long here."""
    for start in ("", "urn:v#", "http://a/"):
        long = start + piece * (150_000 // len(piece))
        assert normalise(normalise(long)) == normalise(long)
        assert isinstance(words(long), tuple)
