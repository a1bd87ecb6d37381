"""The charts of the Why view: a waterfall of evidence and a timeline of a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from likewise.broker.page.frame import labelled, score, tag, text
from likewise.broker.page.phrases import counted, percent, plain_reason, shortened

_LEAST: Final = 6.0
"""Minimum range of the chart in bits on each side, so that weak evidence has short bars."""


@dataclass(frozen=True, slots=True)
class WaterfallBar:
    """One bar of a waterfall; it begins where the previous bar ends."""

    words: str
    bits: float
    begin: float
    end: float
    total: bool = False


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One role of a pattern: when it was expected, when its event arrived, and a description."""

    role: str
    words: str
    opened: float
    closed: float
    at: float | None
    """Fractions of the width, 0 to 1; `at` is None if no event arrived."""
    missing: bool = False


def waterfall_bars(evidence: Sequence[Mapping[str, Any]], outcome: float) -> list[WaterfallBar]:
    """One bar per item of evidence, and a bar for the total."""
    bars, total = list[WaterfallBar](), 0.0
    for item in evidence:
        bits = float(item["weight"])
        bars.append(WaterfallBar(plain_reason(str(item["concept"]), bits), bits, total, total + bits))
        total += bits
    return [*bars, WaterfallBar(f"total: {percent(outcome)}", total, 0.0, total, total=True)]


def waterfall(evidence: Sequence[Mapping[str, Any]], outcome: float, label: str) -> None:
    """Draw the waterfall: evidence for to the right, evidence against to the left."""
    bars = waterfall_bars(evidence, outcome)
    most = max(_LEAST, *(abs(end) for bar in bars for end in (bar.begin, bar.end)))
    with labelled(tag("div", "fall", 'role="list"'), f"Evidence for {label}"):
        for bar in bars:
            low, high = sorted((bar.begin, bar.end))
            with tag("div", "fall-row total" if bar.total else "fall-row", 'role="listitem"'):
                text(bar.words)
                with tag("div", "fall-bar", 'aria-hidden="true"'):
                    left, width = 50 + 50 * low / most, max(0.6, 50 * (high - low) / most)
                    tag("i", "no" if bar.bits < 0 else "").style(f"left: {left:.1f}%; width: {width:.1f}%")
                text(f"{bar.bits:+.1f} bits", "bits")


def predicates(steps: Iterable[Mapping[str, Any]], *, why_not: str = "") -> None:
    """Show each predicate beside the value that answers it, then the evidence for attribute and value.

    `why_not` starts with the predicate that failed.
    """
    for step in steps:
        with tag("div", "card"):
            _sides(step, failed=why_not.startswith(f"{step['predicate']} "))
            for part, similarity in (("attribute", "attribute_similarity"), ("value", "value_similarity")):
                evidence = step.get(f"{part}_evidence") or ()
                if len(evidence) > 1:
                    text(f"Do the {part}s mean the same?", "small hint").style("margin-top: .6rem")
                    waterfall(evidence, float(step[similarity]), f"the {part} of {step['predicate']}")
                elif evidence:
                    text(f"The {part} is the same word.", "small hint").style("margin-top: .6rem")
            if step.get("apart"):
                text(str(step["apart"]), "hint", tag="p")


def _sides(step: Mapping[str, Any], *, failed: bool) -> None:
    answer = step["answer"]
    with tag("div", "sides"):
        with tag("div", "subscribed"):
            text("subscribed", "small hint")
            text(step["predicate"], "term", tag="span")
        with tag("div", "tie"):
            score(float(step["similarity"]), matched=not failed)
        with tag("div"):
            text("in the event", "small hint")
            published = "no matching attribute" if answer is None else f"{answer[0]}: {shortened(answer[1])}"
            text(published, "term published", tag="span")


# time


def timeline_rows(
    lines: Sequence[Mapping[str, Any]], words: Mapping[str, str]
) -> tuple[list[TimelineRow], tuple[datetime, datetime]]:
    """One row per role of a pattern, and the start and end of the time axis."""
    roles = [line for line in lines if line["what"] != "condition"]
    moments = [line[key] for line in roles for key in ("time", "start", "activated", "terminated") if line.get(key)]
    first, last = min(moments), max(moments)
    width = max((last - first).total_seconds(), 1e-6)

    def place(moment: datetime | None, default: float) -> float:
        return default if moment is None else (moment - first).total_seconds() / width

    rows = []
    for line in roles:
        missing = line["what"] in ("absence", "missing")
        at = place(line["time"], 0.0)
        opened, closed = place(line.get("activated") or line.get("start"), at), place(line.get("terminated"), at)
        description = _describe(line, words)
        at_event = None if missing else at
        rows.append(TimelineRow(str(line["role"]), description, opened, max(opened, closed), at_event, missing))
    return rows, (first, last)


def _describe(line: Mapping[str, Any], words: Mapping[str, str]) -> str:
    when = f"{line['time']:%H:%M:%S}"
    if line["what"] == "absence":
        return f"had not happened by {when}"
    if line["what"] == "missing":
        return f"was still expected at {when}"
    event = str(line.get("event") or "")
    until = f"; allowed until {line['terminated']:%H:%M:%S}" if line.get("terminated") else ""
    return f"{words.get(event, event) or 'the time'} at {when}{until}"


def timeline(lines: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> None:
    """Draw the timeline: a light bar while an event was expected, a dark mark when it arrived."""
    if not lines:
        return
    rows, (first, last) = timeline_rows(lines, words)
    with tag("div", "", 'role="list" aria-label="Timeline"'):
        for row in rows:
            with tag("div", "time-row", 'role="listitem"'):
                text(row.role, "match-name" if not row.missing else "")
                with tag("div"):
                    with tag("div", "time-track", 'aria-hidden="true"'):
                        wide = max(0.5, 100 * (row.closed - row.opened))
                        tag("span", "open no" if row.missing else "open").style(
                            f"left: {100 * row.opened:.1f}%; width: {min(wide, 100 - 100 * row.opened):.1f}%"
                        )
                        if row.at is not None:
                            tag("span", "point").style(f"left: {100 * row.at:.1f}%")
                    text(row.words, "small")
    with tag("div", "time-axis"):
        text(f"{first:%H:%M:%S}", tag="span")
        seconds = round((last - first).total_seconds())
        text(counted(seconds, "second") if seconds < 120 else counted(seconds // 60, "minute"), tag="span")
        text(f"{last:%H:%M:%S}", tag="span")
    for line in lines:
        if line["what"] == "condition":
            text(f"Condition met: {line['role']}", "small hint", tag="p")
