"""Charts as pages: a title, the width of the screen, no network, and UTC where they say so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from likewise.charts import check_chart, save, timeline_spec
from likewise.charts.drawing import headed
from likewise.errors import BuildError
from likewise.evaluation.charts import bars

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

ROW = {"name": "a", "share": 0.5, "part": "x"}


def test_a_chart_page_has_a_title_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    spec = bars([ROW], name="name", value="share", colour="part", title="Shares & more")
    text = save(spec, tmp_path / "chart.html").read_text(encoding="utf-8")
    assert text.count("<title>") == 1
    assert "<title>Shares &amp; more</title>" in text
    assert '<meta name="viewport"' in text
    assert not re.search(r'(?:src|href)="https?://', text)


def test_a_page_is_headed_once() -> None:
    page = headed("<html><head><title>Chart</title></head></html>", "a < b")
    assert page.count("<title>") == 1
    assert "a &lt; b" in page


@pytest.mark.parametrize(
    ("name", "endings"), [("why.pdf", (".html", ".png")), ("why", (".html",)), ("x.png", (".html",))]
)
def test_what_cannot_be_written_is_told_before_the_work(name: str, endings: tuple[str, ...]) -> None:
    with pytest.raises(BuildError, match="charts are not written as"):
        check_chart(Path(name), endings=endings)


def test_a_folder_is_no_chart(tmp_path: Path) -> None:
    (tmp_path / "x.html").mkdir()
    with pytest.raises(BuildError, match="is a folder"):
        check_chart(tmp_path / "x.html")


def test_the_timeline_shows_utc_wherever_it_is_read() -> None:
    """Vega draws times in the reader's zone unless the scale says otherwise."""
    moment = "2026-01-01T10:00:00+00:00"
    row = {"detection": "1", "role": "a", "what": "event", "event": "e", "label": "e: presence", "probability": 1.0}
    row |= dict.fromkeys(("active", "terminated", "start", "time"), moment)
    spec = json.dumps(timeline_spec([row]).to_dict())
    assert '"scale": {"type": "utc"}' in spec
    assert "(UTC)" in spec
