"""The building's feed: what is truly asked for, and that its figures come from the matcher."""

from __future__ import annotations

import pytest

from likewise.errors import MissingError
from likewise.evaluation.experiments.feed import ASKED, feed, judge, wanted, wishes
from likewise.semantics import Evidence, WordNet


def test_every_wish_is_answered_by_some_events_of_every_maker() -> None:
    reports = feed(600)
    assert wishes().keys() == ASKED.keys()
    for name in ASKED:
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
