"""Chart pages have a title and a viewport, need no network, and show times in UTC."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from likewise.charts import check_chart, save, timeline_spec
from likewise.charts.drawing import with_head
from likewise.errors import BuildError
from likewise.evaluation.charts import bars

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

ROW = {"name": "a", "share": 0.5, "part": "x"}


def test_a_chart_page_has_a_title_and_needs_no_network(tmp_path: Path) -> None:
    spec = bars([ROW], name="name", value="share", colour="part", title="Shares & more")
    text = save(spec, tmp_path / "chart.html").read_text(encoding="utf-8")
    assert text.count("<title>") == 1
    assert "<title>Shares &amp; more</title>" in text
    assert '<meta name="viewport"' in text
    assert not re.search(r'(?:src|href)="https?://', text)


def test_a_page_has_one_title() -> None:
    page = with_head("<html><head><title>Chart</title></head></html>", "a < b")
    assert page.count("<title>") == 1
    assert "a &lt; b" in page


@pytest.mark.parametrize(
    ("name", "endings"), [("why.pdf", (".html", ".png")), ("why", (".html",)), ("x.png", (".html",))]
)
def test_an_unsupported_ending_is_refused_before_the_work(name: str, endings: tuple[str, ...]) -> None:
    with pytest.raises(BuildError, match="charts are not written as"):
        check_chart(Path(name), endings=endings)


def test_a_folder_is_no_chart(tmp_path: Path) -> None:
    (tmp_path / "x.html").mkdir()
    with pytest.raises(BuildError, match="is a folder"):
        check_chart(tmp_path / "x.html")


def test_the_timeline_shows_utc_in_every_time_zone() -> None:
    """Vega draws times in the reader's zone unless the scale is UTC."""
    moment = "2026-01-01T10:00:00+00:00"
    row = {"detection": "1", "role": "a", "what": "event", "event": "e", "label": "e: presence", "probability": 1.0}
    row |= dict.fromkeys(("active", "terminated", "start", "time"), moment)
    spec = json.dumps(timeline_spec([row]).to_dict())
    assert '"scale": {"type": "utc"}' in spec
    assert "(UTC)" in spec
