"""Guesses which fields of records are id, time, end and theme, from their names and values.

A source may have records of several makers, each with its own name for the time. So time fields are added until every
record has one; later records of a new shape are handled in the same way. A date and a time of day in two fields are one
time, and times may be in local formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from likewise.errors import InputError
from likewise.events.instants import TimeRule
from likewise.events.mapping import JOINED, RecordMapping, joined_text, parts_of
from likewise.events.text.local_times import are_clocks, are_dates, date_and_clock, local_format
from likewise.events.values import parse_text

SAMPLE: Final = 200
"""The number of records used for guessing."""

_IDS: Final = ("id", "eventid", "messageid", "msgid", "uuid", "guid", "ereignisid", "meldungsid")
_TIMES: Final = (
    *("time", "timestamp", "ts", "datetime", "eventtime", "eventtimestamp", "measuredat", "observedat"),
    *("resulttime", "phenomenontime", "recordedat", "receivedat", "createdat", "created", "date", "at", "when"),
    *("timestampms", "tsms", "timems", "epoch", "epochms", "unixtime", "occurredat", "sampledat", "sampletime"),
    *("zeitpunkt", "zeitstempel", "zeit", "messzeit", "messzeitpunkt", "datum", "horodatage", "fecha", "tijdstip"),
    *("datumuhrzeit", "starttime", "start", "beginn"),
)
_STAMPS: Final = ("datetime", "timestamp", "zeitstempel", "zeitpunkt")
_ENDS: Final = ("end", "endtime", "endtimestamp", "until", "stop", "stoptime", "finishedat", "ende")
_THEMES: Final = ("theme", "themes", "tags")
_DEPTH: Final = 3
_SHAPES: Final = 1000
"""The most shapes of records without a time to remember."""

Record = Mapping[str, object]
_Fits = Callable[[str, list[object]], bool]
"""Whether a field of this name with these values fits a role."""


def settle_mapping(given: RecordMapping | None, records: Sequence[Record]) -> RecordMapping:
    """The given mapping, with its open roles filled by a guess.

    >>> settle_mapping(RecordMapping(id="deviceId", complete=False), [{"deviceId": "t1", "ts": 1, "temp": 2}]).plain()
    {'id': 'deviceId', 'time': 'ts'}
    """
    if given is None or given.complete:
        return given or guess_mapping(records)
    taken = {*given.taken, *(given.names or ())}
    free = [{name: value for name, value in record.items() if name not in taken} for record in records]
    guess = guess_mapping(free, given.rule_of)
    roles: dict[str, Any] = {role: getattr(guess, role) for role in guess.used if not getattr(given, role)}
    return _with_formats(replace(given, **roles, complete=True), _Fields.of(records))


def guess_mapping(records: Sequence[Record], rule_of: Callable[[str], TimeRule] | None = None) -> RecordMapping:
    """Guess the mapping of records from their names and values; a single bad value does not exclude a field.

    >>> guess_mapping([{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5}]).plain()
    {'time': 'ts'}
    >>> guess_mapping([{"ts": 1700000000, "temp": 21.5}, {"zeitpunkt": "2026-03-01 09:00", "wert": 3}]).plain()
    {'time': ['ts', 'zeitpunkt']}
    """
    fields, are_times = _Fields.of(records), _times_by(rule_of or RecordMapping().rule_of)

    def time_in(left: _Fields, before: list[str]) -> str | None:
        # A field with an unknown name must not appear together with another time.
        beside = {name for record in fields.records if any(_has(record, n) for n in before) for name in record}
        return left.time(are_times, {*beside, *left.ends()})

    times = fields.covering(time_in)
    ends = fields.covering(lambda left, _: left.end(are_times)) if times else []
    ids = fields.covering(lambda left, before: left.find(_IDS, lambda _, new: _are_ids([*fields.all(before), *new])))
    theme = fields.find(_THEMES, lambda _, values: all(isinstance(value, str | list) for value in values))
    guess = RecordMapping(id=_one(ids), time=_one(times), end=_one(ends), theme=theme or ())
    return guess if rule_of is not None else _with_formats(guess, fields)


def _with_formats(mapping: RecordMapping, fields: _Fields) -> RecordMapping:
    """Add the formats of times that are written in a local format.

    >>> _with_formats(RecordMapping(time="at"), _Fields([{"at": "16.11.2026 08:00"}])).time_format
    '%d.%m.%Y %H:%M'
    """
    undivided = tuple(name for name in mapping.times if JOINED in name and name in fields.names())
    mapping = replace(mapping, undivided=undivided) if undivided else mapping
    if mapping.time_format is not None:
        return mapping
    rule = mapping.rule_of()
    odd = [name for name in mapping.times if not _mostly(rule, fields.values(name))]
    formats = {name: form for name in odd if (form := local_format(fields.values(name))) is not None}
    if not formats:
        return mapping
    same = len(formats) == len(mapping.times) and len({*formats.values()}) == 1
    return replace(mapping, time_format=next(iter(formats.values())) if same else formats)


class GrowingGuess:
    """A guessed mapping that gains a time field when a record has none of the known ones.

    >>> growing = GrowingGuess(RecordMapping(time="ts"), [{"ts": 1, "temp": 2}])
    >>> growing.grown({"zeitpunkt": "2026-03-01T09:00:00Z", "wert": 3}).plain()
    {'time': ['ts', 'zeitpunkt']}
    >>> growing.grown({"wert": 3}) is None
    True
    """

    def __init__(self, mapping: RecordMapping, records: Sequence[Record]) -> None:
        self.mapping = mapping
        self._known = {name for record in records for name, _ in _leaves(record)}
        self._timeless: set[tuple[str, ...]] = set()

    def grown(self, record: Record) -> RecordMapping | None:
        """The mapping with the time field of a record that has no known one; None if it has no time at all."""
        shape = tuple(record)
        if shape in self._timeless:
            return None
        mapping = self.mapping
        free = _Fields(
            [{n: value for n, value in _leaves(record) if n not in {*mapping.taken, *(mapping.names or ())}}]
        )
        name = free.time(_times_by(mapping.rule_of, local=False), self._known)
        if name is None:
            if len(self._timeless) < _SHAPES:
                self._timeless.add(shape)
            return None
        self.mapping = replace(mapping, time=_one([*mapping.used.get("time", ()), name]))
        return self.mapping


class _Fields(NamedTuple):
    """Records as their non-empty fields, by path."""

    records: list[dict[str, object]]

    @classmethod
    def of(cls, records: Sequence[Record]) -> _Fields:
        return cls([dict(_leaves(record)) for record in records])

    def without(self, names: Collection[str]) -> _Fields:
        """The records that have none of these fields."""
        return _Fields([record for record in self.records if not any(_has(record, name) for name in names)])

    def names(self) -> dict[str, None]:
        """All field names, those of nested objects last."""
        names = dict.fromkeys(name for record in self.records for name in record)
        return dict.fromkeys(sorted(names, key=lambda name: "." in name))

    def values(self, name: str) -> list[object]:
        """The values of a field; for a joined date and clock, those of records that have both."""
        parts = parts_of(name)
        if len(parts) == 1 or any(name in record for record in self.records):
            return [record[name] for record in self.records if name in record]
        halves = [[record[part] for part in parts] for record in self.records if all(part in record for part in parts)]
        return [joined_text(name, values) for values in halves if not any(isinstance(value, list) for value in values)]

    def all(self, names: Sequence[str]) -> list[object]:
        return [value for name in names for value in self.values(name)]

    def covering(self, find: Callable[[_Fields, list[str]], str | None]) -> list[str]:
        """Collect fields until every record has one of them, or no more are found."""
        fields: list[str] = []
        while (left := self.without(fields)).records and (name := find(left, fields)) is not None:
            fields.append(name)
        return fields

    def find(self, known: Sequence[str], fits: _Fits) -> str | None:
        """The field with the best known name whose values fit; nested fields only for times."""
        names = [name for name in self.names() if "." not in name or known is _TIMES]
        plain = {name: _plain(name.rpartition(".")[2]) for name in names}
        order = {word: place for place, word in enumerate(known)}
        if known is _TIMES:
            # Names with such an ending are times: effectiveDateTime, reading_timestamp.
            order |= {word: len(order) for word in plain.values() if word not in order and word.endswith(_STAMPS)}
        ranked = sorted((name for name in names if plain[name] in order), key=lambda n: ("." in n, order[plain[n]]))
        return next((name for name in ranked if fits(name, self.values(name))), None)

    def ends(self) -> list[str]:
        return [name for name in self.names() if _plain(name) in _ENDS]

    def time(self, are_times: _Fits, excluded: Collection[str]) -> str | None:
        """The time field: one with a known name, a date with its clock, or the only field of full timestamps."""
        field = self.find(_TIMES, are_times)
        if field is not None and not are_dates(self.values(field)):
            return field
        both = self._together(are_times, end=False)
        if both is not None or field is None:
            return both or self.timestamps(excluded)
        # A date alone would put all events at midnight, although there is a clock.
        return None if any(are_clocks(self.values(name)) for name in self.names()) else field

    def end(self, are_times: _Fits) -> str | None:
        """The end field."""
        field = self.find(_ENDS, are_times)
        return field if field is not None else self._together(are_times, end=True)

    def _together(self, are_times: _Fits, *, end: bool) -> str | None:
        name = date_and_clock({name: self.values(name) for name in self.names()}, end=end)
        return name if name is not None and are_times(name, self.values(name)) else None

    def timestamps(self, excluded: Collection[str] = ()) -> str | None:
        """The first field with only full timestamps that is not excluded."""
        return next((n for n in self.names() if n not in excluded and _are_timestamps(self.values(n))), None)


def _has(record: Mapping[str, object], name: str) -> bool:
    """Whether a record has a field, or a part of a joined field."""
    return name in record or any(part in record for part in parts_of(name))


def _one(names: list[str]) -> str | list[str] | None:
    return None if not names else names[0] if len(names) == 1 else names


def _leaves(record: Record, path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """The non-empty fields of a record, those of nested objects by their path."""
    for name, value in record.items():
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _leaves(value, f"{path}{name}.", depth + 1)
        elif value is not None and value != "":
            yield f"{path}{name}", value


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _times_by(rule_of: Callable[[str], TimeRule], *, local: bool = True) -> _Fits:
    def are_times(name: str, values: list[object]) -> bool:
        if are_clocks(values):  # 08.00 is not a number of seconds
            return False
        rule = rule_of(name)
        return _mostly(rule, values) or (local and rule.usual and local_format(values) is not None)

    return are_times


def _mostly(rule: TimeRule, values: list[object]) -> bool:
    good = sum(_is_time(rule, value) for value in values)
    return good > 0 and good >= len(values) / 2


def _is_time(rule: TimeRule, value: object) -> bool:
    try:
        return rule.instant("time", value) is not None
    except InputError:
        return False


def _are_timestamps(values: list[object]) -> bool:
    """Whether all values have a date and a clock, in ISO 8601 or in one local format."""
    if not values:
        return False
    if all(isinstance(value, datetime) or _is_timestamp(value) for value in values):
        return True
    return all(isinstance(value, str) for value in values) and "%H" in (local_format(values) or "")


def _is_timestamp(value: object) -> bool:
    return isinstance(value, str) and not isinstance(parse_text(value), str)


def _are_ids(values: list[object]) -> bool:
    good = all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)
    return good and bool(values) and len({str(value) for value in values}) == len(values)
