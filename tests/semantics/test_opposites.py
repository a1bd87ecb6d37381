"""Opposite words by WordNet: direct and indirect ones, negations, and what must not be taken for opposites."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.semantics import Opposites, WordNet
from likewise.semantics.wordnet import files
from likewise.semantics.wordnet.opposites import Word, denials, words_of


@pytest.fixture(scope="module")
def opposites(wordnet: WordNet) -> Opposites:
    return Opposites(wordnet)


@pytest.mark.parametrize(
    "pair",
    [
        "increased decreased",  # an antonym pointer between adjectives
        "increase decrease",  # nouns and verbs
        "increase decreased",  # across parts of speech
        "open closed",
        "indoor outdoor",
        "full empty",
        "arrival departure",  # derived from verbs, one of which is a manner of another
        "vacant full",  # over the adjective that it is similar to
        "vacant occupied",  # over a definition: "without an occupant"
        "on off",
        "in out",  # WordNet has no prepositions
        "online offline",  # written with a hyphen there
        "started stopped",  # one of them in a rare sense
        "unlogged logged",  # not in WordNet: over the prefix
        "unplugged plugged",  # WordNet has only `plug in` as the antonym
        "dehumidifier humidifier",  # WordNet lists neither
        "overvoltage undervoltage",  # opposite prefixes
        "uplink downlink",
        "tachycardia bradycardia",
        "odd even",
        "higher lower",
        "north south",
        "supply return",  # from the list of what WordNet lacks
        "sent received",  # the same in other forms
        "monday tuesday",
        "occupied libre",  # in another language
        "geschlossen open",
        "aumento diminuzione",
    ],
)
def test_opposites_are_found_from_both_sides(opposites: Opposites, pair: str) -> None:
    one, other = pair.split()
    assert opposites.opposite(one, other)
    assert opposites.opposite(other, one)


@pytest.mark.parametrize(
    "pair",
    [
        "open open",
        "vacant empty",
        "occupied full",
        "increased rising",
        "strength weak",  # a weak signal has a strength
        "union ion",  # no prefix, though it looks like one
        "increase crease",
        "inflammable flammable",  # a prefix that changes nothing
        "pretest posture",
        "leave go",  # both are manners of what has antonyms, but not of opposite things
        "light dimmer",  # a thing, not more dim
        "heater ice",  # nor the act of heating
        "first second",
        "first one",
        "twentieth thirty",
        "hard coal",
        "room 112",
        "chilled cold",
        "overdue outstanding",
        "monday weekend",
        "libre vacant",
        "ouvert open",
    ],
)
def test_what_only_looks_like_it_is_not_opposite(opposites: Opposites, pair: str) -> None:
    one, other = pair.split()
    assert not opposites.opposite(one, other)
    assert not opposites.opposite(other, one)


def test_a_negation_turns_a_word_round(opposites: Opposites) -> None:
    denied = opposites.stand(Word("occupied", negated=True))
    assert denied.opposes(opposites.stand(Word("occupied")))
    assert not denied.opposes(opposites.stand(Word("vacant")))
    assert not denied.opposes(denied)
    assert opposites.stand(Word("smoke", negated=True)).opposes(opposites.stand(Word("smoke")))


def test_only_the_word_after_a_negation_is_negated() -> None:
    assert words_of("not occupied parking") == (Word("occupied", negated=True), Word("parking"))
    assert words_of("non-smoking area")[0] == Word("smoking", negated=True)


def test_the_number_of_a_room_is_no_negation() -> None:
    assert words_of("room no 112") == (Word("room"), Word("112"))


def test_words_that_join_others_say_nothing() -> None:
    assert words_of("the vehicle of a town") == (Word("vehicle"), Word("town"))


@pytest.mark.parametrize(
    ("gloss", "words"),
    [
        ("not held or filled or in use; 'an unoccupied booth'", ["held", "filled"]),
        ("(of the air) free of moisture", ["moisture"]),
        ("not fully grown", []),
        ("held or filled", []),
    ],
)
def test_what_definitions_deny(gloss: str, words: list[str]) -> None:
    assert denials(gloss) == words


def test_without_wordnet_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIKEWISE_WORDNET", str(tmp_path))
    assert Opposites.load() is None


def test_wordnet_is_read_once(wordnet: WordNet) -> None:
    assert Opposites.load() is Opposites.load()
    assert files.folder().is_dir()


@pytest.mark.parametrize(
    ("one", "other"), [("yes", "no"), ("yes", "nein"), ("oui", "non"), ("true", "falsch"), ("free", "belegt")]
)
def test_answers_and_states_are_opposites_across_languages(one: str, other: str) -> None:
    known = Opposites.load()
    if known is None:
        pytest.skip("WordNet is not installed")
    assert known.opposite(one, other)
    assert not known.opposite(one, one)
    assert not known.opposite(other, other)
