"""What a notebook shows: names at the top of the package, plain arguments, short reprs and HTML."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import likewise
from likewise import Engine, Event
from likewise.errors import BuildError
from likewise.testing import TableMeasure

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MEASURE = TableMeasure({("laptop", "notebook computer"): 0.9})


def test_headline_names_are_at_the_top() -> None:
    assert {"Engine", "Event", "LikewiseError", "Notification", "Space", "Subscription", "measure", "parse"} <= set(
        dir(likewise)
    )
    with pytest.raises(AttributeError, match="no attribute 'Engin'"):
        _ = likewise.Engin


def test_one_space_may_be_given_by_its_name() -> None:
    """The name is not taken for a list of letters."""
    with pytest.raises(likewise.LikewiseError, match="no-such-space"):
        Engine(spaces="no-such-space").subscribe("{type~ = x~}")


def test_a_theme_given_as_text_is_one_tag() -> None:
    assert Event.of({"type": "x"}, theme="energy").theme == ("energy",)


@pytest.mark.parametrize("lateness", ["5 minutes", timedelta(minutes=5), 300_000_000])
def test_lateness_and_time_are_given_as_people_do(lateness: str | timedelta | int) -> None:
    engine = Engine(lateness=lateness)
    engine.subscribe("quiet: {type = x} as a then not {type = y} within 1 minute")
    engine.publish(Event.of({"type": "x"}, id="1", time=NOON))
    assert engine.advance(NOON + timedelta(seconds=30)) == []
    assert [found.subscription for found in engine.advance(NOON + timedelta(hours=1))] == ["quiet"]


def test_a_length_of_time_that_is_none() -> None:
    with pytest.raises(BuildError, match="'soon' is not a length of time"):
        Engine(lateness="soon")


def test_help_names_what_an_engine_takes() -> None:
    assert Engine.__init__.__doc__ is not None
    for name in ("spaces", "measure", "approach", "threshold", "background", "lateness", "limits", "clock"):
        assert f"`{name}`" in Engine.__init__.__doc__


def test_reprs_are_short_and_notebooks_get_html() -> None:
    engine = Engine(measure=MEASURE, approach="approximate")
    engine.subscribe("s: {device = laptop~}\np: {device = laptop} as a then {device = laptop} as b within 1 hour")
    [single] = engine.publish(Event.of({"device": "notebook computer"}, id="e1", time=NOON))
    for number in (2, 3):
        found = engine.publish(Event.of({"device": "laptop"}, id=f"e{number}", time=NOON + timedelta(minutes=number)))
    detected = next(one for one in found if one.detection is not None)
    assert single.match is not None
    why = single.match.explain()
    assert repr(single) == "Notification('s', events=[e1], score=0.900)"
    assert repr(detected.detection) == "Detection('p', events=[e2, e3], probability=1.000)"
    assert repr(engine) == "<Engine: 1 subscription to single events, 1 pattern>"
    assert str(why).startswith("s matches e1 with 90 %\n  • device = laptop~  ↔  device: notebook computer  90 %")
    for shown in (engine, single, single.match, why, detected, detected.detection):
        assert len(repr(shown)) < 120
        assert "<" in shown._repr_html_()  # type: ignore[union-attr]


def test_a_pattern_is_explained_like_a_subscription() -> None:
    engine = Engine(measure=MEASURE, approach="approximate")
    engine.subscribe("p: {device = laptop~} as a then {device = printer} as b within 1 hour")
    event = Event.of({"device": "notebook computer"}, id="e1", time=NOON)
    engine.publish(event)
    why = engine.explain("p", event)
    assert why.matched
    assert "e1 answers a of p" in why.text()
    assert "b does not match e1" in why.text()
    assert "p: 0 detected, 1 held" in why.text()
    assert why.as_dict()["parts"]["b"]["matched"] is False
