"""Charts of the experiments: each is a function from data to a Vega-Lite spec; `save` draws it offline."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from likewise.errors import BuildError, MissingError
from likewise.evaluation.ranking import Curve

Spec: TypeAlias = dict[str, Any]
ENDINGS = (".html", ".png", ".svg")


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


def precision_recall(curves: Mapping[str, Curve], *, title: str) -> Spec:
    """One line for each approach, named with its best F1 and threshold, and a point there."""
    named = {f"{name}: {made.best[0]:.3f} at {made.best[1]:.3f}": made for name, made in curves.items()}
    lines = [
        {"approach": name, "recall": float(made.recall[at]), "precision": float(made.precision[at])}
        for name, made in named.items()
        for at in _thin(made)
    ]
    points = [
        {"approach": name, "recall": float(made.recall[best]), "precision": float(made.precision[best])}
        for name, made in named.items()
        if len(made.thresholds)
        for best in [int(made.f1.argmax())]
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


def check_chart(path: Path, *, endings: Sequence[str] = ENDINGS) -> None:
    """Say before the work, not after it, that a chart cannot be written so, or not at all.

    >>> check_chart(Path("why.html"))
    """
    if path.suffix not in endings:
        choice = " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)
        raise BuildError(f"charts are not written as {path.suffix or path.name!r}", hint=f"use {choice}")
    if path.is_dir():
        raise BuildError(f"{path} is a folder", hint="give the name of a file")
    if find_spec("vl_convert") is None or find_spec("altair") is None:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'")


def save(spec: Spec, path: Path) -> Path:
    """Write a chart; the ending of the name says how: .html (opens without a network), .png, .svg or .json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_bytes(msgspec.json.encode(spec))
        return path
    try:
        import vl_convert
    except ImportError as error:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'") from error
    if path.suffix == ".html":
        page = vl_convert.vegalite_to_html(spec, bundle=True)
        path.write_text(headed(page, _title(spec) or path.stem), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
    elif path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    else:
        raise BuildError(f"charts are not written as {path.suffix or path.name!r}", hint="use .html, .png or .svg")
    return path


def headed(page: str, title: str) -> str:
    """A page with a title for its tab, at the width of the screen that shows it."""
    head = (
        f'<head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body { font-family: system-ui, sans-serif; background: white; overflow-x: auto; }</style>"
    )
    return re.sub(r"<title>.*?</title>", "", page, count=1, flags=re.S).replace("<head>", head, 1)


def _title(spec: Spec) -> str | None:
    """The title of a chart, or of the first of several."""
    title = spec.get("title")
    if title is None:
        parts = spec.get("vconcat") or spec.get("hconcat") or ()
        return next((found for part in parts if (found := _title(part))), None)
    return str(title["text"] if isinstance(title, dict) else title)


def _thin(made: Curve, most: int = 400) -> list[int]:
    """At most so many places of a curve, its best among them: a chart cannot show more."""
    if not len(made.thresholds):
        return []
    step = max(1, len(made.thresholds) // most)
    return sorted({*range(0, len(made.thresholds), step), int(made.f1.argmax())})
