"""Mappings: which fields of a flat record, or which columns of a table, form an event.

Devices often send `{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5}` instead of events. A mapping names the fields
of id, time and theme; all others are attributes. It can be guessed, shown, saved and loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from likewise.errors import BuildError, InputError, named_options
from likewise.events.event import Event, Value
from likewise.events.instants import TIME_UNITS, TimeRule
from likewise.events.values import check_span, check_text, flatten

COMMA: Final = "decimal comma"
KINDS: Final = ("text", "number", COMMA, "boolean", "time")
"""The kinds of values."""

ANY: Final = "*"
"""Stands for all fields that a time format or zone does not name."""
JOINED: Final = "+"
"""Joins two fields that form one time: a date and a time of day."""
_ROLES: Final = ("id", "time", "end")
_INNER: Final = {"complete", "undivided"}
"""Fields that are not saved to a file."""


@dataclass(frozen=True)
class RecordMapping:
    """Which fields form an event; a field of a nested object is named by its path, `device.room`.

    `id`, `time` and `end` are fields, or lists of fields of which the first one present counts: records of several
    makers may use different names. `theme` is a field that holds tags, or a list of tags for all events. `attributes`
    are the fields to use, or a mapping from fields to attribute names; by default, all fields without another role.
    `constants` are attributes added to every event. `kinds` are the types of table columns whose look is misleading.
    `time_format` is a `strptime` format for times that are neither ISO 8601 nor numbers, or the unit of numbers (`s`,
    `ms`, `us`, `ns`; alias `time_unit`); `zone` applies to times without a time zone. Both may be mappings from time
    fields, with `*` for all others. A time or end in two fields is named by both, `date+clock`: their texts are joined
    by a space.

    >>> mapping = RecordMapping(time="ts", attributes={"deviceId": "device", "temp": "temperature"})
    >>> mapping.event({"deviceId": "t1", "ts": 1, "temp": [21.5, None], "rssi": -70}, default_id="e1").tuples
    (('device', 't1'), ('temperature', 21.5))
    >>> makers = RecordMapping(time=["ts", "zeitpunkt"], zone={"zeitpunkt": "Europe/Berlin"})
    >>> makers.event({"zeitpunkt": "1970-01-01 02:00", "temp": 21.5}, default_id="e2").start
    3600000000
    >>> halves = RecordMapping(time="date+clock", time_format="%d.%m.%Y %H:%M")
    >>> halves.event({"date": "01.01.1970", "clock": "02:00", "temp": 21.5}, default_id="e3").start
    7200000000
    """

    id: str | Sequence[str] | None = None
    time: str | Sequence[str] | None = None
    end: str | Sequence[str] | None = None
    theme: str | Sequence[str] = ()
    attributes: Sequence[str] | Mapping[str, str] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    time_format: str | Mapping[str, str] | None = None
    zone: str | Mapping[str, str] | None = None
    complete: bool = True
    """If false, roles without a field are guessed from the first records."""
    undivided: Sequence[str] = ()
    """Time fields whose own name contains a `+`, if the fields of the source are known."""
    time_unit: InitVar[str | None] = None

    def __post_init__(self, time_unit: str | None) -> None:
        if time_unit is not None:
            self._set_unit(time_unit)
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                raise BuildError(f"column {column!r} cannot be of kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
        named = [*(name for role in _ROLES for name in _names(getattr(self, role))), *_names(self.attributes)]
        if any(not isinstance(name, str) for name in named):
            raise BuildError("fields of a mapping are named by text", hint="on Spark, `computed` makes new columns")
        if any(not name for role in _ROLES for name in _listed(getattr(self, role))):
            raise BuildError("a field of the mapping has an empty name", hint="omit the role, or name its field")
        if isinstance(self.attributes, str):
            raise BuildError("attributes are a list of fields", hint=f"write [{self.attributes!r}]")
        for by_field, subject in ((self.time_format, "a time format"), (self.zone, "a zone")):
            fields_named = by_field if isinstance(by_field, Mapping) else ()
            wrong = [name for name in fields_named if name not in (ANY, *self.times)]
            if wrong and self.complete:
                raise BuildError(
                    f"{wrong[0]!r} has {subject} but is not a time field", hint=f"times are {', '.join(self.times)}"
                )
        # Check zones and formats now, not at the first record.
        assert all(
            self.rule_of(name) is not None for name in (ANY, *_fields_in(self.zone), *_fields_in(self.time_format))
        )

    def _set_unit(self, unit: str) -> None:
        if self.time_format is not None:
            raise BuildError("time_format and time_unit are two names of one thing", hint="give one of them")
        if unit not in TIME_UNITS:
            raise BuildError(f"times have no unit {unit!r}", hint=f"one of {', '.join(TIME_UNITS)}")
        object.__setattr__(self, "time_format", unit)

    @cached_property
    def _rules(self) -> dict[str, TimeRule]:
        return {}

    def rule_of(self, name: str = ANY) -> TimeRule:
        """The time format and zone of a field."""
        if name not in self._rules:
            self._rules[name] = TimeRule(_of_field(self.time_format, name), _of_field(self.zone, name))
        return self._rules[name]

    @property
    def one_rule(self) -> bool:
        """Whether all time fields have the same format and zone."""
        return not isinstance(self.time_format, Mapping) and not isinstance(self.zone, Mapping)

    @cached_property
    def used(self) -> dict[str, tuple[str, ...]]:
        """The fields that are not attributes, by role."""
        named = {role: _listed(getattr(self, role)) for role in _ROLES}
        named["theme"] = _listed(self.theme if isinstance(self.theme, str) else None)
        return {role: names for role, names in named.items() if names}

    @cached_property
    def taken(self) -> tuple[str, ...]:
        """All these fields; joined ones as their parts."""
        return tuple(part for role, names in self.used.items() for name in names for part in self.parts(name, role))

    def parts(self, name: str, role: str = "time") -> tuple[str, ...]:
        """The fields that a name stands for: a joined time or end has several.

        >>> RecordMapping().parts("date+clock"), RecordMapping().parts("ts")
        (('date', 'clock'), ('ts',))
        """
        return (name,) if role not in ("time", "end") or name in self.undivided else parts_of(name)

    @property
    def times(self) -> tuple[str, ...]:
        """The fields of times and ends."""
        return (*_listed(self.time), *_listed(self.end))

    @cached_property
    def names(self) -> dict[str, str] | None:
        """Attribute fields and their names in events; None for all fields without another role."""
        if self.attributes is None or isinstance(self.attributes, Mapping):
            return None if self.attributes is None else dict(self.attributes)
        return {name: name for name in self.attributes}

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags given for all events."""
        return () if isinstance(self.theme, str) else tuple(dict.fromkeys(self.theme))

    def renamed(self, present: Sequence[str]) -> dict[str, str]:
        """The attribute columns of a table and their names in events."""
        if self.names is not None:
            return self.names
        return {name: name for name in present if name not in self.taken}

    def narrowed(self, present: Collection[str], *, source: str = "the table") -> RecordMapping:
        """The mapping for a table with these columns; of several fields for a role, one is enough.

        >>> RecordMapping(time=["ts", "zeitpunkt"]).narrowed(["zeitpunkt", "temp"]).plain()
        {'time': 'zeitpunkt'}
        """
        undivided = tuple(name for name in self.times if JOINED in name and name in present)
        if undivided != tuple(self.undivided):
            return replace(self, undivided=undivided).narrowed(present, source=source)
        missing = {
            role: {name: [part for part in self.parts(name, role) if part not in present] for name in names}
            for role, names in self.used.items()
        }
        present_fields = {
            role: [name for name, parts in fields.items() if not parts] for role, fields in missing.items()
        }
        lacking = [[parts[0] for parts in missing[role].values()] for role in self.used if not present_fields[role]]
        lacking += [[name] for name in self.names or () if name not in present]
        if lacking:
            named = " or ".join(map(repr, lacking[0]))
            raise BuildError(f"{source} has no column {named}", hint=f"it has {', '.join(present)}")
        several: dict[str, Any] = {role: present_fields[role] for role in _ROLES if len(self.used.get(role, ())) > 1}
        gone = {name for fields in missing.values() for name, parts in fields.items() if parts}
        for setting in ("time_format", "zone") if gone else ():
            if isinstance(by_field := getattr(self, setting), Mapping):
                several[setting] = {name: value for name, value in by_field.items() if name not in gone}
        return replace(self, **several) if several else self

    # one record

    def event(self, record: object, *, default_id: str) -> Event:
        """Convert a decoded JSON object to an event; raises InputError if it is not valid."""
        if not isinstance(record, dict):
            raise InputError("the record is not a JSON object", hint='such as {"sensor": "t1", "temp": 21.5}')
        start, end = self._instant(record, "time"), self._instant(record, "end")
        tuples = [pair for name, value in record.items() for pair in self.member(name, value)]
        if not tuples:
            raise InputError("the event has no attributes", hint="the mapping uses none of its fields")
        return Event(
            self._id(record) or default_id,
            (*tuples, *self.constants.items()),
            self._theme(record),
            start,
            check_span(start, end),
        )

    def member(self, name: str, value: object) -> Iterator[tuple[str, Value]]:
        """The tuples of one member of a record; null means absent."""
        if self.names is None:
            rest = without(name, value, self._not_attributes)
            if rest is not None:
                yield from flatten({name: rest})
            return
        for path, attribute in self.names.items():
            if path == name or path.startswith(f"{name}."):
                part = value if path == name else at_path({name: value}, path)
                if part is not None:
                    yield from flatten({attribute: part})

    @cached_property
    def _not_attributes(self) -> tuple[str, ...]:
        """Fields of a record that are not attributes; a name with a `+` may be a single field."""
        return tuple(dict.fromkeys((*self.taken, *self.times)))

    def theme_of(self, value: object) -> tuple[str, ...]:
        """The tags of a field: a list, or text separated by commas."""
        if value is None:
            return ()
        tags = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else value
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise InputError("the theme is neither text nor a list of tags", hint='such as "transport, energy"')
        return tuple(dict.fromkeys(check_text("theme", tag) for tag in tags if tag))

    def _found(self, record: dict[str, object], role: str) -> tuple[str, object] | None:
        """The first non-empty field of a role, and its value."""
        for path in self.used.get(role, ()):
            value = at_path(record, path)
            if value is None and len(parts := self.parts(path, role)) > 1:
                value = joined_text(path, [at_path(record, part) for part in parts])
            if value is not None and value != "":
                return path, value
        return None

    def _instant(self, record: dict[str, object], role: str) -> int | None:
        present = self._found(record, role)
        return None if present is None else self.rule_of(present[0]).instant(*present)

    def _id(self, record: dict[str, object]) -> str | None:
        present = self._found(record, "id")
        if present is None:
            return None
        path, value = present
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{path} is neither text nor an integer, so it cannot be an id")
        return check_text("id", str(value))

    def _theme(self, record: dict[str, object]) -> tuple[str, ...]:
        return self.theme_of(at_path(record, self.theme)) if isinstance(self.theme, str) else self.tags

    # as a file, and in words

    def plain(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as plain values."""
        settings = {
            n: value for n, value in asdict(self).items() if value not in (None, (), [], {}) and n not in _INNER
        }
        settings |= {
            role: names[0] if len(names) == 1 else names for role, names in self.used.items() if role in _ROLES
        }
        return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}

    def save(self, path: Path | str) -> None:
        """Write the mapping to a YAML file."""
        import yaml

        try:
            Path(path).write_text(yaml.safe_dump(self.plain(), sort_keys=False, allow_unicode=True), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error

    @classmethod
    def load(cls, path: Path | str) -> RecordMapping:
        """Load a mapping from a file (YAML or JSON)."""
        import yaml

        try:
            settings = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=str(path), hint="check the path") from error
        except (yaml.YAMLError, UnicodeDecodeError):
            raise InputError("not a mapping file", source=str(path), hint="such as `time: ts`") from None
        return cls.of_plain(settings, source=str(path))

    @classmethod
    def of_plain(cls, settings: object, *, source: str) -> RecordMapping:
        """The mapping of plain values, as `plain` returns them."""
        known = {field.name for field in fields(cls)} - _INNER
        if not isinstance(settings, dict) or not settings.keys() <= known:
            raise InputError("not a mapping", source=source, hint=f"it has {', '.join(sorted(known))}")
        lists: dict[str, Any] = dict.fromkeys(_ROLES, str | list) | dict.fromkeys(("time_format", "zone"), str | dict)
        lists |= {"kinds": dict, "attributes": dict | list, "theme": str | list}
        flawed = next((name for name, kind in lists.items() if not _is_of(settings.get(name), kind)), None)
        if flawed is None and not _is_of(settings.get("constants"), dict, str | int | float):
            flawed = "constants"
        if flawed is not None:
            raise InputError(
                f"{flawed} has a value of the wrong type", source=source, hint="see the documentation of events"
            )
        return cls(**{name: value for name, value in settings.items() if value is not None})

    def __str__(self) -> str:
        """A summary for people.

        >>> print(RecordMapping(time="ts", attributes={"temp": "temperature"}))
        time = ts, temp = temperature
        >>> print(RecordMapping(time=["ts", "zeitpunkt"]))
        time = ts or zeitpunkt, every other field is an attribute
        >>> print(RecordMapping(time="at", time_format="%d.%m.%Y", attributes=["t"], kinds={"t": "decimal comma"}))
        time = at (%d.%m.%Y), t, t with a decimal comma
        """
        parts = [f"{role} = {' or '.join(map(self._written, names))}" for role, names in self.used.items()]
        parts += [
            name if name == attribute else f"{name} = {attribute}" for name, attribute in (self.names or {}).items()
        ]
        if self.names is None:
            parts.append("every other field is an attribute" if parts else "every field is an attribute")
        commas = [name for name, kind in self.kinds.items() if kind == COMMA]
        return ", ".join([*parts, *([f"{' and '.join(commas)} with a decimal comma"] if commas else [])])

    def _written(self, name: str) -> str:
        """A field, with its time format if it has one."""
        form = _of_field(self.time_format, name) if name in self.times else None
        return name if form is None else f"{name} ({form})"


RecordMapping.__init__ = named_options(RecordMapping.__init__)  # type: ignore[method-assign]  # a misspelt field has a hint


def _listed(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """The fields of a role as a tuple."""
    if isinstance(names, str):
        return (names,)
    return tuple(dict.fromkeys(names or ()))


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a joined field name.

    >>> parts_of("date+clock"), parts_of("ts"), parts_of("C++")
    (('date', 'clock'), ('ts',), ('C++',))
    """
    parts = tuple(name.split(JOINED))
    return parts if all(parts) else (name,)


def joined_text(name: str, values: Sequence[object]) -> str | None:
    """Join the texts of fields that form one time; None if all are empty.

    >>> joined_text("date+clock", ["2026-11-16", "08:00"]), joined_text("date+clock", [None, " "])
    ('2026-11-16 08:00', None)
    """
    parts = parts_of(name)
    for part, value in zip(parts, values, strict=True):
        if isinstance(value, bool | dict | list):
            raise InputError(f"{part} is of type {type(value).__name__}, not a part of a time")
    texts = ["" if value is None else str(value).strip() for value in values]
    if not any(texts):
        return None
    if not all(texts):
        raise lacks_part(name, parts[texts.index("")])
    return " ".join(texts)


def lacks_part(name: str, part: str) -> InputError:
    """The error of a record that lacks a part of its time."""
    return InputError(f"{part} is missing, so {name} is no time", hint="a time needs both a date and a time of day")


def _names(value: Any) -> list[object]:
    """The given field names, of whatever type."""
    return list(value) if isinstance(value, list | tuple | Mapping) else [] if value is None else [value]


def _fields_in(value: str | Mapping[str, str] | None) -> Collection[str]:
    return value if isinstance(value, Mapping) else ()


def _of_field(value: str | Mapping[str, str] | None, name: str) -> str | None:
    return value.get(name, value.get(ANY)) if isinstance(value, Mapping) else value


def _is_of(value: object, kind: Any, inner: Any = str) -> bool:
    """Whether a value of a mapping file has the right type: a text, or a list or mapping of texts."""
    if value is None:
        return True
    held = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    names = [*value] if isinstance(value, dict) else []
    return isinstance(value, kind) and all(isinstance(item, inner) for item in held) and all(map(_is_text, names))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def at_path(record: Mapping[str, object], path: str) -> object:
    """The value of a field by name or path; None if there is none.

    >>> at_path({"device": {"room": "112"}, "a.b": 1}, "device.room"), at_path({"a.b": 1}, "a.b")
    ('112', 1)
    """
    if path in record:
        return record[path]
    first, dot, rest = path.partition(".")
    inner = record.get(first)
    return at_path(inner, rest) if dot and isinstance(inner, dict) else None


def without(name: str, value: object, used: Any) -> object:
    """A member without the fields that have another role; None if nothing is left.

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
