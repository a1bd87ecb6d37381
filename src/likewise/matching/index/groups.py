"""Groups: which profiles are matched together, and whether they are all scored or indexed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TypeAlias

from likewise.language import Profile
from likewise.matching.index.dense import DenseGroup
from likewise.matching.index.sparse import SparseGroup
from likewise.matching.index.variants import ClusteredGroup, ClusteredIndex, HybridGroup, HybridIndex
from likewise.matching.settings import Approach, Settings

IDLE = 16
"""So many groups without any profile are kept, with what they know of events' words."""

MOVED = 4
"""So many profiles go over to the index with each new one there, so that no single one has to wait for all."""

MatchGroup: TypeAlias = DenseGroup | SparseGroup
GroupKey: TypeAlias = tuple[Approach, tuple[str, ...], type[MatchGroup]]

_KINDS: dict[str, tuple[type[DenseGroup], type[SparseGroup]]] = {
    "clustered": (ClusteredGroup, ClusteredIndex),
    "hybrid": (HybridGroup, HybridIndex),
}


class Groups(Collection[MatchGroup]):
    """Profiles of one approach and, where themes decide, one theme: scored while they are few, indexed when many."""

    def __init__(self, make: Callable[[GroupKey], MatchGroup], *, dense: int) -> None:
        self._make = make
        self.dense = dense
        self._groups: dict[GroupKey, MatchGroup] = {}
        self._idle: dict[GroupKey, None] = {}
        self._waiting: dict[GroupKey, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[MatchGroup]:
        return iter(self._groups.values())

    def __contains__(self, group: object) -> bool:
        return group in self._groups.values()

    def place(self, slot: int, profile: Profile, settings: Settings) -> MatchGroup:
        """Add a profile where it belongs: once there is an index, to that."""
        scored, indexed = _kinds(settings)
        takes = SparseGroup.takes(settings, len(profile.predicates))
        kind = indexed if takes and self._many(_key(settings, profile, scored), indexed) else scored
        key = _key(settings, profile, kind)
        self._idle.pop(key, None)
        if key not in self._groups:
            self._groups[key] = self._make(key)
        group = self._groups[key]
        group.add(slot, profile, settings)
        group.make_room()
        if kind is scored and takes:
            self._waiting.setdefault(key, {})[slot] = None
        return group

    def _many(self, scored: GroupKey, indexed: type[MatchGroup]) -> bool:
        few, index = self._groups.get(scored), self._groups.get((scored[0], scored[1], indexed))
        return bool(index and index.conditions.used) or (few is not None and few.conditions.used >= self.dense)

    def moving(self, profile: Profile, settings: Settings) -> list[int]:
        """Which profiles that are still all scored are to be placed anew, now that this one is indexed."""
        waiting = self._waiting.get(_key(settings, profile, _kinds(settings)[0]), {})
        return list(islice(waiting, MOVED))

    def leave(self, group: MatchGroup, slot: int, profile: Profile, settings: Settings) -> None:
        """Remove a profile. A few groups without any are kept, in case some come again, and the others dropped."""
        group.remove(slot)
        group.make_room()
        self._waiting.get(_key(settings, profile, type(group)), {}).pop(slot, None)
        if group.conditions.used:
            return
        self._idle[_key(settings, profile, type(group))] = None
        if len(self._idle) > IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._groups[oldest]
            self._waiting.pop(oldest, None)


def _kinds(settings: Settings) -> tuple[type[DenseGroup], type[SparseGroup]]:
    return _KINDS.get(settings.approach.base, (DenseGroup, SparseGroup))


def _key(settings: Settings, profile: Profile, kind: type[MatchGroup]) -> GroupKey:
    theme = tuple(sorted(set(profile.theme))) if settings.approach.base == "thematic" else ()
    return settings.approach, theme, kind
