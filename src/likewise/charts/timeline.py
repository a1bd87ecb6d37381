"""Timelines of detections: when the profile of each role was active, and which event matched it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from likewise.charts.drawing import with_head
from likewise.composite import Detection, Line, PatternState
from likewise.errors import MissingError
from likewise.events import Event, Instant, to_datetime
from likewise.files import write_whole


def timeline_data(detections: Iterable[Detection], *, limit: int = 50) -> list[dict[str, Any]]:
    """Chart rows, one for each role of the first `limit` detections."""
    rows: list[dict[str, Any]] = []
    for number, detection in enumerate(detections):
        if number == limit:
            break
        label = f"{number + 1}. {detection.pattern}"
        lines = [line for line in detection.trace if line.what != "condition"]
        words = {event.id: words_of(event) for event in detection.members}
        rows += [_row(label, line, begin=detection.start, end=detection.time, words=words) for line in lines]
    return rows


def unfired_data(states: Iterable[PatternState]) -> list[dict[str, Any]]:
    """Chart rows for patterns without a detection: the longest partial instance of each, and what it waited for."""
    rows: list[dict[str, Any]] = []
    for state in states:
        if not state.detected and state.partial:
            begin = min(line.time if line.start is None else line.start for line in state.partial)
            end = max(line.time for line in state.partial)
            label = f"{state.name}: not detected"
            rows += [_row(label, line, begin=begin, end=end) for line in state.partial]
    return rows


def words_of(event: Event, *, most: int = 3) -> str:
    """The first values of an event, as a short text.

    >>> words_of(Event.of({"type": "presence", "room": "101"}))
    'presence, 101'
    """
    values = [str(value) for _, value in event.tuples]
    return ", ".join(values[:most]) + (", …" if len(values) > most else "")


def _row(
    label: str, line: Line, *, begin: Instant, end: Instant, words: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    event = line.event or ""
    return {
        "detection": label,
        "role": line.role,
        "what": line.what,
        "event": event,
        "label": f"{event}: {words[event]}" if event in words else event,
        "probability": line.probability,
        "active": _iso(line.activated if line.activated is not None else min(begin, line.time)),
        "terminated": _iso(line.terminated if line.terminated is not None else max(end, line.time)),
        "start": _iso(line.start if line.start is not None else line.time),
        "time": _iso(line.time),
    }


def _iso(instant: Instant) -> str:
    return to_datetime(instant).isoformat()


def timeline_spec(rows: list[dict[str, Any]]) -> Any:
    """The Altair chart on one time axis: a light bar while a profile was active, a dark bar for its event."""
    try:
        import altair as alt
    except ImportError:
        raise MissingError("charts need the `charts` extra", hint="pip install 'likewise[charts]'") from None
    data: Any = {"values": rows}
    base = alt.Chart(alt.Data(**data)).encode(  # type: ignore[no-untyped-call]  # Altair's own
        y=alt.Y("role:N", title=None, sort=None),
        tooltip=["role:N", "label:N", "what:N", "start:N", "time:N", "probability:Q"],
    )
    active = base.mark_bar(opacity=0.25, height=12).encode(
        # Without a UTC scale the browser would show local time.
        x=alt.X("active:T", title="event time (UTC)", scale=alt.Scale(type="utc")),
        x2="terminated:T",
    )
    happened = base.transform_filter("datum.what != 'absence' && datum.what != 'missing'")
    events = happened.mark_bar(height=12, minBandSize=2).encode(x="start:T", x2="time:T", color="what:N")
    points = base.mark_tick(thickness=3, height=16).encode(x="time:T", color=alt.Color("what:N", title=None))
    labels = base.mark_text(align="left", dx=6, fontSize=10).encode(x="time:T", text="label:N")
    layers = alt.layer(active, events, points, labels).properties(width=600)
    order = list(dict.fromkeys(row["detection"] for row in rows))
    header = alt.Header(labelAngle=0, labelOrient="top", labelAnchor="start", labelFontWeight="bold")
    return layers.facet(row=alt.Row("detection:N", title=None, sort=order, header=header)).resolve_scale(
        x="shared", y="independent"
    )


def situations(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec of a small timeline: a line for each situation, a point with a tooltip for each event."""
    order = list(dict.fromkeys(row["situation"] for row in rows))
    time = {"field": "time", "type": "temporal", "title": "event time (UTC)", "scale": {"type": "utc"}}
    side = {"field": "situation", "type": "nominal", "sort": order, "title": None}
    encoding = {"x": time, "y": side}
    return {
        "width": 560,
        "height": {"step": 22},
        "padding": 16,
        "data": {"values": [dict(row) for row in rows]},
        "encoding": encoding | {"tooltip": [{"field": "what"}, {"field": "time"}]},
        "layer": [
            {"mark": "line", "encoding": {"detail": {"field": "situation"}}},
            {"mark": {"type": "point", "filled": True, "size": 50}},
        ],
    }


def write_timeline(
    detections: Iterable[Detection], path: Path, *, limit: int = 50, states: Iterable[PatternState] = ()
) -> int:
    """Write a self-contained HTML page, patterns without a detection last; returns the number of roles shown."""
    rows = timeline_data(detections, limit=limit) + unfired_data(states)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = timeline_spec(rows).to_html(inline=True)
    write_whole(path, with_head(page, "Detections in event time"))
    return len(rows)
