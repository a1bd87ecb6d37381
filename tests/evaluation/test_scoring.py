"""The matcher's scores over a whole data set, compared with hand-computed ones and with plain NumPy."""

from __future__ import annotations

import pytest
from tests.evaluation.scorer import Choice, defined
from tests.evaluation.tiny import knowing, laboratory, tiny

from likewise.evaluation.quality.approaches import APPROACHES, Trial
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, score_all, score_each
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Subscription
from likewise.matching import MOST_EVENTS, Matcher
from likewise.semantics import Evidence
from likewise.testing import TableMeasure

EVENT = Event.of({"device": "computer", "office": "room 112"}, id="e1")
LAPTOP = Subscription("laptop", Profile((Predicate("device", Operator.EQ, "laptop", True, True),)))
BOTH = Subscription("both", Profile((*LAPTOP.body.predicates, Predicate("office", Operator.EQ, "room 112"))))


def test_a_score_is_the_geometric_mean_of_the_best_tuples() -> None:
    """Device is device (1), a laptop is a computer to 0.25, the office is exact: (1 * 0.25 * 1) ** (1 / 2)."""
    matcher = Matcher(TableMeasure({("laptop", "computer"): 0.25}), approach="approximate")
    assert score_all(matcher, [EVENT, EVENT], [LAPTOP, BOTH]).tolist() == [[0.25, 0.25], [0.5, 0.5]]
    assert score_all(matcher, [EVENT], [BOTH]).tolist() == [[0.5]], "the others were removed"


def test_alone_nobody_elses_terms_compete() -> None:
    """A tablet is nearer to the computer, which counts against the laptop if both are registered."""
    tablet = Subscription("tablet", Profile((Predicate("device", Operator.EQ, "tablet", True, True),)))
    measure = TableMeasure({("laptop", "computer"): 0.25, ("tablet", "computer"): 0.5})
    matcher = Matcher(measure, approach="approximate+contrast", temperature=0.25)
    together = score_all(matcher, [EVENT], [LAPTOP, tablet])
    assert together.tolist() == [[pytest.approx(0.25 / 2.718281828)], [0.5]]
    assert score_each(matcher, [EVENT], [LAPTOP, tablet]).tolist() == [[0.25], [0.5]]


def test_a_table_scores_as_the_measure_does() -> None:
    data = tiny().approximated(0.5)
    measure = knowing(data)
    table = Tabled(measure, TermsOfData.of(data.events, data.profiles))
    told, known = (
        score_all(Matcher(meaning, approach="approximate"), data.events, data.subscriptions)
        for meaning in (table, measure)
    )
    assert told.tolist() == known.tolist()


EVIDENCE = Evidence(encoder=False, wordnet=False)
LEARNED = EVIDENCE.model
ROWS = {
    "approximate (both)": Choice(),
    "contrast (both)": Choice(temperature=0.005),
    "default (glossary only)": Choice(True, LEARNED.temperature, LEARNED.attribute_bits),
    "default + background (glossary only)": Choice(True, LEARNED.temperature, LEARNED.attribute_bits, MOST_EVENTS),
}


@pytest.mark.parametrize("alone", [False, True], ids=["together", "alone"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_scored_as_defined(name: str, *, alone: bool) -> None:
    data = tiny()
    [approach] = [approach for approach in APPROACHES if approach.name == name]
    measure = EVIDENCE if ROWS[name].joint else knowing(data)
    expected = defined(data.events, data.profiles, measure, ROWS[name], alone=alone)
    assert Trial(data, laboratory(data)).scores(approach, alone=alone) == pytest.approx(expected, abs=1e-5)
