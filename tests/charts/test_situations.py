"""The demo's report: vocabularies, subscriptions, matches with explanations, and a timeline of situations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from likewise.charts import situations
from likewise.cli.commands.trying import demo
from likewise.evaluation.datasets.building import simulate

pytest.importorskip("vl_convert")


def test_the_report_has_its_sections_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_explained", lambda *_: [])
    happenings = simulate(120, break_ins=2)
    window, presence = (
        next(happening.event for happening in happenings if happening.kind == kind) for kind in ("window", "presence")
    )
    start = datetime(2026, 11, 15, tzinfo=UTC)
    events = [
        {"role": role, "id": event.id, "start": start + timedelta(minutes=at), "end": start + timedelta(minutes=at)}
        for at, (role, event) in enumerate((("w", window), ("p", presence)))
    ]
    row: dict[str, Any] = {"pattern": "intrusion", "probability": 0.9, "time": start, "start": start, "end": start}
    found = [{"subscription": "cold", "events asked for": 3, "found": 3, "precision": 1.0, "recall": 1.0}]
    facts = {"count": 120, "matches": [], "found": found, "detections": [row | {"events": events}], "seconds": 1.0}
    text = demo._report(tmp_path, "wordnet", facts | {"happenings": happenings}).read_text()
    sections = [
        "three makers",
        "power consumption",
        "<h2>Subscriptions",
        "<h2>Results",
        "<h2>Why",
        "<h2>Situations",
        "timeline",
    ]
    places = [text.index(section) for section in sections]
    assert places == sorted(places)
    assert f"w: {window.tuples[0][1]}" in text
    assert text.count("<svg") == 1


def test_situations_stay_in_order_on_one_axis() -> None:
    rows = [{"situation": f"{number}. x", "time": "2026-01-01T00:00:00+00:00", "what": "w"} for number in range(1, 12)]
    spec = situations(rows)
    assert spec["encoding"]["y"]["sort"] == [f"{number}. x" for number in range(1, 12)]
    assert spec["encoding"]["x"]["scale"] == {"type": "utc"}
