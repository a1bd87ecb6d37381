"""Plain values for snapshots: instances and whoever waits are written once and referred to by number."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from likewise import language
from likewise.composite.general.instance import Filled, Instance, RoleToken, Weighted
from likewise.composite.general.process import InnerToken
from likewise.errors import InputError
from likewise.events import Event, Value

if TYPE_CHECKING:
    from likewise.composite.general.absence import Blockers
    from likewise.composite.general.choice import Chooser, Waiting


def dump_event(event: Event) -> list[Any]:
    """An event as plain values; datetimes keep their zone."""
    return [event.id, [[name, _plain(v)] for name, v in event.tuples], list(event.theme), event.start, event.end]


def load_event(state: Any) -> Event:
    """The event back."""
    name, tuples, theme, start, end = state
    return Event(name, tuple((attribute, _value(v)) for attribute, v in tuples), tuple(theme), start, end)


def _plain(value: Value) -> Any:
    return {"t": value.isoformat()} if isinstance(value, datetime) else value


def _value(value: Any) -> Value:
    return datetime.fromisoformat(value["t"]) if isinstance(value, dict) else value


class Dump:
    """Collects the objects of one pattern."""

    def __init__(self) -> None:
        self.instances: list[Any] = []
        self.tokens: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def _number(self, thing: object, count: int) -> tuple[int, bool]:
        known = self._numbers.get(id(thing))
        if known is not None:
            return known, False
        self._numbers[id(thing)] = count
        self._kept.append(thing)
        return count, True

    def token(self, token: RoleToken) -> int:
        """The number of a token; one of an inner pattern names the one outside, which has the event."""
        if isinstance(token, InnerToken):
            return self._inner(token)
        number, new = self._number(token, len(self.tokens))
        if new:
            self.tokens.append([dump_event(token.event), token.rank, token.time, token.taken])
        return number

    def _inner(self, token: InnerToken) -> int:
        outer = self.token(token.outer)
        number, new = self._number(token, len(self.tokens))
        if new:
            self.tokens.append([outer, token.taken])
        return number

    def instance(self, instance: Instance | None) -> int | None:
        """The number of an instance."""
        if instance is None:
            return None
        if id(instance) in self._numbers:
            return self._numbers[id(instance)]
        parts = [self.instance(part) for part in instance.parts]
        roles = [[f.role, self.token(f.token), f.probability, dump_mapped(f.mapped)] for f in instance.roles]
        number, _ = self._number(instance, len(self.instances))
        self.instances.append(
            [
                instance.node,
                instance.time,
                instance.phase,
                instance.first,
                instance.start,
                instance.end,
                instance.probability,
                roles,
                parts,
                instance.reading,
                instance.step,
            ]
        )
        return number

    def waiting(self, waiting: Waiting | None) -> int | None:
        """The number of someone who waits."""
        return None if waiting is None else self._number(waiting, len(self._kept))[0]

    def chooser(self, chooser: Chooser | None) -> int | None:
        """The number of a chooser."""
        return None if chooser is None else self._number(chooser, len(self._kept))[0]

    def blockers(self, blockers: Blockers) -> int:
        """The number of blockers that several prefixes share."""
        return self._number(blockers, len(self._kept))[0]


class Load:
    """Gives the objects of a dump back, each once."""

    def __init__(self, instances: list[Any], tokens: list[Any]) -> None:
        self._tokens: list[RoleToken] = []
        for entry in tokens:
            self._tokens.append(self._token(entry))
        self._instances: list[Instance] = []
        for entry in instances:
            self._instances.append(self._instance(entry))
        self._waiting: dict[int, Any] = {}
        self._choosers: dict[int, Chooser] = {}
        self._blockers: dict[int, Blockers] = {}

    def _token(self, entry: Any) -> RoleToken:
        if len(entry) == 2:
            outer, taken = entry
            return InnerToken(self._tokens[outer], taken=taken)
        event, rank, time, taken = entry
        return RoleToken(load_event(event), rank, time, taken=taken)

    def _instance(self, entry: Any) -> Instance:
        node, time, phase, first, start, end, probability, roles, parts, reading, step = entry
        return Instance(
            node,
            time=time,
            phase=phase,
            first=first,
            start=start,
            end=end,
            probability=probability,
            roles=tuple(Filled(role, self._tokens[t], p, load_mapped(mapped)) for role, t, p, mapped in roles),
            parts=tuple(self._instances[part] for part in parts),
            reading=reading,
            step=step,
        )

    def known(self, number: int) -> Instance:
        """An instance by its number."""
        return self._instances[number]

    def instance(self, number: int | None) -> Instance | None:
        """An instance, or none."""
        return None if number is None else self._instances[number]

    def define_waiting(self, number: int, waiting: Any) -> None:
        """This is the one with that number."""
        self._waiting[number] = waiting

    def waiting(self, number: int | None) -> Any:
        """Who has that number; one that is gone by now has none."""
        return None if number is None else self._waiting.get(number)

    def define_chooser_as(self, number: int, chooser: Chooser) -> Chooser:
        """This is the chooser with that number."""
        self._choosers[number] = chooser
        return chooser

    def chooser(self, number: int | None, default: Chooser | None = None) -> Chooser | None:
        """The chooser of that number."""
        return default if number is None else self._choosers.get(number, default)

    def define_blockers(self, number: int, blockers: Blockers) -> None:
        """These are the blockers of that number."""
        self._blockers[number] = blockers

    def blockers(self, number: int) -> Blockers | None:
        """The blockers of that number, if they are loaded."""
        return self._blockers.get(number)

    def key(self, key: Any) -> Any:
        """Lists back to the tuples that can be keys."""
        return tuple(self.key(part) for part in key) if isinstance(key, list | tuple) else key


def dump_mapped(mapped: dict[str, tuple[Weighted, ...]] | None) -> Any:
    """Values by the names that a profile gives them, as plain values."""
    if mapped is None:
        return None
    return [[name, [[_plain(v), w] for v, w in values]] for name, values in mapped.items()]


def load_mapped(state: Any) -> dict[str, tuple[tuple[Value, float], ...]] | None:
    """The same back."""
    if state is None:
        return None
    return {name: tuple((_value(v), w) for v, w in values) for name, values in state}


# Patterns as plain values, so that a snapshot carries the patterns it belongs to.


_CLASSES: Final = {name: getattr(language, name) for name in language.__all__}
_KIND: Final = "$"


def to_plain(value: Any) -> Any:
    """Dataclasses, enumerations, tuples and datetimes as dicts, lists and scalars.

    >>> to_plain(language.Duplicates(language.Keep.FIRST))["keep"]
    {'$': 'Keep', 'value': 'first'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {_KIND: type(value).__name__} | {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return {_KIND: type(value).__name__, "value": value.value}
    if isinstance(value, datetime):
        return {_KIND: "datetime", "value": value.isoformat()}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain`."""
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind == "datetime":
        return datetime.fromisoformat(value["value"])
    known = _CLASSES.get(cast("str", kind))
    if not isinstance(known, type):
        raise InputError(f"a snapshot names an unknown part {kind!r}", hint="it was written by another version")
    if issubclass(known, Enum):
        return known(value["value"])
    return known(**{name: from_plain(item) for name, item in value.items() if name != _KIND})
