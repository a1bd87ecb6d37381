"""A report page: text, tables and charts in one file that opens anywhere, without scripts or a network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import MissingError

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid #d8dee9; }
table { border-collapse: collapse; margin: .8rem 0; } th, td { padding: .3rem .8rem; text-align: left; }
th { border-bottom: 2px solid #35507e; } td { border-bottom: 1px solid #e6eaf1; } td.number { text-align: right; }
pre { background: #f4f6fa; padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; font-size: .9rem; }
figure { margin: 1rem 0; } figcaption { color: #5a6478; font-size: .9rem; } svg { max-width: 100%; height: auto; }
"""


class Report:
    """Collects the parts of a page in order; `write` makes the file.

    >>> page = Report("Findings").text("All is well.").table([{"what": "events", "count": 3}])
    >>> "<td class=\\"number\\">3</td>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> Report:
        self._parts.append(f"<h2>{html.escape(text)}</h2>")
        return self

    def text(self, text: str) -> Report:
        self._parts.append(f"<p>{html.escape(text)}</p>")
        return self

    def code(self, text: str) -> Report:
        self._parts.append(f"<pre>{html.escape(text)}</pre>")
        return self

    def table(self, rows: Sequence[Mapping[str, object]]) -> Report:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(_cell(row.get(column)) for column in columns)}</tr>" for row in rows)
        self._parts.append(f"<table><tr>{head}</tr>{body}</table>")
        return self

    def chart(self, spec: Mapping[str, Any], caption: str) -> Report:
        """A Vega-Lite chart, drawn now."""
        self._parts.append(f"<figure>{draw(spec)}<figcaption>{html.escape(caption)}</figcaption></figure>")
        return self

    def html(self) -> str:
        title = html.escape(self._title)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(self._parts)}</body></html>\n"
        )

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path


def draw(spec: Mapping[str, Any]) -> str:
    """The chart as SVG."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'") from error
    return str(vl_convert.vegalite_to_svg(dict(spec)))


def bars(rows: Iterable[Mapping[str, object]], *, x: str, y: str, color: str | None = None) -> dict[str, Any]:
    """The spec of a horizontal bar chart in the order of the rows; colours stand side by side."""
    encoding: dict[str, Any] = {
        "y": {"field": y, "type": "nominal", "sort": None, "title": None},
        "x": {"field": x, "type": "quantitative"},
    }
    if color is not None:
        encoding["color"] = {"field": color, "type": "nominal", "title": None}
        encoding["yOffset"] = {"field": color}
    return {"width": 560, "padding": 16, "data": {"values": list(rows)}, "mark": "bar", "encoding": encoding}


def histogram(values: Iterable[float], *, title: str, by: Iterable[str] | None = None) -> dict[str, Any]:
    """The spec of a histogram over [0, 1], coloured by a label where given."""
    labels = list(by) if by is not None else None
    rows = [
        {"value": value, **({} if labels is None else {"label": labels[index]})} for index, value in enumerate(values)
    ]
    encoding: dict[str, Any] = {
        "x": {"field": "value", "bin": {"step": 0.05, "extent": [0, 1]}, "title": title},
        "y": {"aggregate": "count", "title": "events"},
    }
    if labels is not None:
        encoding["color"] = {"field": "label", "type": "nominal", "title": None}
    return {"width": 560, "height": 180, "padding": 16, "data": {"values": rows}, "mark": "bar", "encoding": encoding}


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{html.escape('' if value is None else str(value))}</td>"
    return f'<td class="number">{value:,}</td>' if isinstance(value, int) else f'<td class="number">{value:.3f}</td>'
