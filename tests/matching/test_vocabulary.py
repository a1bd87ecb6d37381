"""Interning keeps types apart and spellings together."""

from datetime import UTC, datetime

import pytest

from likewise.events import Event
from likewise.matching.encoding import TupleVocabulary


def key_of(vocabulary, name, value):
    encoded = vocabulary.encode([Event("e", ((name, value),))])
    return int(vocabulary.key[encoded.ids[0]])


@pytest.mark.parametrize(
    ("left", "right"),
    [("Parking_Spots", "parking spot"), (1, 1.0), (0, -0.0), ("Galway", "GALWAY"), (True, True)],
)
def test_the_same_value_has_the_same_key(left, right):
    vocabulary = TupleVocabulary()
    assert key_of(vocabulary, "a", left) == key_of(vocabulary, "A", right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (0, False), (1, "1"), (True, "true"), (0, datetime(1970, 1, 1, tzinfo=UTC)), (1, 2), ("a", "b")],
)
def test_other_types_and_values_have_other_keys_in_either_order(left, right):
    for first, second in ((left, right), (right, left)):
        vocabulary = TupleVocabulary()
        assert key_of(vocabulary, "a", first) != key_of(vocabulary, "a", second)


def test_a_predicate_holds_the_key_that_events_get_later_and_got_before():
    vocabulary = TupleVocabulary()
    before = key_of(vocabulary, "room", "r1")
    assert vocabulary.hold_key("Rooms", "R1")[1] == before
    assert vocabulary.hold_key("room", "r2")[1] == key_of(vocabulary, "room", "r2")


def test_a_full_vocabulary_forgets_events_and_keeps_predicates():
    vocabulary = TupleVocabulary(capacity=100)
    _, held = vocabulary.hold_key("room", "r7")
    for start in range(0, 1000, 50):
        vocabulary.encode([Event("e", (("reading", float(start + i) + 0.5),)) for i in range(50)])
        assert len(vocabulary) <= 150
    assert vocabulary.generation > 0
    assert key_of(vocabulary, "room", "r7") == held


def test_themes_are_sets():
    vocabulary = TupleVocabulary()
    encoded = vocabulary.encode([Event("a", (), ("x", "Y")), Event("b", (), ("y", "x", "x")), Event("c", (), ("x",))])
    assert encoded.themes[0] == encoded.themes[1] != encoded.themes[2]


def test_encoding_no_events_and_events_without_tuples():
    vocabulary = TupleVocabulary()
    assert len(vocabulary.encode([])) == 0
    assert vocabulary.encode([Event("e")]).starts.tolist() == [0, 0]


def test_numbers_beyond_floats_do_not_break():
    vocabulary = TupleVocabulary()
    assert key_of(vocabulary, "n", 10**400) != key_of(vocabulary, "n", 10**401)
