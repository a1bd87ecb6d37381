"""The book of plain patterns: what each asks for, and which predicates lead to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite._columns import Columns
from likewise.composite._flat_shape import Role, Shape, anchor_of
from likewise.composite._flat_tables import HIT, MOST_KEYS, NEVER, Tables, new_predicates, new_tables, widened
from likewise.composite._pool import is_simple
from likewise.composite.hits import HitBook
from likewise.events import Event, Instant, Value
from likewise.language import Options, Profile
from likewise.matching import Aggregation, Matcher


class Facts(NamedTuple):
    """What one pattern holds and what became of its instances."""

    held: int
    detected: int
    dropped: int
    started: Instant | None


class FlatBook:
    """Plain patterns by name, as rows of the tables that the kernel reads."""

    def __init__(self, matcher: Matcher | HitBook, columns: Columns) -> None:
        self._matcher = matcher
        self._columns = columns
        self._index: dict[str, int] = {}
        self._shapes: dict[str, Shape] = {}
        self._names: list[str] = []
        self._roles: list[tuple[str, ...]] = []
        self._free: list[int] = []
        self._free_places: dict[int, list[int]] = {}
        self._placed = 0
        self._profiles: dict[tuple[Profile, Options], tuple[int, int]] = {}
        self._handles: dict[int, int] = {}
        self._users: dict[int, int] = {}
        self._unanchored = 0
        self._deep = 0
        self._numbers = np.zeros(16, np.int64)
        self._posted = 0
        self._free_postings: list[int] = []
        self._tables: Tables = new_tables()

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
        p = self._tables.patterns[self._index[name]]
        started = None if p["started"] == NEVER else int(p["started"])
        return Facts(int(p["held"]), int(p["detected"]), int(p["dropped"]), started)

    def sure(self, name: str, role: str, event: Event) -> float | None:
        """How surely an event fills a role of a pattern; None if the pattern is gone."""
        shape = self._shapes.get(name)
        asked = next((one for one in shape.roles if one.name == role), None) if shape is not None else None
        if asked is None:
            return None
        if self._looked_up(asked):
            return 1.0
        if isinstance(self._matcher, HitBook):
            return None
        _, wanted = self._profiles[_profile_key(asked)]
        _, handle, score = self._matcher.score_batch(self._matcher.encode([event]))
        mine = handle == wanted
        found = self._matcher.probabilities(handle[mine], score[mine])
        return float(found[0]) if len(found) else None

    def _with(self, **tables: Any) -> None:
        self._tables = self._tables._replace(**tables)

    # coming

    def add(self, name: str, shape: Shape, *, number: int, started: Instant | None) -> None:
        """Enter a pattern; one that has not started waits for the first event."""
        index = self._free.pop() if self._free else self._new_index()
        self._names[index], self._roles[index] = name, tuple(role.name for role in shape.roles)
        self._index[name], self._shapes[name] = index, shape
        self._numbers[index] = number
        self._deep += _is_deep(shape)
        self._widen(len(shape.roles))
        first = self._places(len(shape.all_roles))
        self._fill(index, shape, first, NEVER if started is None else started)
        self._tables.stops[first : first + len(shape.all_roles)] = 0
        for place, role in enumerate(shape.all_roles, first):
            keys = [self._columns.join(attribute) for attribute in role.attributes]
            self._tables.places[place] = (index, role.keep, *keys, *(-1,) * (MOST_KEYS - len(keys)))
            self._post(self._predicate(role), place)

    def _new_index(self) -> int:
        index = len(self._names)
        self._names.append("")
        self._roles.append(())
        if index >= len(self._numbers):
            self._numbers = _doubled(self._numbers)
            self._with(patterns=_doubled(self._tables.patterns), furthest=_doubled(self._tables.furthest))
        return index

    def _widen(self, width: int) -> None:
        t = self._tables
        if width > t.ranks.shape[1]:
            ranks, furthest = widened(t.ranks, width, -1), widened(t.furthest, width, -1)
            self._with(ranks=ranks, furthest=furthest, found_ranks=widened(t.found_ranks, width, NEVER))

    def _places(self, count: int) -> int:
        """So many places in a row."""
        free = self._free_places.get(count)
        if free:
            return free.pop()
        first = self._placed
        self._placed += count
        while self._placed > len(self._tables.places):
            self._with(places=_doubled(self._tables.places), stops=_doubled(self._tables.stops))
        return first

    def _fill(self, index: int, shape: Shape, first: int, started: Instant) -> None:
        asked = (first, len(shape.roles), shape.joint, shape.unique)
        became = (0, 0, 0, 0)
        # In the order of the columns, as assigning them by name would cost more than all the rest.
        guard = -1 if shape.guard is None else first + len(shape.roles)
        ends = (guard, shape.after, shape.spread)
        row = (shape.within, started, shape.threshold, *became, *asked, -1, -1, 0, 0, 0, 0, *ends)
        self._tables.patterns[index] = row

    def _predicate(self, role: Role) -> int:
        """The number under which a profile reports."""
        if self._looked_up(role):
            return self._room(self._simple(role))
        key = _profile_key(role)
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

    def _looked_up(self, role: Role) -> bool:
        """Whether a dictionary answers the profile; hits that come from elsewhere tell of all."""
        return isinstance(self._matcher, Matcher) and is_simple(role.profile, role.options)

    def _anchor(self, role: Role) -> Value | None:
        """A value that an event must have, unless a mean forgives its absence."""
        if isinstance(self._matcher, HitBook):
            return None
        forgiving = self._matcher.settings(role.profile, role.options).aggregation is Aggregation.MEAN
        return None if forgiving else anchor_of(role)

    def _simple(self, role: Role) -> int:
        [predicate] = role.profile.predicates
        value: Any = predicate.value
        return self._columns.predicate(predicate.attribute, value)

    def _room(self, number: int) -> int:
        size = len(self._tables.predicates)
        while number >= size:
            self._with(predicates=np.concatenate((self._tables.predicates, new_predicates(size))))
            size = len(self._tables.predicates)
        return number

    def _post(self, predicate: int, place: int) -> None:
        if self._free_postings:
            at = self._free_postings.pop()
        else:
            at = self._posted
            self._posted += 1
        if at == len(self._tables.postings):
            postings = _doubled(self._tables.postings)
            self._with(postings=postings, hits=np.zeros(len(postings), HIT))
        self._tables.postings[at] = (place, self._tables.predicates["head"][predicate])
        self._tables.predicates["head"][predicate] = at

    # going

    def strike(self, name: str) -> int:
        """Take a pattern out, and give the place that it had."""
        index, shape = self._index.pop(name), self._shapes.pop(name)
        first = int(self._tables.patterns["first"][index])
        for place, role in enumerate(shape.all_roles, first):
            self._unpost(role, place)
        self._deep -= _is_deep(shape)
        self._tables.patterns["started"][index] = NEVER
        self._free.append(index)
        self._free_places.setdefault(len(shape.all_roles), []).append(first)
        return index

    def _unpost(self, role: Role, place: int) -> None:
        simple = self._looked_up(role)
        number = self._simple(role) if simple else self._profiles[_profile_key(role)][0]
        heads, postings = self._tables.predicates["head"], self._tables.postings
        before, at = -1, int(heads[number])
        while at != -1:
            after = int(postings["next"][at])
            if postings["place"][at] != place:
                before = at
            else:
                self._free_postings.append(at)
                if before == -1:
                    heads[number] = after
                else:
                    postings["next"][before] = after
            at = after
        if not simple:
            self._release(role, number)

    def _release(self, role: Role, number: int) -> None:
        self._users[number] -= 1
        if not self._users[number]:
            _, handle = self._profiles.pop(_profile_key(role))
            del self._handles[handle], self._users[number]
            self._matcher.remove(handle)
            value = self._anchor(role)
            if value is None:
                self._unanchored -= 1
            else:
                self._columns.unanchor(value)


def _is_deep(shape: Shape) -> bool:
    """Whether instances of one event may be found in another order than that of their events."""
    return shape.joint or len(shape.roles) > 2 or (shape.deferred and len(shape.roles) > 1)


def _profile_key(role: Role) -> tuple[Profile, Options]:
    return role.profile, role.options


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.zeros_like(column)))
