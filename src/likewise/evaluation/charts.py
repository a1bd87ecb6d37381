"""Charts of the experiments: each is a function from data to a Vega-Lite spec, drawn by `likewise.charts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from likewise.charts import Spec
from likewise.evaluation.quality.ranking import Curve


def heat_map(rows: Sequence[Mapping[str, object]], *, x: str, y: str, value: str, title: str, middle: float) -> Spec:
    """Cells by two sizes, blue below the baseline and red above it, as in [000 figure 7]."""
    scale = {"scheme": "blueorange", "domainMid": middle}
    return {
        "title": title,
        "width": 420,
        "height": 420,
        "data": {"values": [dict(row) for row in rows]},
        "encoding": {
            "x": {"field": x, "type": "ordinal", "title": x, "axis": {"labelAngle": 0}},
            "y": {"field": y, "type": "ordinal", "title": y, "sort": "descending"},
        },
        "layer": [
            {
                "mark": "rect",
                "encoding": {"color": {"field": value, "type": "quantitative", "scale": scale, "title": value}},
            },
            {"mark": "text", "encoding": {"text": {"field": value, "type": "quantitative", "format": ".2f"}}},
        ],
    }


def bars(rows: Sequence[Mapping[str, object]], *, name: str, value: str, colour: str, title: str) -> Spec:
    """Horizontal bars in the order of the rows, two or more for each name."""
    return {
        "title": title,
        "width": 520,
        "height": {"step": 24, "for": "position"},
        "data": {"values": [dict(row) for row in rows]},
        "mark": "bar",
        "encoding": {
            "y": {"field": name, "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}},
            "x": {"field": value, "type": "quantitative", "scale": {"domain": [0, 1]}, "title": value},
            "yOffset": {"field": colour},
            "color": {"field": colour, "type": "nominal", "title": None},
        },
    }


def lines(
    rows: Sequence[Mapping[str, object]], *, x: str, y: str, colour: str, title: str, domain: Sequence[float] = ()
) -> Spec:
    """A line with points for each colour; `domain` fixes what the vertical axis shows."""
    scale = {"scale": {"domain": list(domain)}} if domain else {}
    return {
        "title": title,
        "width": 480,
        "height": 320,
        "data": {"values": [dict(row) for row in rows]},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": x, "type": "quantitative", "title": x},
            "y": {"field": y, "type": "quantitative", "title": y, **scale},
            "color": {"field": colour, "type": "nominal", "title": None, "sort": None, "legend": {"labelLimit": 320}},
        },
    }


def precision_recall(curves: Mapping[str, Curve], *, title: str) -> Spec:
    """One line for each approach, named with its best F1 and threshold, and a point there."""
    named = {f"{name}: {curve.best[0]:.3f} at {curve.best[1]:.3f}": curve for name, curve in curves.items()}
    lines = [
        {"approach": name, "recall": float(curve.recall[at]), "precision": float(curve.precision[at])}
        for name, curve in named.items()
        for at in _thin(curve)
    ]
    points = [
        {"approach": name, "recall": float(curve.recall[best]), "precision": float(curve.precision[best])}
        for name, curve in named.items()
        if len(curve.thresholds)
        for best in [int(curve.f1.argmax())]
    ]
    encoding = {
        "x": {"field": "recall", "type": "quantitative", "scale": {"domain": [0, 1]}},
        "y": {"field": "precision", "type": "quantitative", "scale": {"domain": [0, 1]}},
        "color": {
            "field": "approach",
            "type": "nominal",
            "title": "best F1 and threshold",
            "legend": {"labelLimit": 320},
        },
    }
    return {
        "title": title,
        "width": 480,
        "height": 360,
        "layer": [
            {"data": {"values": lines}, "mark": "line", "encoding": encoding},
            {"data": {"values": points}, "mark": {"type": "point", "filled": True, "size": 90}, "encoding": encoding},
        ],
    }


def reliability(curves: Mapping[str, Sequence[Mapping[str, object]]], *, title: str) -> Spec:
    """Calibration: the share of right pairs by score, a line for each set of pairs, and the diagonal."""
    rows = [{"pairs": name, **row} for name, bins in curves.items() for row in bins]
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    encoding = {
        "x": {"field": "score", "title": "score", **axis},
        "y": {"field": "right", "title": "share that is right", **axis},
        "color": {"field": "pairs", "type": "nominal", "title": None},
    }
    ends = {"values": [{"score": 0, "right": 0}, {"score": 1, "right": 1}]}
    return {
        "title": title,
        "width": 420,
        "height": 420,
        "layer": [
            {
                "data": ends,
                "mark": {"type": "line", "strokeDash": [4, 4], "color": "gray"},
                "encoding": {name: encoding[name] for name in ("x", "y")},
            },
            {"data": {"values": rows}, "mark": {"type": "line", "point": True}, "encoding": encoding},
        ],
    }


def _thin(curve: Curve) -> list[int]:
    """About 400 places of a curve, including its best: a chart cannot show more."""
    if not len(curve.thresholds):
        return []
    step = max(1, len(curve.thresholds) // 400)
    return sorted({*range(0, len(curve.thresholds), step), int(curve.f1.argmax())})
