"""Renders Vega-Lite specs without a network: self-contained HTML, PNG and SVG."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from likewise.errors import BuildError, MissingError
from likewise.files import write_whole

Spec: TypeAlias = dict[str, Any]
ENDINGS: Final = (".html", ".png", ".svg")


def check_chart(path: Path, *, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error if a chart cannot be written to this path; call it before long work.

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
    """Write a chart as .html (self-contained), .png, .svg or .json, by the ending of the path."""
    if path.suffix not in (".json", *ENDINGS):
        raise BuildError(f"charts are not written as {path.suffix or path.name!r}", hint="use .html, .png or .svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _rendered(spec, path))
    return path


def _rendered(spec: Spec, path: Path) -> str | bytes:
    if path.suffix == ".json":
        return msgspec.json.encode(spec)
    try:
        import vl_convert
    except ImportError as error:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'") from error
    if path.suffix == ".html":
        page = vl_convert.vegalite_to_html(spec, bundle=True)
        return with_head(page, _title(spec) or path.stem)
    if path.suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    return str(vl_convert.vegalite_to_svg(spec))


def with_head(page: str, title: str) -> str:
    """The page with a title, a font and a viewport for phones in its head."""
    head = (
        f'<head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body { font-family: system-ui, sans-serif; background: white; overflow-x: auto; }</style>"
    )
    return re.sub(r"<title>.*?</title>", "", page, count=1, flags=re.S).replace("<head>", head, 1)


def _title(spec: Spec) -> str | None:
    """The title of a chart, or of the first titled chart of a concatenation."""
    title = spec.get("title")
    if title is None:
        parts = spec.get("vconcat") or spec.get("hconcat") or ()
        return next((inner for part in parts if (inner := _title(part))), None)
    return str(title["text"] if isinstance(title, dict) else title)
