"""Charts and report pages, shared by cli, broker page and evaluation: waterfalls, timelines, bars."""

from likewise.charts.drawing import Spec, check_chart, save
from likewise.charts.report import ReportPage, bars, draw, histogram
from likewise.charts.timeline import (
    situations,
    timeline_spec,
    words_of,
    write_timeline,
)
from likewise.charts.waterfall import waterfall, waterfall_rows, waterfalls

__all__ = [
    "ReportPage",
    "Spec",
    "bars",
    "check_chart",
    "draw",
    "histogram",
    "save",
    "situations",
    "timeline_spec",
    "waterfall",
    "waterfall_rows",
    "waterfalls",
    "words_of",
    "write_timeline",
]
