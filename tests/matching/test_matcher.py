"""The matcher as a whole: handles, groups that come and go, and threads."""

import threading

import pytest

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
from likewise.matching.index.groups import IDLE
from likewise.testing import TableMeasure


def wish(value, *theme, name="device"):
    return Profile((Predicate(name, Operator.EQ, value, False, True),), theme)


def test_a_handle_is_never_given_again():
    matcher = Matcher(TableMeasure({}), approach="approximate")
    first = matcher.add(wish("laptop"))
    matcher.remove(first)
    second = matcher.add(wish("lamp"))
    assert second != first
    assert [m.subscription for m in matcher.match(Event.of({"device": "lamp"}))] == [second]
    with pytest.raises(BuildError, match="handle"):
        matcher.remove(first)


def test_themes_that_nobody_has_any_more_are_forgotten():
    matcher = Matcher(TableMeasure({}), approach="thematic")
    stays = matcher.add(wish("laptop", "work"), key="stays")
    for n in range(100):
        matcher.remove(matcher.add(wish(f"thing {n}", f"theme {n}")))
    assert len(matcher._groups) <= 1 + IDLE
    again = matcher.add(wish("laptop", "theme 99"), key="again")
    found = matcher.match(Event.of({"device": "laptop"}))
    assert {m.subscription for m in found} == {"stays", "again"}
    assert stays != again


def test_events_encoded_before_the_vocabulary_forgot_are_encoded_anew():
    matcher = Matcher(TableMeasure({("laptop", "computer"): 0.8}), approach="approximate")
    handle = matcher.add(wish("laptop"))
    early = matcher.encode([Event.of({"device": "computer"})])
    matcher.vocabulary.forget()
    matcher.encode([Event.of({"something": "else", "and": "more"})])
    assert matcher.score_batch(early).handle.tolist() == [handle]


@pytest.mark.parametrize("approach", ["approximate", "contrast", "exact"])
def test_one_matcher_in_two_threads(approach):
    """While one thread adds and removes, the other finds what was there all the time, with the same score."""
    matcher = Matcher(TableMeasure({("laptop", "computer"): 0.8}), approach=approach, threshold=0.1, dense=8)
    matcher.vocabulary.capacity = 50
    matcher.add(wish("computer" if approach == "exact" else "laptop"), key="stays")
    faults = []
    done = threading.Event()

    def change():
        try:
            handles = []
            for n in range(1500):
                handles.append(matcher.add(wish(f"thing {n}", name=f"name {n % 50}")))
                if len(handles) > 20:
                    matcher.remove(handles.pop(0))
        except Exception as error:
            faults.append(error)
        finally:
            done.set()

    other = threading.Thread(target=change)
    other.start()
    seen, n = set(), 0
    while not done.is_set() or n < 50:
        n += 1
        event = Event.of({"device": "computer", "reading": n, "name 7": f"said {n}"})
        seen |= {(m.subscription, round(m.score, 4)) for m in matcher.match(event)}
    other.join()
    assert faults == []
    assert seen == {("stays", 1.0 if approach == "exact" else 0.8)}
