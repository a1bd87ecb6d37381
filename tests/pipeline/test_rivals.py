"""The score of a join: evidence for a pair, weighed against what else the right side has."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from likewise.pipeline import join_by_meaning, join_tables
from likewise.pipeline.joins.rivals import (
    BEHIND,
    DROPPED,
    FOLLOWED,
    MARGIN,
    RIVALS,
    SLOPE,
    AmongRivals,
    NameReader,
    scoring,
)
from likewise.semantics import Evidence, measure
from likewise.testing import TableMeasure

TOP = log2(0.9999 / 0.0001)


def bits(score: float) -> float:
    return float(np.clip(log2(score / (1 - score)), -TOP, TOP)) if 0 < score < 1 else (TOP if score else -TOP)


def by_hand(scores: list[float], same: dict[tuple[int, int], float], at: int) -> float:
    """The definition, for one left term and the right term at a place."""
    if scores[at] in (0.0, 1.0):
        return scores[at]
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    best = order[:RIVALS]
    if at not in best:
        rival = bits(scores[best[0]])
    else:
        near = [(other, same.get((min(at, other), max(at, other)), 0.0)) for other in best if other != at]
        weak = {other for other, _ in near if min(bits(scores[other]), bits(scores[at])) <= -4}
        rival = max(bits(scores[other]) + (0 if other in weak else log2(max(1 - alike, 1e-4))) for other, alike in near)
    found = bits(scores[at]) - SLOPE * max(0, rival - bits(scores[at]) + MARGIN)
    return 1 / (1 + 2**-found)


@pytest.mark.parametrize("seed", range(5))
def test_a_pair_loses_by_its_best_rival(seed: int) -> None:
    rng = np.random.default_rng(seed)
    right = [f"r{place}" for place in range(7)]
    scores = rng.choice([0.0, 0.03, 0.2, 0.5, 0.6, 0.9, 0.97, 1.0], 7).tolist()
    alike = {(first, second): float(rng.choice([0, 0.5, 0.9])) for first in range(7) for second in range(first + 1, 7)}
    table = {(term, "left"): score for term, score in zip(right, scores, strict=True)}
    table |= {(right[first], right[second]): score for (first, second), score in alike.items()}
    table |= {(right[second], right[first]): score for (first, second), score in alike.items()}
    found = AmongRivals(TableMeasure(table)).matrix(right, ["left"])[:, 0]
    kept = [float(score) for score in TableMeasure(table).matrix(right, ["left"])[:, 0]]
    expected = [by_hand(kept, alike, at) for at in range(7)]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


def test_what_a_dictionary_has_as_one_term_is_not_taken_apart() -> None:
    known = {"sewing machine", "second floor", "hard disk drive"}
    reader = NameReader(["car", "couch"], is_term=known.__contains__)

    def texts(name: str) -> list[str]:
        return [reading.text for reading in reader.readings(name)]

    assert texts("sewing machine 3") == ["sewing machine"]
    assert texts("old sewing machine") == ["old sewing machine", "sewing machine"]
    assert texts("second floor sofa") == ["second floor sofa", "sofa"]
    assert texts("hard disk drive") == ["hard disk drive"]
    assert texts("lobby machine") == ["lobby machine", "machine"]


def test_what_says_where_a_thing_is_may_be_left_out() -> None:
    """Words after a comma, in brackets or after `in` cost little; behind a comma the thing itself may stand, too."""
    reader = NameReader(["floor lamp", "mobile phone", "chair"])

    def readings(name: str) -> list[tuple[str, float]]:
        return [(reading.text, reading.cost) for reading in reader.readings(name)]

    assert readings("desk chair, room 330") == [("desk chair", 0.0), ("chair", DROPPED)]
    assert readings("chair (blue)") == [("chair", 0.0)]
    assert readings("locker with keypad") == [("locker with keypad", 0.0), ("locker", DROPPED)]
    assert readings("lobby, chair") == [("lobby", 0.0), ("chair", BEHIND)]
    assert readings("mobile phone sales team")[-1] == ("mobile phone", FOLLOWED)
    assert [text for text, _ in readings(",;()")] == [",;()"]
    assert [text for text, _ in readings("")] == [""]


def test_terms_that_mean_the_same_are_no_rivals() -> None:
    table = {("laptop", "notebook pro"): 0.8, ("notebook computer", "notebook pro"): 0.8}
    alone = AmongRivals(TableMeasure(table)).matrix(["laptop", "notebook computer"], ["notebook pro"])
    assert alone.max() < 0.5
    both = {("laptop", "notebook computer"): 0.97, ("notebook computer", "laptop"): 0.97}
    together = AmongRivals(TableMeasure(table | both)).matrix(["laptop", "notebook computer"], ["notebook pro"])
    assert together.min() == pytest.approx(0.8)


def test_codes_and_leading_words_that_the_right_has_no_use_for_are_left_out() -> None:
    """What is left out costs half a bit a word; a code costs nothing, and where the right has it, it stays."""
    table = TableMeasure({("fan", "ventilator"): 0.9, ("fan", "lobby ventilator"): 0.2})
    alone = float(AmongRivals(table).matrix(["fan"], ["ventilator"])[0, 0])
    names = ["ventilator F3", "lobby ventilator", "north lobby ventilator", "VentilatorF3", "F3"]
    [found] = AmongRivals(table).matrix(["fan"], names)
    assert found[0] == pytest.approx(alone)
    for score, dropped in zip(found[1:3], (1, 2), strict=True):
        assert bits(float(score)) == pytest.approx(bits(alone) - DROPPED * dropped, abs=1e-3)
    assert float(found[4]) == 0
    [kept] = AmongRivals(table).matrix(["fan", "lobby clock"], ["lobby ventilator"])[:1]
    assert bits(float(kept[0])) == pytest.approx(bits(0.2), abs=1e-3)
    coded = AmongRivals(table).matrix(["fan", "motor F3"], ["ventilator F3", "fan F3", "fan F9"])
    assert coded[0, :2].tolist() == [0, 0]
    assert 0.99 < float(coded[0, 2]) < 1


def test_a_single_right_term_has_no_rival_and_an_empty_side_no_score() -> None:
    ranged = AmongRivals(TableMeasure({("a", "b"): 0.5}))
    assert float(ranged.matrix(["a"], ["b"])[0, 0]) == pytest.approx(0.5)
    assert ranged.matrix([], ["b"]).shape == (0, 1)
    assert ranged.matrix(["a"], []).shape == (1, 0)


def test_only_evidence_is_weighed_among_rivals() -> None:
    table = TableMeasure({})
    assert scoring(table, rivals=True) is table
    made = Evidence(wordnet=False, encoder=False)
    assert isinstance(scoring(made, rivals=True), AmongRivals)
    assert scoring(made, rivals=False) is made


NAMES = ["espresso machine", "industrial washing machine W9", "lobby lift", "X-17"]
KINDS = ["coffee machine", "elevator", "washing machine"]


@pytest.mark.spark
def test_spark_scores_as_one_process(spark: Any) -> None:
    """One shared head word does not carry a pair, and every place gives the same scores and margins."""
    options: dict[str, Any] = {"on": ("name", "kind"), "with_margin": True}
    tables = pa.table({"name": NAMES}), pa.table({"kind": KINDS})
    frames = [spark.createDataFrame(table.to_pylist()) for table in tables]
    for limit in ({"best": 2}, {"threshold": 0.5}):
        alone = join_tables(*tables, measure=measure("evidence"), **options, **limit).to_pylist()
        found = [row.asDict() for row in join_by_meaning(*frames, **options, **limit).collect()]
        listed = [
            sorted((row["name"], row["kind"], row["relatedness"], row["margin"]) for row in rows)
            for rows in (alone, found)
        ]
        assert [row[:2] for row in listed[0]] == [row[:2] for row in listed[1]]
        for mine, theirs in zip(*listed, strict=True):
            assert mine[2:] == pytest.approx(theirs[2:], abs=1e-6)
    assert ("industrial washing machine W9", "coffee machine") not in {row[:2] for row in listed[0]}
    assert ("industrial washing machine W9", "washing machine") in {row[:2] for row in listed[0]}
