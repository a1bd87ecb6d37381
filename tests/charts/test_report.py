"""The report page is one file without scripts or network access."""

from __future__ import annotations

from pathlib import Path

from likewise.charts import ReportPage, bars, histogram


def test_a_page_holds_its_parts_and_needs_no_network(tmp_path: Path) -> None:
    page = ReportPage("A <b>title</b>").heading("Part").text("1 < 2").code("x~ = y~")
    page.table([{"name": "a", "share": 0.5, "count": 1200}])
    page.chart(bars([{"name": "a", "share": 0.5}], x="share", y="name"), "a chart")
    page.chart(histogram([0.1, 0.9], title="score"), "another")
    text = page.write(tmp_path / "deep" / "page.html").read_text()
    assert "A &lt;b&gt;title&lt;/b&gt;" in text
    assert '<td class="number">1,200</td>' in text
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert 'src="' not in text


def test_a_page_supports_phones_and_dark_mode() -> None:
    """It takes the screen's width and the reader's colour scheme; charts inherit the page's colours."""
    page = ReportPage("x").chart(bars([{"name": "a", "share": 0.5}], x="share", y="name"), 'said "so"')
    text = page.html()
    assert '<meta name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert 'fill="currentColor"' in text
    assert 'fill="white"' not in text
    assert 'aria-label="said &quot;so&quot;"' in text


def test_numbers_are_right_aligned_and_code_is_marked() -> None:
    page = ReportPage("x").table([{"name": "a", "count": 1200, "share": None}]).text("run `likewise <x>`")
    assert '<th>name</th><th class="number">count</th><th>share</th>' in page.html()
    assert "run <code>likewise &lt;x&gt;</code>" in page.html()
    assert "<dt>events</dt><dd>1,200</dd>" in page.facts({"events": 1200}).html()
