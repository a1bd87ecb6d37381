"""The pictures of Why: evidence as a waterfall, a pattern as a timeline. What they show is worked out apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from likewise.broker.page.frame import named, score, tag, text
from likewise.broker.page.phrases import many, percent, plainly, shortened

_LEAST: Final = 6.0
"""Bits on each side of the middle at least, so that small evidence looks small."""


@dataclass(frozen=True, slots=True)
class Fall:
    """One bar of a waterfall: it begins where the one before it ended."""

    words: str
    bits: float
    begin: float
    end: float
    total: bool = False


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """One role of a pattern: when it was awaited, when it came, and how that reads."""

    role: str
    words: str
    opened: float
    closed: float
    at: float | None
    """Parts of the whole width, 0 to 1; `at` is None for what did not come."""
    missing: bool = False


def falls(evidence: Sequence[Mapping[str, Any]], outcome: float) -> list[Fall]:
    """The bars of some evidence, and the sum of all."""
    out, sum_so_far = list[Fall](), 0.0
    for one in evidence:
        bits = float(one["weight"])
        out.append(Fall(plainly(str(one["concept"]), bits), bits, sum_so_far, sum_so_far + bits))
        sum_so_far += bits
    return [*out, Fall(f"together: {percent(outcome)}", sum_so_far, 0.0, sum_so_far, total=True)]


def waterfall(evidence: Sequence[Mapping[str, Any]], outcome: float, label: str) -> None:
    """Draw the bars: to the right what speaks for it, to the left what speaks against it."""
    bars = falls(evidence, outcome)
    most = max(_LEAST, *(abs(place) for bar in bars for place in (bar.begin, bar.end)))
    with named(tag("div", "fall", 'role="list"'), f"Evidence for {label}"):
        for bar in bars:
            low, high = sorted((bar.begin, bar.end))
            with tag("div", "fall-row total" if bar.total else "fall-row", 'role="listitem"'):
                text(bar.words)
                with tag("div", "fall-bar", 'aria-hidden="true"'):
                    left, width = 50 + 50 * low / most, max(0.6, 50 * (high - low) / most)
                    tag("i", "no" if bar.bits < 0 else "").style(f"left: {left:.1f}%; width: {width:.1f}%")
                text(f"{bar.bits:+.1f} bits", "bits")


def predicates(steps: Iterable[Mapping[str, Any]], *, failing: str = "") -> None:
    """Each predicate: the two vocabularies side by side, then the evidence for attribute and value."""
    for step in steps:
        with tag("div", "card"):
            _sides(step, failed=bool(failing) and str(step["predicate"]) == failing)
            for what, similarity in (("attribute", "attribute_similarity"), ("value", "value_similarity")):
                evidence = step.get(f"{what}_evidence") or ()
                if len(evidence) > 1:
                    text(f"Do the {what}s mean the same?", "small hint").style("margin-top: .6rem")
                    waterfall(evidence, float(step[similarity]), f"the {what} of {step['predicate']}")
                elif evidence:
                    text(f"The {what} is the same word.", "small hint").style("margin-top: .6rem")
            if step.get("apart"):
                text(str(step["apart"]), "hint", tag="p")


def _sides(step: Mapping[str, Any], *, failed: bool) -> None:
    answer = step["answer"]
    with tag("div", "sides"):
        with tag("div", "mine"):
            text("asked for", "small hint")
            text(step["predicate"], "term", tag="span")
        with tag("div", "tie"):
            score(float(step["similarity"]), matched=not failed)
        with tag("div"):
            text("the event says", "small hint")
            said = "nothing that answers it" if answer is None else f"{answer[0]}: {shortened(answer[1])}"
            text(said, "term theirs", tag="span")


# time


def spans(
    lines: Sequence[Mapping[str, Any]], words: Mapping[str, str]
) -> tuple[list[TimeSpan], tuple[datetime, datetime]]:
    """The roles of a pattern on one axis, and what the axis spans."""
    told = [line for line in lines if line["what"] != "condition"]
    moments = [line[key] for line in told for key in ("time", "start", "activated", "terminated") if line.get(key)]
    first, last = min(moments), max(moments)
    width = max((last - first).total_seconds(), 1e-6)

    def place(moment: datetime | None, other: float) -> float:
        return other if moment is None else (moment - first).total_seconds() / width

    out = []
    for line in told:
        missing = line["what"] in ("absence", "missing")
        at = place(line["time"], 0.0)
        opened, closed = place(line.get("activated") or line.get("start"), at), place(line.get("terminated"), at)
        said = _said(line, words)
        out.append(TimeSpan(str(line["role"]), said, opened, max(opened, closed), None if missing else at, missing))
    return out, (first, last)


def _said(line: Mapping[str, Any], words: Mapping[str, str]) -> str:
    when = f"{line['time']:%H:%M:%S}"
    if line["what"] == "absence":
        return f"did not happen, until {when}"
    if line["what"] == "missing":
        return f"was still awaited at {when}"
    event = str(line.get("event") or "")
    until = f"; would have counted until {line['terminated']:%H:%M:%S}" if line.get("terminated") else ""
    return f"{words.get(event, event) or 'the time'} at {when}{until}"


def timeline(lines: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> None:
    """Draw the roles: a light bar while one was awaited, a dark mark when it came."""
    if not lines:
        return
    rows, (first, last) = spans(lines, words)
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
        text(many(seconds, "second") if seconds < 120 else many(seconds // 60, "minute"), tag="span")
        text(f"{last:%H:%M:%S}", tag="span")
    for line in lines:
        if line["what"] == "condition":
            text(f"{line['role']} held", "small hint", tag="p")
