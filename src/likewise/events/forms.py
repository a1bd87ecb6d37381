"""Forms of JSON records: the documented form of events, or a flat record with its mapping.

A form defines which members the compiled reader looks for, and decodes what needs Python: a record of an unusual shape,
a member seen for the first time, or a theme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Final, Protocol

from likewise.errors import InputError
from likewise.events.event import Event, Value
from likewise.events.guessing import GrowingGuess, guess_mapping
from likewise.events.instants import TimeRule, parse_instant
from likewise.events.mapping import RecordMapping
from likewise.events.values import MAX_TEXT, check_span, check_text, flatten

FIELDS: Final = ("id", "time", "end", "theme", "attributes")
Pair = tuple[str, Value]


class RecordForm(Protocol):
    """Converts a JSON object to an event."""

    @property
    def fields(self) -> tuple[tuple[str, ...], ...] | None:
        """The members that hold id, time, end, theme and attributes; None if only Python can read the form."""

    @property
    def flat(self) -> bool:
        """Whether all other members are attributes."""

    @property
    def growing(self) -> bool:
        """Whether records without a time are searched for new time fields."""

    @property
    def rule(self) -> TimeRule: ...

    @property
    def constants(self) -> tuple[Pair, ...]:
        """Tuples added to every event."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The theme of events without one."""

    def event(self, value: object, *, default_id: str) -> Event: ...

    def grows(self, value: object, /) -> bool:
        """Whether a record without a time has a new time field, which is then used."""

    def tuples(self, name: str, value: object) -> Iterable[Pair]:
        """The tuples of one attribute."""

    def theme(self, value: object) -> tuple[str, ...]: ...


class EventForm:
    """`{"id", "time", "end"?, "theme": [], "attributes": {name: value | [values]}}`."""

    fields: tuple[tuple[str, ...], ...] = tuple((name,) for name in FIELDS)
    flat = False
    growing = False
    rule = TimeRule()
    constants: tuple[Pair, ...] = ()
    tags: tuple[str, ...] = ()

    def event(self, value: object, *, default_id: str) -> Event:
        """Convert a decoded JSON object to an event; raises InputError with a reason if it is not valid."""
        if not isinstance(value, dict):
            raise InputError(f"not an event but a JSON {_kind(value)}", hint='{"id": …, "attributes": {…}}')
        for field in value:
            if field not in FIELDS:
                close = get_close_matches(field[:60], FIELDS, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"an event has {', '.join(FIELDS)}"
                raise InputError(f"unknown field {field[:60]!r}", hint=hint)
        start, end = (None if value.get(f) is None else parse_instant(f, value[f]) for f in ("time", "end"))
        return Event(
            _checked_id(value.get("id"), default_id),
            _checked_tuples(value.get("attributes")),
            self.theme(value.get("theme")),
            start,
            check_span(start, end),
        )

    def grows(self, _: object, /) -> bool:
        return False

    def tuples(self, name: str, value: object) -> Iterable[Pair]:
        return flatten({name: value})

    def theme(self, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(tag, str) and 0 < len(tag) <= MAX_TEXT for tag in value):
            raise InputError("theme is not a list of tags", hint='such as ["transport", "energy"]')
        return tuple(dict.fromkeys(value))


class FlatForm:
    """A flat record, read by a mapping.

    A mapping guessed from `records` may gain time fields later; `on_growth` then gets the new mapping.
    """

    flat = True

    def __init__(
        self,
        mapping: RecordMapping,
        *,
        records: Sequence[dict[str, object]] | None = None,
        on_growth: Callable[[RecordMapping], None] | None = None,
    ) -> None:
        self.constants: tuple[Pair, ...] = tuple(mapping.constants.items())
        self.tags = mapping.tags
        self._guess = None if records is None else GrowingGuess(mapping, records)
        self._on_growth = on_growth
        self.mapping = mapping

    @property
    def rule(self) -> TimeRule:
        return self.mapping.rule_of()

    @property
    def fields(self) -> tuple[tuple[str, ...], ...] | None:
        mapping = self.mapping
        simple = mapping.one_rule and self.rule.usual and all(len(mapping.parts(name)) == 1 for name in mapping.times)
        if not simple or any("." in name for name in mapping.taken):
            return None
        return (*(mapping.used.get(role, ()) for role in FIELDS[:4]), ())

    def event(self, value: object, *, default_id: str) -> Event:
        event = self.mapping.event(value, default_id=default_id)
        if event.start is None and self.grows(value):
            return self.mapping.event(value, default_id=default_id)
        return event

    @property
    def growing(self) -> bool:
        return self._guess is not None

    def grows(self, value: object, /) -> bool:
        grown = self._guess.grown(value) if self._guess is not None and isinstance(value, dict) else None
        if grown is None:
            return False
        self.mapping = grown
        if self._on_growth is not None:
            self._on_growth(grown)
        return True

    def tuples(self, name: str, value: object) -> Iterable[Pair]:
        return self.mapping.member(name, value)

    def theme(self, value: object) -> tuple[str, ...]:
        return self.mapping.theme_of(value)


def form_of(records: list[object], on_growth: Callable[[RecordMapping], None] | None = None) -> RecordForm:
    """The form of records, judged by the first ones; a mapping is guessed for records that are not events.

    >>> form_of([{"id": "e1", "attributes": {"temp": 21.5}}]).flat, form_of([{"ts": 1, "temp": 21.5}]).flat
    (False, True)
    """
    objects = [record for record in records if isinstance(record, dict)]
    if not objects or any(_is_event(record) for record in objects):
        return EventForm()
    return FlatForm(guess_mapping(objects), records=objects, on_growth=on_growth)


def _is_event(record: dict[str, object]) -> bool:
    """Whether an object is meant as an event, even if it is not valid."""
    if record.keys() <= {*FIELDS}:
        return True
    nested = [name for name, value in record.items() if isinstance(value, dict)]
    return bool(get_close_matches("attributes", nested, n=1, cutoff=0.8))


def _checked_id(value: object, default: str) -> str:
    if value is None or value == "":
        return default
    if not isinstance(value, str):
        raise InputError(f"id is a JSON {_kind(value)}, not text", hint="put it in quotes")
    return check_text("id", value)


def _checked_tuples(value: object) -> tuple[Pair, ...]:
    if value is not None and not isinstance(value, dict):
        raise InputError(f"attributes is a JSON {_kind(value)}, not an object")
    tuples = tuple(flatten(value or {}))
    if not tuples:
        raise InputError("the event has no attributes", hint='add "attributes": {"name": "value"}')
    return tuples


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
