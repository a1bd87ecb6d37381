"""A timeline of detections: for each role when its profile was active and the event that filled it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from likewise.composite import Detection
from likewise.errors import MissingError
from likewise.events import to_datetime

__all__ = ["timeline_data", "timeline_spec", "write_timeline"]


def timeline_data(detections: Iterable[Detection], *, limit: int = 50) -> list[dict[str, Any]]:
    """One row per role of each detection, ready for a chart."""
    rows: list[dict[str, Any]] = []
    for number, detection in enumerate(detections):
        if number == limit:
            break
        for line in detection.trace:
            begin = line.activated if line.activated is not None else min(detection.start, line.time)
            end = line.terminated if line.terminated is not None else max(detection.time, line.time)
            rows.append(
                {
                    "detection": f"{number + 1}. {detection.pattern}",
                    "role": line.role,
                    "what": line.what,
                    "event": line.event or "",
                    "probability": line.probability,
                    "active": to_datetime(begin).isoformat(),
                    "terminated": to_datetime(end).isoformat(),
                    "start": to_datetime(line.start if line.start is not None else line.time).isoformat(),
                    "time": to_datetime(line.time).isoformat(),
                }
            )
    return rows


def timeline_spec(rows: list[dict[str, Any]]) -> Any:
    """The chart: a light bar while a profile was active, a dark one for the event."""
    try:
        import altair as alt
    except ImportError:
        raise MissingError("charts need altair", hint="install likewise[charts]") from None
    data: Any = {"values": rows}
    base = alt.Chart(alt.Data(**data)).encode(  # type: ignore[no-untyped-call]
        y=alt.Y("role:N", title=None, sort=None),
        tooltip=["role:N", "event:N", "what:N", "start:T", "time:T", "probability:Q"],
    )
    active = base.mark_bar(opacity=0.25, height=12).encode(
        x=alt.X("active:T", title="event time (UTC)"), x2="terminated:T"
    )
    events = base.mark_bar(height=12, minBandSize=2).encode(x="start:T", x2="time:T", color="what:N")
    points = base.mark_tick(thickness=3, height=16).encode(x="time:T", color="what:N")
    layers = alt.layer(active, events, points).properties(width=600)
    return layers.facet(row=alt.Row("detection:N", title=None, sort=None)).resolve_scale(
        x="independent", y="independent"
    )


def write_timeline(detections: Iterable[Detection], path: Path, *, limit: int = 50) -> int:
    """An HTML page that needs no network; returns how many roles it shows."""
    rows = timeline_data(detections, limit=limit)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(timeline_spec(rows).to_html(inline=True), encoding="utf-8")
    return len(rows)
