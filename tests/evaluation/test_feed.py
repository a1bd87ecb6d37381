"""The building's feed: its truth, and that its figures come from the matcher."""

from __future__ import annotations

import pytest

from likewise.errors import MissingError
from likewise.evaluation.experiments.feed import (
    RELEVANT,
    WRITTEN,
    FeedPoint,
    feed,
    judge,
    judge_written,
    reciprocal_ranks,
    wanted,
    wishes,
    written,
)
from likewise.semantics import Evidence, WordNet
from likewise.testing import TableMeasure


def test_every_wish_is_answered_by_some_events_of_every_maker() -> None:
    reports = feed(600)
    assert wishes().keys() == RELEVANT.keys()
    for name in RELEVANT:
        makers = {report.event.tuples[2][0] for report in reports if wanted(name, report)}
        assert makers == {"place", "loc", "location"}


def test_wishes_are_judged_at_the_default_threshold() -> None:
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    rows = {row["wish"]: row for row in judge(feed(168), Evidence(encoder=False), together=True)}
    assert rows["stuck-lift"]["recall"] > 0.6, "elevator fault, and LiftFlt"
    assert rows["leak"]["precision"] == rows["supply-air"]["precision"] == 1
    assert 0 < float(rows["mean"]["F1"] or 0) < 1


def test_points_are_ranked_among_all_names() -> None:
    """One maker's names rank first and second, another's both first; without knowledge there is a tie."""
    points = [FeedPoint("lift", ("elevator", "LFT", "x")), FeedPoint("leak", ("water", "LK", "y"))]
    pairs = {
        ("lift", "elevator"): 0.9,
        ("lift", "water"): 0.5,
        ("leak", "water"): 0.4,
        ("lift", "LFT"): 0.8,
        ("leak", "LK"): 0.7,
    }
    assert reciprocal_ranks(points, TableMeasure(pairs)) == [(1 + 1 / 2) / 2, 1.0, 1 / 1.5]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_subscription_to_a_written_feed_has_an_answer(name: str) -> None:
    events, profiles, truth = written(name)
    ids = {event.id for event in events}
    assert len(ids) == len(events)
    assert truth.keys() == profiles.keys()
    assert all(answers and answers <= ids for answers in truth.values())


def test_what_knows_no_words_gets_nothing_from_written_feeds() -> None:
    rows = judge_written(TableMeasure({})).rows
    assert [row["feed"] for row in rows[:-4]] == [name for name in WRITTEN for _ in ("together", "alone")]
    assert [row["feed"] for row in rows[-4:]] == ["mean"] * 4
    assert all(row["recall"] == row["F1"] == 0 for row in rows)
