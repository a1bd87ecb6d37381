"""The book of plain patterns: what each asks for, and which predicates lead to it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite._flat_columns import Columns
from likewise.composite._flat_shape import Role, Shape, anchor_of, is_simple
from likewise.composite._flat_tables import Patterns, Postings
from likewise.events import Instant, Value
from likewise.language import Options, Profile
from likewise.matching import Aggregation, Matcher

NEVER: Final = np.iinfo(np.int64).max


class Facts(NamedTuple):
    """What one pattern holds and what became of its instances."""

    held: int
    detected: int
    expired: int
    dropped: int
    started: Instant | None


class FlatBook:
    """Plain patterns by name, as rows of columns that the kernel reads."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._columns = Columns()
        self._index: dict[str, int] = {}
        self._shapes: dict[str, Shape] = {}
        self._names: list[str] = []
        self._roles: list[tuple[str, str]] = []
        self._free: list[int] = []
        self._profiles: dict[tuple[Profile, Options], tuple[int, int]] = {}
        self._handles: dict[int, int] = {}
        self._users: dict[int, int] = {}
        self._unanchored = 0
        self._numbers = np.zeros(16, np.int64)
        self._patterns = Patterns(*_columns(_PATTERN_TYPES))
        self._postings = Postings(
            np.full(16, -1, np.int32),
            np.zeros(16, np.int32),
            np.zeros(16, np.int32),
            np.zeros(16, np.uint8),
            np.full(16, -1, np.int64),
        )
        self._posted = 0

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the patterns."""
        return tuple(self._index)

    def shape(self, name: str) -> Shape:
        """What a pattern asks for."""
        return self._shapes[name]

    @property
    def asks_matcher(self) -> bool:
        """Whether some profile needs more than a dictionary."""
        return bool(self._handles)

    def number(self, name: str) -> int:
        """The place of a pattern in the order of all."""
        return int(self._numbers[self._index[name]])

    def facts(self, name: str) -> Facts:
        """What one pattern holds."""
        at, p = self._index[name], self._patterns
        started = None if p.started[at] == NEVER else int(p.started[at])
        return Facts(int(p.held[at]), int(p.detected[at]), int(p.expired[at]), int(p.dropped[at]), started)

    def add(self, name: str, shape: Shape, *, number: int, started: Instant | None) -> None:
        """Enter a pattern; one that has not started waits for the first event."""
        index = self._free.pop() if self._free else self._new_index()
        self._names[index], self._roles[index] = name, (shape.first.name, shape.second.name)
        self._index[name], self._shapes[name] = index, shape
        self._numbers[index] = number
        self._fill(index, shape, NEVER if started is None else started)
        for role, member in enumerate((shape.first, shape.second)):
            self._post(self._predicate(member), index, role)

    def _new_index(self) -> int:
        index = len(self._names)
        self._names.append("")
        self._roles.append(("", ""))
        if index >= len(self._numbers):
            self._numbers = _doubled(self._numbers)
            columns: tuple[Any, ...] = self._patterns
            self._patterns = Patterns(*map(_doubled, columns))
        return index

    def _fill(self, index: int, shape: Shape, started: Instant) -> None:
        attribute = -1 if shape.attribute is None else self._columns.join(shape.attribute)
        row = (
            shape.within,
            started,
            shape.threshold,
            shape.keep,
            shape.keep_next,
            shape.unique,
            attribute,
            -1,
            0,
            0,
            0,
            0,
        )
        columns: tuple[Any, ...] = self._patterns
        for column, value in zip(columns, row, strict=True):
            column[index] = value

    def _predicate(self, role: Role) -> int:
        """The number under which a profile reports."""
        if is_simple(role):
            return self._room(self._simple(role))
        key = (role.profile, role.options)
        if key not in self._profiles:
            number = self._columns.number()
            handle = self._matcher.add(role.profile, options=role.options, key=("flat", number))
            self._profiles[key] = (number, handle)
            self._handles[handle] = number
            value = self._anchor(role)
            if value is None:
                self._unanchored += 1
            else:
                self._columns.anchor(value)
        number, _ = self._profiles[key]
        self._users[number] = self._users.get(number, 0) + 1
        return self._room(number)

    def _anchor(self, role: Role) -> Value | None:
        """A value that an event must have, unless a mean forgives its absence."""
        forgiving = self._matcher.settings(role.profile, role.options).aggregation is Aggregation.MEAN
        return None if forgiving else anchor_of(role)

    def _simple(self, role: Role) -> int:
        [predicate] = role.profile.predicates
        value: Any = predicate.value
        return self._columns.predicate(predicate.attribute, value)

    def _room(self, number: int) -> int:
        while number >= len(self._postings.head):
            head: Any = np.full_like(self._postings.head, -1)
            seen: Any = np.full_like(self._postings.seen, -1)
            self._postings = self._postings._replace(
                head=np.concatenate((self._postings.head, head)), seen=np.concatenate((self._postings.seen, seen))
            )
        return number

    def _post(self, predicate: int, index: int, role: int) -> None:
        if self._posted == len(self._postings.next):
            _, following, pattern, roles, _ = self._postings
            self._postings = self._postings._replace(
                next=_doubled(following), pattern=_doubled(pattern), role=_doubled(roles)
            )
        at, postings = self._posted, self._postings
        self._posted += 1
        postings.next[at], postings.pattern[at], postings.role[at] = postings.head[predicate], index, role
        postings.head[predicate] = at

    def strike(self, name: str) -> int:
        """Take a pattern out, and give the place that it had."""
        index, shape = self._index.pop(name), self._shapes.pop(name)
        for role in (shape.first, shape.second):
            self._unpost(role, index)
        self._patterns.started[index] = NEVER
        self._free.append(index)
        return index

    def _unpost(self, role: Role, index: int) -> None:
        simple = is_simple(role)
        number = self._simple(role) if simple else self._profiles[role.profile, role.options][0]
        head, following, pattern, _, _ = self._postings
        before, at = -1, int(head[number])
        while at != -1:
            after = int(following[at])
            if pattern[at] != index:
                before = at
            elif before == -1:
                head[number] = after
            else:
                following[before] = after
            at = after
        if not simple:
            self._release(role, number)

    def _release(self, role: Role, number: int) -> None:
        self._users[number] -= 1
        if not self._users[number]:
            _, handle = self._profiles.pop((role.profile, role.options))
            del self._handles[handle], self._users[number]
            self._matcher.remove(handle)
            value = self._anchor(role)
            if value is None:
                self._unanchored -= 1
            else:
                self._columns.unanchor(value)


_PATTERN_TYPES: Final = (
    np.int64,
    np.int64,
    np.float64,
    np.uint8,
    np.uint8,
    np.uint8,
    np.int32,
    np.int64,
    np.int64,
    np.int64,
    np.int64,
    np.int64,
)


def _columns(kinds: tuple[Any, ...]) -> Any:
    return (np.zeros(16, kind) for kind in kinds)


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.zeros_like(column)))
