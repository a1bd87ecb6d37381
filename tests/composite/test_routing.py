"""Patterns joined by equality are routed by key, all others to one place."""

from __future__ import annotations

import pytest

from likewise.composite import build_plan
from likewise.composite.routing import Rendezvous, key_attributes
from likewise.events import Event
from likewise.language import parse


def route(text: str, *, buckets: int = 8) -> Rendezvous:
    (pattern,) = parse(f"p: {text}")
    return Rendezvous.of(build_plan(pattern), buckets=buckets)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("{t = a} as x then {t = b} as y within 1 minute where x.room = y.room", {"x": "room", "y": "room"}),
        (
            "{t = a} as x then {t = b} as y then {t = c} as z within 1 h where x.room = y.place and z.id = y.place",
            {"x": "room", "y": "place", "z": "id"},
        ),
        ("{t = a} as x then {t = b} as y then {t = c} as z within 1 minute where x.room = y.room", None),
        ("{t = a} as x then {t = b} as y within 1 minute where x.room = y.room + 1", None),
        ("{t = a} as x then {t = b} as y within 1 minute where x.room != y.room", None),
        ("{t = a} as x then {t = b} as y within 1 minute", None),
        ("not {t = a} for 10 seconds", None),
    ],
)
def test_a_key_must_tie_all_members(text: str, attributes: dict[str, str] | None) -> None:
    (pattern,) = parse(f"p: {text}")
    assert key_attributes(build_plan(pattern)) == attributes


def test_equal_keys_meet() -> None:
    way = route("{t = a} as x then {t = b} as y within 1 minute where x.room = y.room")
    assert way.place_of("Room_1") == way.place_of("room 1")


def test_two_common_keys_are_told_of_once() -> None:
    """Events with several values go to several places; exactly one of them reports the detection."""
    way = route("{t = a} as x then {t = b} as y within 1 minute where x.room = y.room", buckets=64)
    both = Event("1", (("room", "1"), ("room", "2"), ("room", "3")), (), 0, 0)
    pair = [("x", both), ("y", both)]
    assert sum(way.owns(place, pair) for place in range(64)) == 1
