"""What the names and values of some records suggest: which of their fields are id, time, end and theme.

A feed may hold the records of several makers, each with a name of its own for the time. So a field of time is looked
for until every record has one; a record of another shape that comes later is looked at in the same way. A date and a
time of day in two fields are one time, and times may be written as people of some place write them.
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
"""Records that are looked at."""

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
"""Shapes of records without a time that are remembered."""

Record = Mapping[str, object]
_Fits = Callable[[str, list[object]], bool]
"""Whether a field of this name with these values can have a role."""


def settle_mapping(given: RecordMapping | None, records: Sequence[Record]) -> RecordMapping:
    """The mapping that was given, with the roles that it leaves open filled by a guess.

    >>> settle_mapping(RecordMapping(id="deviceId", complete=False), [{"deviceId": "t1", "ts": 1, "temp": 2}]).plain()
    {'id': 'deviceId', 'time': 'ts'}
    """
    if given is None or given.complete:
        return given or guess_mapping(records)
    taken = {*given.taken, *(given.names or ())}
    free = [{name: value for name, value in each.items() if name not in taken} for each in records]
    guess = guess_mapping(free, given.rule_of)
    found: dict[str, Any] = {role: getattr(guess, role) for role in guess.used if not getattr(given, role)}
    return _with_formats(replace(given, **found, complete=True), _Fields.of(records))


def guess_mapping(records: Sequence[Record], rule_of: Callable[[str], TimeRule] | None = None) -> RecordMapping:
    """The mapping that the names and values of some records suggest; one bad value does not spoil a field.

    >>> guess_mapping([{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5}]).plain()
    {'time': 'ts'}
    >>> guess_mapping([{"ts": 1700000000, "temp": 21.5}, {"zeitpunkt": "2026-03-01 09:00", "wert": 3}]).plain()
    {'time': ['ts', 'zeitpunkt']}
    """
    fields, are_times = _Fields.of(records), _times_by(rule_of or RecordMapping().rule_of)

    def time_in(left: _Fields, before: list[str]) -> str | None:
        # A field of an unknown name must not be found beside another time.
        beside = {name for record in fields.records if any(_has(record, n) for n in before) for name in record}
        return left.time(are_times, {*beside, *left.ends()})

    times = fields.covering(time_in)
    ends = fields.covering(lambda left, _: left.end(are_times)) if times else []
    ids = fields.covering(lambda left, before: left.find(_IDS, lambda _, new: _are_ids([*fields.all(before), *new])))
    theme = fields.find(_THEMES, lambda _, found: all(isinstance(value, str | list) for value in found))
    guess = RecordMapping(id=_one(ids), time=_one(times), end=_one(ends), theme=theme or ())
    return guess if rule_of is not None else _with_formats(guess, fields)


def _with_formats(mapping: RecordMapping, fields: _Fields) -> RecordMapping:
    """The mapping with the formats of its times, where these are written as people of some place do.

    >>> _with_formats(RecordMapping(time="at"), _Fields([{"at": "16.11.2026 08:00"}])).time_format
    '%d.%m.%Y %H:%M'
    """
    whole = tuple(name for name in mapping.times if JOINED in name and name in fields.names())
    mapping = replace(mapping, undivided=whole) if whole else mapping
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
    """A mapping that was guessed, and grows when a record comes that has none of its times but another.

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
        """The mapping with the time of a record that has none by it; nothing if it has none at all."""
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
    """Some records, each as its fields by their paths, without those that say nothing."""

    records: list[dict[str, object]]

    @classmethod
    def of(cls, records: Sequence[Record]) -> _Fields:
        return cls([dict(_leaves(record)) for record in records])

    def without(self, names: Collection[str]) -> _Fields:
        """The records that have none of these fields."""
        return _Fields([record for record in self.records if not any(_has(record, name) for name in names)])

    def names(self) -> dict[str, None]:
        """All fields, those of nested objects last."""
        found = dict.fromkeys(name for record in self.records for name in record)
        return dict.fromkeys(sorted(found, key=lambda name: "." in name))

    def values(self, name: str) -> list[object]:
        """What the records have there; of a date and a clock, those that have both."""
        parts = parts_of(name)
        if len(parts) == 1 or any(name in record for record in self.records):
            return [record[name] for record in self.records if name in record]
        whole = [[record[part] for part in parts] for record in self.records if all(part in record for part in parts)]
        return [joined_text(name, values) for values in whole if not any(isinstance(each, list) for each in values)]

    def all(self, names: Sequence[str]) -> list[object]:
        return [value for name in names for value in self.values(name)]

    def covering(self, find: Callable[[_Fields, list[str]], str | None]) -> list[str]:
        """Fields until every record has one of them, or no more are found among the records that are left."""
        found: list[str] = []
        while (left := self.without(found)).records and (name := find(left, found)) is not None:
            found.append(name)
        return found

    def find(self, known: Sequence[str], fits: _Fits) -> str | None:
        """The field with the best known name whose values fit; a nested one only if it is a time."""
        names = [name for name in self.names() if "." not in name or known is _TIMES]
        plain = {name: _plain(name.rpartition(".")[2]) for name in names}
        order = {word: place for place, word in enumerate(known)}
        if known is _TIMES:
            # A name that ends so is one of time: effectiveDateTime, reading_timestamp.
            order |= {word: len(order) for word in plain.values() if word not in order and word.endswith(_STAMPS)}
        ranked = sorted((name for name in names if plain[name] in order), key=lambda n: ("." in n, order[plain[n]]))
        return next((name for name in ranked if fits(name, self.values(name))), None)

    def ends(self) -> list[str]:
        return [name for name in self.names() if _plain(name) in _ENDS]

    def time(self, are_times: _Fits, apart: Collection[str]) -> str | None:
        """The field of the time: one of a known name, a date with its clock, or the only one of whole timestamps."""
        found = self.find(_TIMES, are_times)
        if found is not None and not are_dates(self.values(found)):
            return found
        both = self._together(are_times, end=False)
        if both is not None or found is None:
            return both or self.timestamps(apart)
        # A date alone would put every event at midnight, where there is a clock for it.
        return None if any(are_clocks(self.values(name)) for name in self.names()) else found

    def end(self, are_times: _Fits) -> str | None:
        """The field of the end."""
        found = self.find(_ENDS, are_times)
        return found if found is not None else self._together(are_times, end=True)

    def _together(self, are_times: _Fits, *, end: bool) -> str | None:
        name = date_and_clock({name: self.values(name) for name in self.names()}, end=end)
        return name if name is not None and are_times(name, self.values(name)) else None

    def timestamps(self, apart: Collection[str] = ()) -> str | None:
        """The first field that holds nothing but whole timestamps and is not among some others."""
        return next((n for n in self.names() if n not in apart and _are_timestamps(self.values(n))), None)


def _has(record: Mapping[str, object], name: str) -> bool:
    """Whether a record has a field, or a part of one that is joined."""
    return name in record or any(part in record for part in parts_of(name))


def _one(names: list[str]) -> str | list[str] | None:
    return None if not names else names[0] if len(names) == 1 else names


def _leaves(record: Record, path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """The fields of a record that say something, those of nested objects by their path."""
    for name, value in record.items():
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _leaves(value, f"{path}{name}.", depth + 1)
        elif value is not None and value != "":
            yield f"{path}{name}", value


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _times_by(rule_of: Callable[[str], TimeRule], *, local: bool = True) -> _Fits:
    def are_times(name: str, found: list[object]) -> bool:
        if are_clocks(found):  # 08.00 is no number of seconds
            return False
        rule = rule_of(name)
        return _mostly(rule, found) or (local and rule.usual and local_format(found) is not None)

    return are_times


def _mostly(rule: TimeRule, found: list[object]) -> bool:
    good = sum(_is_time(rule, value) for value in found)
    return good > 0 and good >= len(found) / 2


def _is_time(rule: TimeRule, value: object) -> bool:
    try:
        return rule.instant("time", value) is not None
    except InputError:
        return False


def _are_timestamps(values: list[object]) -> bool:
    return bool(values) and all(isinstance(value, datetime) or _is_timestamp(value) for value in values)


def _is_timestamp(value: object) -> bool:
    return isinstance(value, str) and not isinstance(parse_text(value), str)


def _are_ids(values: list[object]) -> bool:
    good = all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)
    return good and bool(values) and len({str(value) for value in values}) == len(values)
