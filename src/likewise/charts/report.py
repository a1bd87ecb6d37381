"""A report page: text, tables and charts in one HTML file without scripts or network access."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import MissingError
from likewise.files import write_whole

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5a6478; --line: #d8dee9; --strong: #35507e; --box: #f4f6fa;
  --page: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8f0; --soft: #9aa6bb; --line: #333d4f; --strong: #7d9fd6;
  --box: #1b2230; --page: #12161f; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--page); }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
td:last-child { white-space: normal; min-width: 8rem; }
th { border-bottom: 2px solid var(--strong); } .number { text-align: right; }
pre, code { background: var(--box); border-radius: 6px; font-size: .9rem; } code { padding: .1rem .3rem; }
pre { padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .8rem; } dl div { background: var(--box); border-radius: 6px;
  padding: .6rem 1rem; } dt { color: var(--soft); font-size: .9rem; } dd { margin: 0; font-size: 1.4rem; }
figure { margin: 1.2rem 0; } figcaption { font-weight: 600; } svg { max-width: 100%; min-width: 34rem; height: auto; }
"""

_AXIS = {"labelColor": "currentColor", "titleColor": "currentColor", "gridColor": "#8888", "gridOpacity": 0.3}
_AXIS |= {"domainColor": "#888", "tickColor": "#888", "labelFontSize": 12, "titleFontSize": 12, "titlePadding": 14}
_LOOK: dict[str, Any] = {
    # Text and axes take the page's colour, so that one drawing fits light and dark mode.
    "background": None,
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": {"labelColor": "currentColor", "orient": "top", "labelFontSize": 12, "columnPadding": 28},
    "range": {"category": ["#4c86c6", "#e08a1e", "#2a9d8f", "#c8553d", "#8e75cc", "#8a8f98"]},
}


class ReportPage:
    """Collects the parts of a page in order; `write` writes the file.

    >>> page = ReportPage("Findings").text("All is well.").table([{"what": "events", "count": 3}])
    >>> "<td class=\\"number\\">3</td>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> ReportPage:
        self._parts.append(f"<h2>{html.escape(text)}</h2>")
        return self

    def text(self, text: str) -> ReportPage:
        """Add a paragraph; text between backticks is shown as code."""
        parts = html.escape(text).split("`")
        marked = "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
        self._parts.append(f"<p>{marked}</p>")
        return self

    def facts(self, facts: Mapping[str, object]) -> ReportPage:
        """Add the key figures, side by side."""
        boxes = "".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(_formatted(value))}</dd></div>"
            for name, value in facts.items()
        )
        self._parts.append(f"<dl>{boxes}</dl>")
        return self

    def code(self, text: str) -> ReportPage:
        self._parts.append(f"<pre>{html.escape(text)}</pre>")
        return self

    def table(self, rows: Sequence[Mapping[str, object]]) -> ReportPage:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        numeric = {column for column in columns if any(_is_number(row.get(column)) for row in rows)}
        head = "".join(f"<th{_CLASS[column in numeric]}>{html.escape(column)}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(_cell(row.get(column)) for column in columns)}</tr>" for row in rows)
        self._parts.append(f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>')
        return self

    def chart(self, spec: Mapping[str, Any], caption: str) -> ReportPage:
        """Add a Vega-Lite chart, rendered as SVG."""
        label = html.escape(caption)
        drawing = draw(spec).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        self._parts.append(f'<figure><figcaption>{label}</figcaption><div class="wide">{drawing}</div></figure>')
        return self

    def html(self) -> str:
        title = html.escape(self._title)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(self._parts)}</body></html>\n"
        )

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.html())
        return path


def draw(spec: Mapping[str, Any]) -> str:
    """Render a spec as SVG."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'") from error
    return str(vl_convert.vegalite_to_svg({**spec, "config": _LOOK}))


def bars(rows: Iterable[Mapping[str, object]], *, x: str, y: str) -> dict[str, Any]:
    """The spec of a horizontal bar chart in the order of the rows."""
    encoding: dict[str, Any] = {
        "y": {"field": y, "type": "nominal", "sort": None, "title": None},
        "x": {"field": x, "type": "quantitative", "scale": {"domainMin": 0}},
    }
    return {"width": 560, "padding": 16, "data": {"values": list(rows)}, "mark": "bar", "encoding": encoding}


def histogram(values: Iterable[float], *, title: str) -> dict[str, Any]:
    """The spec of a histogram."""
    rows = [{"value": value} for value in values]
    encoding: dict[str, Any] = {
        "x": {"field": "value", "bin": {"maxbins": 30}, "title": title, "axis": {"labelFlush": True}},
        "y": {"aggregate": "count", "title": "how many", "axis": {"tickMinStep": 1}},
    }
    return {"width": 560, "height": 180, "padding": 16, "data": {"values": rows}, "mark": "bar", "encoding": encoding}


_CLASS = {True: ' class="number"', False: ""}


def _cell(value: object) -> str:
    return f"<td{_CLASS[_is_number(value)]}>{html.escape(_formatted(value))}</td>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _formatted(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
