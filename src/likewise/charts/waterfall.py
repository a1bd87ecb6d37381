"""The chart of an explanation: one bar for the similarity of each predicate, and one for the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likewise.matching import Explanation


def waterfall_rows(explanation: Explanation) -> list[dict[str, object]]:
    """Chart rows: one for each predicate, and one for the score."""
    rows: list[dict[str, object]] = []
    for number, step in enumerate(explanation.steps):
        answer = "nothing" if step.answer is None else f"{step.answer[0]}: {step.answer[1]}"
        rows.append(
            {
                "order": number,
                "predicate": step.predicate,
                "answer": answer,
                "similarity": step.similarity,
                "running": step.running,
                "verdict": "fails" if number == explanation.failing else "holds",
            }
        )
    verdict = "holds" if explanation.matched else "fails"
    total = {"order": len(rows), "predicate": "score", "answer": explanation.event, "similarity": explanation.score}
    return [*rows, total | {"running": explanation.score, "verdict": verdict}]


def waterfalls(explanations: Sequence[Explanation]) -> dict[str, Any]:
    """The spec of several waterfall charts, one below the other."""
    charts = [waterfall(explanation) for explanation in explanations]
    return charts[0] if len(charts) == 1 else {"vconcat": charts}


def waterfall(explanation: Explanation) -> dict[str, Any]:
    """The Vega-Lite spec of an explanation; `likewise.charts.save` renders it."""
    verdict = "matches" if explanation.matched else "does not match"
    colour = {"domain": ["holds", "fails"], "range": ["#4c78a8", "#e45756"]}
    across = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "score"}
    return {
        "title": f"{explanation.subscription} {verdict} {explanation.event}",
        "width": 480,
        "height": {"step": 34},
        "data": {"values": waterfall_rows(explanation)},
        "encoding": {"y": {"field": "predicate", "type": "nominal", "sort": {"field": "order"}, "title": None}},
        "layer": [
            {
                "mark": {"type": "bar", "height": 20},
                "encoding": {
                    "x": across | {"field": "similarity"},
                    "color": {"field": "verdict", "type": "nominal", "scale": colour, "title": None},
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4},
                "encoding": {"x": across | {"field": "similarity"}, "text": {"field": "answer"}},
            },
            {
                "data": {"values": [{"threshold": explanation.threshold}]},
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"x": across | {"field": "threshold"}, "y": None},
            },
        ],
    }
