"""Local time formats: 16.11.2026 08:00, 11/16/2026 8:05 AM; and dates and clocks in two fields.

A format is found only if it is unambiguous: whether 03/04/2026 is in March or April, the user must specify.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from likewise.events.mapping import JOINED

_LOOKED_AT: Final = 50
_DATES: Final = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d/%b/%Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y"),
)
_CLOCKS: Final = ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H.%M", "%H.%M.%S", "%I:%M %p", "%I:%M:%S %p")
_BETWEEN: Final = (" ", ", ", "T", ":")
_WHOLE: Final = ("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S")
_ZONES: Final = ("", " %z", "%z")
_TWINS: Final = (("%d/%m/", "%m/%d/"), ("%d-%m-", "%m-%d-"))
"""Orders of day and month that can be confused."""
_CLOCK: Final = re.compile(
    r"\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?", re.ASCII
)
_DATE: Final = re.compile(
    r"\d{1,4}([./-])\d{1,2}\1\d{1,4}|(?:19|20)\d{6}"
    r"|\d{1,2}[ ./-][A-Za-z]{3,9}[ ./-]\d{2,4}|[A-Za-z]{3,9} \d{1,2},? \d{4}",
    re.ASCII,
)


def local_format(values: Sequence[object]) -> str | None:
    """The format of most values; None if there is none, or more than one fits.

    >>> local_format(["16.11.2026 08:00", "16.11.2026 08:10"]), local_format(["11/16/2026 8:05 AM"])
    ('%d.%m.%Y %H:%M', '%m/%d/%Y %I:%M %p')
    >>> local_format(["03/04/2026 08:00"]) is None, local_format(["10/Oct/2000:13:55:36 -0700"])
    (True, '%d/%b/%Y:%H:%M:%S %z')
    """
    texts = [value.strip() for value in values[:_LOOKED_AT] if isinstance(value, str)]
    if not texts or 2 * len(texts) < len(values[:_LOOKED_AT]):
        return None
    fitting = {
        form: sum(_fits(text, form) for text in texts) for form in _forms() if any(_fits(t, form) for t in texts[:3])
    }
    most = max(fitting.values(), default=0)
    best = [form for form, count in fitting.items() if count == most and 2 * count >= len(texts)]
    return None if not best or _is_ambiguous(best) else _preferred(best)


def are_clocks(values: Sequence[object]) -> bool:
    """Whether most values are times without a date.

    >>> are_clocks(["08:00", "18.00.00", "8:05 AM", "08:00Z"]), are_clocks(["16.11.2026"]), are_clocks([8.15])
    (True, False, False)
    """
    return _mostly(_CLOCK, [value if isinstance(value, str) else "" for value in values])


def are_dates(values: Sequence[object]) -> bool:
    """Whether most values are dates without a time.

    >>> are_dates(["2026-11-16", "16.11.26", "16 Nov 2026", 20261116]), are_dates(["2026-11-16 08:00"])
    (True, False)
    """
    return _mostly(_DATE, [str(value) if isinstance(value, str | int) else "" for value in values])


def _mostly(look: re.Pattern[str], texts: Sequence[str]) -> bool:
    return bool(texts) and 2 * sum(look.fullmatch(text.strip()) is not None for text in texts) >= len(texts)


@lru_cache(maxsize=1)
def _forms() -> tuple[str, ...]:
    return tuple(dict.fromkeys(_every_form()))


def _every_form() -> Iterator[str]:
    for date in _DATES:
        yield date
        for clock in _CLOCKS[1:]:
            for between in _BETWEEN:
                yield from (f"{date}{between}{clock}{zone}" for zone in _ZONES)
    yield from (f"{whole}{zone}" for whole in _WHOLE for zone in _ZONES)


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)  # the zone is that of the mapping
    except ValueError:
        return False
    return True


def _is_ambiguous(best: Sequence[str]) -> bool:
    """Whether day and month could be swapped; with AM and PM, the month comes first."""
    both = any(
        any(form.startswith(day_first) for form in best) and any(form.startswith(month_first) for form in best)
        for day_first, month_first in _TWINS
    )
    return both and not any("%p" in form for form in best)


def _preferred(best: Sequence[str]) -> str:
    months_first = [form for form in best if "%p" in form and form.startswith("%m")]
    return (months_first or list(best))[0]


# A date and a time of day in two fields.


_DAYS: Final = ("date", "day", "datum", "tag", "jour", "fecha", "dia", "data", "giorno", "dag", "dato")
_HOURS: Final = (
    *("time", "clock", "uhrzeit", "zeit", "uhr", "heure", "hora", "ora", "orario", "tijd", "tid", "hour"),
    "timeofday",
)
_FIRST: Final = ("start", "begin", "beginn", "from", "von", "in", "debut", "anfang")
_TOKEN: Final = re.compile(r"[A-ZÄÖÜ]?[a-zäöüß]+|[A-ZÄÖÜ]+|[^\W_]+")
_LAST: Final = ("end", "ende", "to", "until", "bis", "stop", "finish", "out", "fin")


class _Half(NamedTuple):
    """A field of dates or clocks: its path, and the rest of its name beside `date` or `time`."""

    name: str
    within: str
    about: str


def date_and_clock(fields: Mapping[str, Sequence[object]], *, end: bool = False) -> str | None:
    """The two fields that together form the time (or the end); None if the names are ambiguous.

    >>> date_and_clock({"Datum": ["16.11.2026"], "Uhrzeit": ["08:00"], "temp": [21.5]})
    'Datum+Uhrzeit'
    >>> visit = {"startDate": ["2026-11-16"], "startTime": ["08:00"], "endDate": ["2026-11-16"], "endTime": ["09:00"]}
    >>> date_and_clock(visit), date_and_clock(visit, end=True), date_and_clock({"birthday": ["2026-11-16"]})
    ('startDate+startTime', 'endDate+endTime', None)
    """
    days = [half for n, values in fields.items() if (half := _half(n, _DAYS)) and are_dates(values)]
    clocks = [half for n, values in fields.items() if (half := _half(n, _HOURS)) and are_clocks(values)]
    pairs = [(day, clock) for day in days for clock in clocks if day.within == clock.within]
    candidates = [(rank, pair) for pair in pairs if (rank := _rank(*pair, end=end)) is not None]
    if not candidates:
        return None
    day, clock = min(candidates, key=lambda ranked: ranked[0])[1]
    return f"{day.name}{JOINED}{clock.name}"


def _half(name: str, words: Sequence[str]) -> _Half | None:
    """The field as half of a time, if its name contains one of the words or ends with it.

    >>> _half("kopf.startTime", _HOURS), _half("Messdatum", _DAYS), _half("timeout", _HOURS)
    (_Half(name='kopf.startTime', within='kopf', about='start'), _Half(name='Messdatum', within='', about='mess'), None)
    """
    within, _, last = name.rpartition(".")
    tokens = [token.lower() for token in _TOKEN.findall(last)]
    plain = "".join(tokens)
    if words is _HOURS and plain in (*_FIRST, *_LAST):
        return _Half(name, within, plain)
    for word in words:
        if word in tokens:
            return _Half(name, within, "".join(token for token in tokens if token != word))
        if plain.endswith(word):
            return _Half(name, within, plain.removesuffix(word))
    return None


def _rank(day: _Half, clock: _Half, *, end: bool) -> int | None:
    """How well two halves fit together, 0 is best; None if they do not."""
    if end:
        # An end without its own date may be after midnight.
        return 0 if day.about in _LAST and clock.about in _LAST else None
    if clock.about in _FIRST and (day.about in _FIRST or not day.about):
        return 0 if day.about else 1
    return None if day.about != clock.about or clock.about in _LAST else 2 if day.about else 0
