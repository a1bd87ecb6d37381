"""Words for the page: scores, moments and events as people say them. One scale for all scores."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from likewise.events import Event, Value
from likewise.matching import Explanation

SCALE: Final = ((0.95, "certain"), (0.8, "very likely"), (0.5, "likely"), (0.2, "doubtful"), (0.0, "unlikely"))
"""From which score on a word is used; 0.5 is the default threshold."""
MOST_LETTERS: Final = 80
MOST_PAIRS: Final = 8


def score_word(score: float) -> str:
    """A score in words.

    >>> [score_word(score) for score in (1.0, 0.83, 0.5, 0.3, 0.01)]
    ['certain', 'very likely', 'likely', 'doubtful', 'unlikely']
    """
    return next(word for least, word in SCALE if score >= least or least == 0.0)


def percent(score: float) -> str:
    """A score in numbers; what is not sure is never 100 %.

    >>> percent(0.917), percent(0.9999), percent(1.0), percent(0.002)
    ('92 %', '99 %', '100 %', '< 1 %')
    """
    if score <= 0 or score >= 1:
        return f"{score:.0%}".replace("%", " %")
    return "< 1 %" if score < 0.01 else f"{min(99, max(1, round(100 * score)))} %"


def clock(instant: int | None) -> str:
    """The time of day of an instant, UTC.

    >>> clock(3_661_000_000)
    '01:01:01'
    """
    return "" if instant is None else f"{datetime.fromtimestamp(instant / 1e6, UTC):%H:%M:%S}"


def ago(seconds: float) -> str:
    """How long ago something was.

    >>> ago(3), ago(130), ago(7300)
    ('just now', '2 minutes ago', '2 hours ago')
    """
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def many(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun.

    >>> many(1, "match", "matches"), many(1200, "event")
    ('1 match', '1,200 events')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def rate(count: float, seconds: float) -> str:
    """How often something happens, in the unit that gives a number of one to three digits.

    >>> rate(600, 60), rate(5, 60), rate(1, 300)
    ('10 a second', '5 a minute', '12 an hour')
    """
    a_second = count / seconds
    if a_second >= 1:
        return f"{a_second:,.0f} a second"
    return f"{a_second * 60:.0f} a minute" if a_second * 60 >= 1 else f"{a_second * 3600:.0f} an hour"


def shortened(value: Any, most: int = MOST_LETTERS) -> str:
    """A value as text that fits on a line.

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
    """Attributes and values as text, not too many."""
    found = [[shortened(name, 40), shortened(value)] for name, value in tuples]
    return (
        found if len(found) <= MOST_PAIRS else [*found[: MOST_PAIRS - 1], ["…", f"{len(found) - MOST_PAIRS + 1} more"]]
    )


def sentence(event: Event) -> str:
    """What an event says in one line.

    >>> sentence(Event.of({"type": "parking", "slots": 3}))
    'type parking, slots 3'
    """
    return ", ".join(f"{name} {value}" for name, value in pairs_of(event))


def told_plainly(explanation: Explanation) -> str:
    """What answers what, and why, without numbers."""
    return plainly(explanation.summary)


def plainly(reason: str, bits: float = 1.0) -> str:
    """A reason without the jargon of measures; `bits` says whether it speaks for or against.

    >>> plainly("sentence embedding 0.71"), plainly("sentence embedding 0.2", -3), plainly("prior: single words")
    ('close in meaning', 'not close in meaning', 'to begin with: single words')
    """
    for jargon, against, words in _JARGON:
        reason = jargon.sub(words if bits > 0 else against, reason)
    return reason


_JARGON: Final = (
    (re.compile(r"sentence embedding(?: -?\d\.\d+)?"), "not close in meaning", "close in meaning"),
    (re.compile(r"shared concepts(?: \d\.\d+)?"), "seldom in the same articles", "often in the same articles"),
    (re.compile(r"^prior: "), "to begin with: ", "to begin with: "),
    (re.compile(r"words agree(?: \d\.\d+)?"), "words do not agree", "words agree"),
    (re.compile(r"the least agreeing word(?: \d\.\d+)?"), "one word does not agree", "every word agrees"),
)
