"""The report page opens anywhere: one file, no scripts, no network."""

from __future__ import annotations

from pathlib import Path

from likewise.evaluation.report import Report, bars, histogram


def test_a_page_holds_its_parts_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    page = Report("A <b>title</b>").heading("Part").text("1 < 2").code("x~ = y~")
    page.table([{"name": "a", "share": 0.5, "count": 1200}])
    page.chart(bars([{"name": "a", "share": 0.5}], x="share", y="name"), "a chart")
    page.chart(histogram([0.1, 0.9], title="score", by=["a", "b"]), "another")
    text = page.write(tmp_path / "deep" / "page.html").read_text()
    assert "A &lt;b&gt;title&lt;/b&gt;" in text
    assert '<td class="number">1,200</td>' in text
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert 'src="' not in text
