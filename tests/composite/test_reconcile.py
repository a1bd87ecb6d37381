"""A running detector takes a new list of patterns; unchanged ones continue."""

from __future__ import annotations

import pytest
from worlds import SimpleMatcher, events

from likewise.composite import Changes, Detector, reconcile
from likewise.errors import BuildError
from likewise.language import Subscription, parse

OLD = "a: {kind = A}\nb: {kind = B}\nkept: a then b\nchanged: b then a\ngone: a\nsame: 2 times a within 9 s"


def of(text: str) -> list[Subscription]:
    return parse(text)


def made(text: str = OLD) -> Detector:
    return Detector(of(text), matcher=SimpleMatcher())


def test_only_what_differs_is_touched() -> None:
    detector = made(OLD + "\nlater: a and b")
    detector.publish(events("A1")[0])
    new = OLD.replace("b then a", "b then b as c").replace("gone: a\n", "") + "\nfresh: b\nlater: a and b"
    assert reconcile(detector, of(new)) == Changes(("fresh",), ("changed",), ("gone",))
    found = [(detection.pattern, [e.id for e in detection.members]) for detection in detector.publish(events("B2")[0])]
    assert found == [("kept", ["A1", "B2"]), ("later", ["A1", "B2"]), ("fresh", ["B2"])]


def test_added_and_removed() -> None:
    detector = made()
    text = OLD.replace("kept: a then b\n", "") + "\nnew: b then b as c"
    assert reconcile(detector, of(text)) == Changes(("new",), (), ("kept",))
    assert set(detector.patterns) == {"changed", "gone", "same", "new"}


def test_a_pattern_changes_with_what_it_refers_to() -> None:
    detector = made()
    assert reconcile(detector, of(OLD.replace("{kind = B}", "{kind = C}"))).changed == ("kept", "changed")
    assert [detection.pattern for detection in detector.publish_batch(events("A1 C2"))] == ["gone", "kept"]


def test_the_same_again_changes_nothing() -> None:
    detector = made()
    assert not any(reconcile(detector, of(OLD)))
    restored = Detector.restore(detector.snapshot(), matcher=SimpleMatcher())
    assert not any(reconcile(restored, of(OLD)))


def test_one_that_cannot_work_changes_nothing() -> None:
    detector = made()
    with pytest.raises(BuildError, match="needs a window"):
        reconcile(detector, of(OLD.replace("kept: a then b", "kept: a then not b")))
    assert detector.patterns == made().patterns
