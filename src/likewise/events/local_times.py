"""The format of times that are written as people of some place write them: 16.11.2026 08:00, 11/16/2026 8:05 AM.

A format is only found where there is no doubt. Whether 03/04/2026 is in March or in April is for the reader to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

__all__ = ["is_time_of_day", "local_format"]

_LOOKED_AT: Final = 50
_DATES: Final = (
    *("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d/%b/%Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y"),
)
_CLOCKS: Final = ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H.%M", "%H.%M.%S", "%I:%M %p", "%I:%M:%S %p")
_BETWEEN: Final = (" ", ", ", "T", ":")
_WHOLE: Final = ("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S")
_ZONES: Final = ("", " %z", "%z")
_TWINS: Final = (("%d/%m/", "%m/%d/"), ("%d-%m-", "%m-%d-"))
"""Orders of day and month that look alike."""
_TIME_OF_DAY: Final = re.compile(r"\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?", re.ASCII)


def local_format(values: Sequence[object]) -> str | None:
    """The format that most of some values have; nothing if there is none, or more than one that fits.

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
    return None if not best or _is_doubtful(best) else _last_word(best)


def is_time_of_day(value: object) -> bool:
    """Whether a value is a time without a date.

    >>> [is_time_of_day(text) for text in ("08:00", "18.00.00", "8:05 AM", "16.11.2026", 8)]
    [True, True, True, False, False]
    """
    return isinstance(value, str) and _TIME_OF_DAY.fullmatch(value.strip()) is not None


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


def _is_doubtful(best: Sequence[str]) -> bool:
    """Whether day and month could be either way; where people say AM and PM, the month comes first."""
    both = any(
        any(form.startswith(one) for form in best) and any(form.startswith(other) for form in best)
        for one, other in _TWINS
    )
    return both and not any("%p" in form for form in best)


def _last_word(best: Sequence[str]) -> str:
    months_first = [form for form in best if "%p" in form and form.startswith("%m")]
    return (months_first or list(best))[0]
