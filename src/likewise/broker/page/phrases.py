"""Format scores, times, counts and events for the page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from likewise.events import Event, Value
from likewise.matching import Explanation

SCALE: Final = ((0.95, "certain"), (0.8, "very likely"), (0.5, "likely"), (0.2, "doubtful"), (0.0, "unlikely"))
"""The minimum score of each word; 0.5 is the default threshold."""
MOST_LETTERS: Final = 80
MOST_PAIRS: Final = 8


def score_word(score: float) -> str:
    """The word for a score.

    >>> [score_word(score) for score in (1.0, 0.83, 0.5, 0.3, 0.01)]
    ['certain', 'very likely', 'likely', 'doubtful', 'unlikely']
    """
    return next(word for least, word in SCALE if score >= least or least == 0.0)


def percent(score: float) -> str:
    """A score as a percentage; only a score of 1 is shown as 100 %.

    >>> percent(0.917), percent(0.9999), percent(1.0), percent(0.002)
    ('92 %', '99 %', '100 %', '< 1 %')
    """
    if score <= 0 or score >= 1:
        return f"{score:.0%}".replace("%", " %")
    return "< 1 %" if score < 0.01 else f"{min(99, max(1, round(100 * score)))} %"


def time_of_day(instant: int | None) -> str:
    """The UTC time of day of an instant.

    >>> time_of_day(3_661_000_000)
    '01:01:01'
    """
    return "" if instant is None else f"{datetime.fromtimestamp(instant / 1e6, UTC):%H:%M:%S}"


def ago(seconds: float) -> str:
    """The age of something in words.

    >>> ago(3), ago(130), ago(7300)
    ('just now', '2 minutes ago', '2 hours ago')
    """
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun in singular or plural.

    >>> counted(1, "match", "matches"), counted(1200, "event")
    ('1 match', '1,200 events')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def rate(count: float, seconds: float) -> str:
    """A rate per second, minute or hour, whichever gives a readable number.

    >>> rate(600, 60), rate(5, 60), rate(1, 300)
    ('10 per second', '5 per minute', '12 per hour')
    """
    per_second = count / seconds
    if per_second >= 1:
        return f"{per_second:,.0f} per second"
    return f"{per_second * 60:.0f} per minute" if per_second * 60 >= 1 else f"{per_second * 3600:.0f} per hour"


def shortened(value: Any, most: int = MOST_LETTERS) -> str:
    """A value as text of limited length.

    >>> shortened(3.5), shortened(True), shortened("x" * 100, 5)
    ('3.5', 'true', 'xxxx…')
    """
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def pairs_of(event: Event) -> list[list[str]]:
    """The attributes and values of an event, as text."""
    return pairs(event.tuples)


def pairs(tuples: Iterable[tuple[str, Value]]) -> list[list[str]]:
    """Attributes and values as text, at most `MOST_PAIRS`."""
    texts = [[shortened(name, 40), shortened(value)] for name, value in tuples]
    if len(texts) <= MOST_PAIRS:
        return texts
    return [*texts[: MOST_PAIRS - 1], ["…", f"{len(texts) - MOST_PAIRS + 1} more"]]


def event_line(event: Event) -> str:
    """The attributes and values of an event in one line.

    >>> event_line(Event.of({"type": "parking", "slots": 3}))
    'type parking, slots 3'
    """
    return ", ".join(f"{name} {value}" for name, value in pairs_of(event))


def plain_summary(explanation: Explanation) -> str:
    """The summary of an explanation for users: which values match and why, without numbers."""
    return plain_reason(explanation.summary)


def plain_reason(reason: str, bits: float = 1.0) -> str:
    """A reason without technical terms; the sign of `bits` decides whether it is worded for or against.

    >>> plain_reason("sentence embedding 0.71"), plain_reason("sentence embedding 0.2", -3)
    ('close in meaning', 'not close in meaning')
    >>> plain_reason("prior: single words")
    'starting point: single words'
    """
    for jargon, against, words in _JARGON:
        reason = jargon.sub(words if bits > 0 else against, reason)
    return reason


_JARGON: Final = (
    (re.compile(r"sentence embedding(?: -?\d\.\d+)?"), "not close in meaning", "close in meaning"),
    (re.compile(r"shared concepts(?: \d\.\d+)?"), "rarely in the same articles", "often in the same articles"),
    (re.compile(r"^prior: "), "starting point: ", "starting point: "),
    (re.compile(r"words agree(?: \d\.\d+)?"), "words do not agree", "words agree"),
    (re.compile(r"the least agreeing word(?: \d\.\d+)?"), "one word does not agree", "every word agrees"),
)
