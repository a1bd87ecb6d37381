"""Values as conditions compare them: text by its normalised spelling, kinds never mixed."""

from __future__ import annotations

from typing import Any, Final

from likewise.events import Value, normalise, to_instant

TEXT: Final = 0
NUMBER: Final = 1
BOOLEAN: Final = 2
TIME: Final = 3


def comparable(value: Value) -> tuple[int, Any]:
    """Kind and what to compare; a boolean is not a number, and times compare as instants.

    >>> comparable("Room_101") == comparable("room 101"), comparable(1) == comparable(True)
    (True, False)
    """
    if isinstance(value, str):
        return TEXT, normalise(value)
    if isinstance(value, bool):
        return BOOLEAN, value
    if isinstance(value, int | float):
        return NUMBER, value
    return TIME, to_instant(value)
