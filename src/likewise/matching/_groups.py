"""Groups: which profiles are matched together, and whether they are all scored or indexed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from likewise.language import Profile
from likewise.matching._approach import Approach, Settings
from likewise.matching._dense import DenseGroup
from likewise.matching._sparse import SparseGroup
from likewise.matching._variants import ClusteredGroup, ClusteredIndex, HybridGroup, HybridIndex

IDLE = 16
"""So many groups without any profile are kept, with what they know of events' words."""

Group: TypeAlias = DenseGroup | SparseGroup
GroupKey: TypeAlias = tuple[Approach, tuple[str, ...], type[Group]]

_KINDS: dict[str, tuple[type[DenseGroup], type[SparseGroup]]] = {
    "clustered": (ClusteredGroup, ClusteredIndex),
    "hybrid": (HybridGroup, HybridIndex),
}


class Groups(Collection[Group]):
    """Profiles of one approach and, where themes decide, one theme: scored while they are few, indexed when many."""

    def __init__(self, make: Callable[[GroupKey], Group], *, dense: int) -> None:
        self._make = make
        self._dense = dense
        self._groups: dict[GroupKey, Group] = {}
        self._idle: dict[GroupKey, None] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __contains__(self, group: object) -> bool:
        return group in self._groups.values()

    def of(self, settings: Settings, profile: Profile) -> Group:
        """Where a new profile belongs."""
        scored, indexed = _KINDS.get(settings.approach.base, (DenseGroup, SparseGroup))
        few = self._groups.get(_key(settings, profile, scored))
        full = few is not None and few.conditions.used >= self._dense
        kind = indexed if full and SparseGroup.takes(settings, len(profile.predicates)) else scored
        key = _key(settings, profile, kind)
        self._idle.pop(key, None)
        if key not in self._groups:
            self._groups[key] = self._make(key)
        return self._groups[key]

    def left(self, group: Group, settings: Settings, profile: Profile) -> None:
        """A profile was removed: a few groups without any are kept, in case some come again, and the others dropped."""
        if group.conditions.used:
            return
        self._idle[_key(settings, profile, type(group))] = None
        if len(self._idle) > IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._groups[oldest]


def _key(settings: Settings, profile: Profile, kind: type[Group]) -> GroupKey:
    theme = tuple(sorted(set(profile.theme))) if settings.approach.base == "thematic" else ()
    return settings.approach, theme, kind
