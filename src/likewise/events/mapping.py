"""Mappings: which fields of a flat record, or which columns of a table, make an event.

Devices send `{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5}` rather than events. A mapping names the fields of
id, time and theme; all others are attributes. It is a small value that can be guessed, shown, saved and loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from likewise.errors import BuildError, InputError
from likewise.events.event import Event, Value
from likewise.events.instants import TimeRule
from likewise.events.values import check_span, check_text, flatten, parse_text

__all__ = ["KINDS", "RecordMapping", "guess_mapping", "settle_mapping"]

KINDS: Final = ("text", "number", "boolean", "time")
"""What a value can be."""

_IDS: Final = ("id", "eventid", "messageid", "msgid", "uuid", "guid")
_TIMES: Final = (
    *("time", "timestamp", "ts", "datetime", "eventtime", "eventtimestamp", "measuredat", "observedat"),
    *("resulttime", "phenomenontime", "recordedat", "receivedat", "createdat", "created", "date", "at", "when"),
    *("starttime", "start"),
)
_ENDS: Final = ("end", "endtime", "endtimestamp", "until", "stop", "stoptime", "finishedat")
_THEMES: Final = ("theme", "themes", "tags")
_ANY_TIME: Final = TimeRule()


@dataclass(frozen=True)
class RecordMapping:
    """Which fields make an event; a field of a nested object is named by its path, `device.room`.

    `theme` is a field that holds tags, or a list of tags for all events. `attributes` are the fields to take, or a
    mapping from fields to attribute names; without it, all fields that have no other use. `constants` are attributes of
    every event. `kinds` says what the values of a column of a table are, where their look misleads. `time_format` is a
    `strptime` format for times that are neither ISO 8601 nor numbers; `zone` is that of times that name none.

    >>> mapping = RecordMapping(time="ts", attributes={"deviceId": "device", "temp": "temperature"})
    >>> mapping.event({"deviceId": "t1", "ts": 1, "temp": [21.5, None], "rssi": -70}, default_id="e1").tuples
    (('device', 't1'), ('temperature', 21.5))
    """

    id: str | None = None
    time: str | None = None
    end: str | None = None
    theme: str | Sequence[str] = ()
    attributes: Sequence[str] | Mapping[str, str] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    time_format: str | None = None
    zone: str | None = None
    complete: bool = True
    """Whether a role that has no field is left out, or looked for among the fields of the first records."""

    def __post_init__(self) -> None:
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                raise BuildError(f"column {column!r} cannot be of kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
        if isinstance(self.attributes, str):
            raise BuildError("attributes are a list of fields", hint=f"write [{self.attributes!r}]")
        assert self.rule is not None  # an unknown zone fails here, not with the first record

    @cached_property
    def rule(self) -> TimeRule:
        """How its times are read."""
        return TimeRule(self.time_format, self.zone)

    @cached_property
    def used(self) -> dict[str, str]:
        """The fields that are no attributes, by what they are for."""
        theme = self.theme if isinstance(self.theme, str) else None
        named = {"id": self.id, "time": self.time, "end": self.end, "theme": theme}
        return {role: name for role, name in named.items() if name is not None}

    @cached_property
    def names(self) -> dict[str, str] | None:
        """Fields of attributes and what events call them; None for all that have no other use."""
        if self.attributes is None or isinstance(self.attributes, Mapping):
            return None if self.attributes is None else dict(self.attributes)
        return {name: name for name in self.attributes}

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags of all events."""
        return () if isinstance(self.theme, str) else tuple(dict.fromkeys(self.theme))

    def renamed(self, present: Sequence[str]) -> dict[str, str]:
        """The attribute columns of a table and the names that events give them."""
        if self.names is not None:
            return self.names
        return {name: name for name in present if name not in self.used.values()}

    def check_columns(self, present: Sequence[str], *, source: str = "the table") -> None:
        """Refuse a table that lacks a column that the mapping names."""
        for name in [*self.used.values(), *self.renamed(present)]:
            if name not in present:
                raise BuildError(f"{source} has no column {name!r}", hint=f"it has {', '.join(present)}")

    # one record

    def event(self, record: object, *, default_id: str) -> Event:
        """The event of a decoded JSON object, or the reason why it is none."""
        if not isinstance(record, dict):
            raise InputError("the record is not a JSON object", hint='such as {"sensor": "t1", "temp": 21.5}')
        start, end = self._instant(record, "time"), self._instant(record, "end")
        tuples = [pair for name, value in record.items() for pair in self.member(name, value)]
        if not tuples:
            raise InputError("the event has no attributes", hint="the mapping takes none of its fields")
        return Event(
            self._id(record) or default_id,
            (*tuples, *self.constants.items()),
            self._theme(record),
            start,
            check_span(start, end),
        )

    def member(self, name: str, value: object) -> Iterator[tuple[str, Value]]:
        """The tuples of one member of a record; null is absence."""
        if self.names is None:
            rest = without(name, value, self.used.values())
            if rest is not None:
                yield from flatten({name: rest})
            return
        for path, called in self.names.items():
            if path == name or path.startswith(f"{name}."):
                found = value if path == name else at_path({name: value}, path)
                if found is not None:
                    yield from flatten({called: found})

    def theme_of(self, value: object) -> tuple[str, ...]:
        """The tags of a field: a list of them, or text with commas between them."""
        if value is None:
            return ()
        tags = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else value
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise InputError("the theme is neither text nor a list of tags", hint='such as "transport, energy"')
        return tuple(dict.fromkeys(check_text("theme", tag) for tag in tags if tag))

    def _instant(self, record: dict[str, object], role: str) -> int | None:
        path = self.used.get(role)
        value = None if path is None else at_path(record, path)
        return None if value is None or value == "" else self.rule.instant(str(path), value)

    def _id(self, record: dict[str, object]) -> str | None:
        value = None if self.id is None else at_path(record, self.id)
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{self.id} is neither text nor a whole number, so it is no id")
        return check_text("id", str(value))

    def _theme(self, record: dict[str, object]) -> tuple[str, ...]:
        return self.theme_of(at_path(record, self.theme)) if isinstance(self.theme, str) else self.tags

    # as a file, and in words

    def plain(self) -> dict[str, Any]:
        """What it says, without what is left to the default."""
        told = {n: value for n, value in asdict(self).items() if value not in (None, (), {}) and n != "complete"}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}

    def save(self, path: Path | str) -> None:
        """Write it as a small YAML file, to be edited and loaded."""
        import yaml

        try:
            Path(path).write_text(yaml.safe_dump(self.plain(), sort_keys=False, allow_unicode=True), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error

    @classmethod
    def load(cls, path: Path | str) -> RecordMapping:
        """The mapping in a file (YAML or JSON)."""
        import yaml

        try:
            told = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=str(path), hint="check the path") from error
        except (yaml.YAMLError, UnicodeDecodeError):
            raise InputError("not a mapping file", source=str(path), hint="such as `time: ts`") from None
        return cls.of_plain(told, source=str(path))

    @classmethod
    def of_plain(cls, told: object, *, source: str) -> RecordMapping:
        """The mapping that `plain` gave, or that someone wrote."""
        known = {each.name for each in fields(cls)} - {"complete"}
        if not isinstance(told, dict) or not told.keys() <= known:
            raise InputError("not a mapping", source=source, hint=f"it has {', '.join(sorted(known))}")
        texts = ("id", "time", "end", "time_format", "zone")
        flawed = next((name for name in texts if not isinstance(told.get(name), str | None)), None)
        lists = {"constants": dict, "kinds": dict, "attributes": dict | list, "theme": str | list}
        flawed = flawed or next((n for n, kind in lists.items() if not isinstance(told.get(n), kind | None)), None)
        if flawed is not None:
            raise InputError(f"{flawed} has a value of the wrong kind", source=source, hint="see the page on events")
        return cls(**{name: value for name, value in told.items() if value is not None})

    def __str__(self) -> str:
        """In words.

        >>> print(RecordMapping(time="ts", attributes={"temp": "temperature"}))
        time = ts, temp = temperature
        """
        parts = [f"{role} = {name}" for role, name in self.used.items()]
        parts += [name if name == called else f"{name} = {called}" for name, called in (self.names or {}).items()]
        if self.names is None:
            parts.append("every other field is an attribute")
        return ", ".join(parts)


def at_path(record: Mapping[str, object], path: str) -> object:
    """The value of a field, by its name or by its path through nested objects; None if there is none.

    >>> at_path({"device": {"room": "112"}, "a.b": 1}, "device.room"), at_path({"a.b": 1}, "a.b")
    ('112', 1)
    """
    if path in record:
        return record[path]
    first, dot, rest = path.partition(".")
    inner = record.get(first)
    return at_path(inner, rest) if dot and isinstance(inner, dict) else None


def without(name: str, value: object, used: Any) -> object:
    """A member without the fields that have another use; None if nothing is left.

    >>> without("meta", {"ts": 1, "room": "112"}, ["meta.ts"]), without("ts", 1, ["ts"])
    ({'room': '112'}, None)
    """
    if name in used:
        return None
    inner = [path.removeprefix(f"{name}.") for path in used if path.startswith(f"{name}.")]
    if not inner or not isinstance(value, dict):
        return value
    left = {key: rest for key, item in value.items() if (rest := without(key, item, inner)) is not None}
    return left or None


def settle_mapping(given: RecordMapping | None, records: Sequence[Mapping[str, object]]) -> RecordMapping:
    """The mapping that was given, with the roles that it leaves open filled by a guess.

    >>> settle_mapping(RecordMapping(id="deviceId", complete=False), [{"deviceId": "t1", "ts": 1, "temp": 2}]).plain()
    {'id': 'deviceId', 'time': 'ts'}
    """
    if given is None or given.complete:
        return given or guess_mapping(records)
    taken = {*given.used.values(), *(given.names or ())}
    free = [{name: value for name, value in each.items() if name not in taken} for each in records]
    guess = guess_mapping(free, given.rule)
    found: dict[str, Any] = {role: name for role, name in guess.used.items() if not getattr(given, role)}
    return replace(given, **found, complete=True)


def guess_mapping(records: Sequence[Mapping[str, object]], rule: TimeRule = _ANY_TIME) -> RecordMapping:
    """The mapping that the names and values of some records suggest; one bad value does not spoil a field.

    >>> guess_mapping([{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5}]).plain()
    {'time': 'ts'}
    """
    names = dict.fromkeys(name for record in records for name in record)
    plain = {name: "".join(filter(str.isalnum, name)).lower() for name in names}

    def find(known: Sequence[str], fits: Any) -> str | None:
        for wanted in known:
            for name in names:
                if plain[name] == wanted and fits(values(name)):
                    return name
        return None

    def values(name: str) -> list[object]:
        return [record[name] for record in records if record.get(name) not in (None, "")]

    def are_times(found: list[object]) -> bool:
        good = sum(_is_time(rule, value) for value in found)
        return good > 0 and good >= len(found) / 2

    time = find(_TIMES, are_times) or next((name for name in names if _are_timestamps(values(name))), None)
    end = find(_ENDS, are_times) if time is not None else None
    theme = find(_THEMES, lambda found: all(isinstance(value, str | list) for value in found) and bool(found))
    return RecordMapping(id=find(_IDS, _are_ids), time=time, end=end, theme=theme or ())


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
