"""The CECube and its Composite Event Matching Vector [001 sec IV.B, V, figures 4 to 6].

The cube of a node has a cell for each composite, each of its members and each occurrence time. A subscription sets the
flag of each member: it is awaited. When the member arrives, its flag is cleared; the vector counts, for each
relationship, the flags that are still set. At zero the composite may have happened, and the relationship is checked.
In the paper a flag is cleared once; here it is set again when all items of the member have expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from likewise.composite import relation_of
from likewise.events import Instant
from likewise.overlay.cube.decompose import Pairing
from likewise.overlay.cube.items import Id, Item
from likewise.overlay.cube.plane import ANY, Subscriber
from likewise.overlay.ring.ids import Key

LIMIT: Final = 100_000
"""The most items that one relationship keeps of a member; beyond it the oldest is dropped."""


class CubeValueSet:
    """A cell: flags and subscribers (SIM) by relationship, and the end time of the member's last item."""

    __slots__ = ("end", "flags", "sim")

    def __init__(self) -> None:
        self.flags: dict[str, int] = {}
        self.sim: dict[str, dict[str, Subscriber]] = {}
        self.end: Instant | None = None

    @property
    def flag(self) -> int:
        """The EventFlag: 1 if some relationship awaits this member."""
        return int(any(self.flags.values()))


class JoinState:
    """The join of a composite's members by one relationship: keeps their items, in any order of arrival."""

    def __init__(self, members: tuple[Key, ...], join: Pairing) -> None:
        self.members = members
        self.join = join
        self.sides = (members[-1], members[0]) if join.swapped else (members[0], members[-1])
        self.held: dict[Key, dict[Id, Item]] = {member: {} for member in members}

    def take(self, member: Key, item: Item) -> list[Item]:
        """Add an item of a member; returns its combinations with the items of the other member."""
        join = self.join
        if join.op == "or":
            return [item]
        pairs = []
        left, right = self.sides
        if member == left:
            pairs += [item.with_other(other) for other in self.held[right].values() if fits(join, item, other)]
        if member == right:
            pairs += [item.with_other(other) for other in self.held[left].values() if fits(join, other, item)]
        held = self.held[member]
        held[item.id] = item
        if len(held) > LIMIT:
            del held[next(iter(held))]
        return list({pair.id: pair for pair in pairs}.values()) if len(pairs) > 1 else pairs

    def drop(self, before: Instant) -> list[Id]:
        """Drop the items that ended before a moment; returns their ids."""
        dropped = []
        for held in self.held.values():
            old = [number for number, item in held.items() if item.end < before]
            dropped += old
            for number in old:
                del held[number]
        return dropped


def fits(join: Pairing, left: Item, right: Item) -> bool:
    """Whether two items may be in a relationship: a cheap, necessary condition [Algorithm 2, line 12]."""
    if join.within is not None:
        last = max(left.end, right.end)
        if (last - min(left.first, right.first) if join.whole else abs(left.end - right.end)) > join.within:
            return False
    if join.op == "then":
        return right.first > left.end
    if len(left.parts) == 1 == len(right.parts):
        if left.id == right.id:
            return False
    elif not left.ids.isdisjoint(right.ids):
        return False
    return join.op == "and" or relation_of((left.start, left.end), (right.start, right.end)).value == join.op


class Cube:
    """The cells of all composites at one rendezvous node.

    >>> from likewise.overlay.ring.ids import key_of
    >>> from likewise.overlay.cube.plane import rendezvous
    >>> cube = Cube()
    >>> ce, e1, e2 = map(key_of, ("CE1", "football match", "comments"))
    >>> cube.index(ce, (e1, e2), Pairing("and"), Subscriber("fan", key_of("S1")))
    True
    >>> cube.vector(ce)
    {'E1 and E2': 2}
    """

    def __init__(self) -> None:
        self.cells: dict[tuple[Key, Key, Key], CubeValueSet] = {}
        self.joins: dict[Key, dict[str, JoinState]] = {}
        self._composites: dict[Key, tuple[Key, ...]] = {}
        self._matrix: dict[Key, set[tuple[Key, Key]]] = {}
        self._of_member: dict[Key, dict[Key, None]] = {}

    # subscription [Algorithm 1]

    def index(
        self, composite: Key, members: tuple[Key, ...], join: Pairing, subscriber: Subscriber, *, time: Key = ANY
    ) -> bool:
        """Add a subscriber to the cells of a composite's members; False if the composite was known [lines 3 to 11]."""
        new = composite not in self._composites
        relationship = join.text
        if new:
            self._composites[composite] = members
        joins = self.joins.setdefault(composite, {})
        if relationship not in joins:
            joins[relationship] = JoinState(members, join)
        for member in members:
            cell = self.cells.setdefault((composite, member, time), CubeValueSet())
            self._matrix.setdefault(composite, set()).add((member, time))
            cell.flags.setdefault(relationship, 1)
            siv = cell.sim.setdefault(relationship, {})
            known = siv.get(subscriber.id)
            if known is None or known.version < subscriber.version:
                siv[subscriber.id] = subscriber
            self._of_member.setdefault(member, {})[composite] = None
        return new

    def remove(self, composite: Key, relationship: str, id: str) -> bool:
        """Remove a subscriber; True if it was the last, and the composite was removed."""
        for key, cell in [((composite, *rest), cell) for rest, cell in self.cell_matrix(composite).items()]:
            siv = cell.sim.get(relationship, {})
            siv.pop(id, None)
            if relationship in cell.sim and not siv:
                del cell.sim[relationship]
                del cell.flags[relationship]
                self.joins[composite].pop(relationship, None)
            if not cell.sim:
                del self.cells[key]
                self._matrix[composite].discard(key[1:])
        if self._matrix.get(composite):
            return False
        self._matrix.pop(composite, None)
        self.joins.pop(composite, None)
        for member in self._composites.pop(composite, ()):
            composites = self._of_member.get(member, {})
            composites.pop(composite, None)
            if not composites:
                self._of_member.pop(member, None)
        return True

    # views [figure 4]

    def cell_matrix(self, composite: Key) -> dict[tuple[Key, Key], CubeValueSet]:
        """The plane [I(CE), *, *]: the cells of a composite by member and time."""
        return {key: self.cells[composite, *key] for key in sorted(self._matrix.get(composite, ()))}

    def cell_sequence(self, composite: Key, time: Key = ANY) -> dict[Key, CubeValueSet]:
        """The line [I(CE), *, I(T)]: the cells of a composite at one time, by member."""
        members = self._composites.get(composite, ())
        return {member: self.cells[composite, member, time] for member in dict.fromkeys(members)}

    def composites_of(self, member: Key) -> Iterable[Key]:
        """The plane [*, I(E), *]: the composites that have this member [Algorithm 2, line 8]."""
        return tuple(self._of_member.get(member, ()))

    def vector(self, composite: Key, time: Key = ANY) -> dict[str, int]:
        """The Composite Event Matching Vector: the number of awaited members by relationship [figure 5]."""
        sums: dict[str, int] = {}
        for cell in self.cell_sequence(composite, time).values():
            for relationship, flag in cell.flags.items():
                sums[relationship] = sums.get(relationship, 0) + flag
        return sums

    def relationships(self, composite: Key) -> list[str]:
        """The relationships of a composite to which there are subscriptions."""
        return list(self.joins.get(composite, ()))

    def subscribers(self, composite: Key, relationship: str) -> list[Subscriber]:
        """The SIV of a relationship."""
        for member in self._composites.get(composite, ())[:1]:
            return list(self.cells[composite, member, ANY].sim.get(relationship, {}).values())
        return []

    # publication [Algorithm 2]

    def arrive(self, composite: Key, member: Key, item: Item) -> Iterator[tuple[str, Item]]:
        """Handle an item of a member: yields each combination that it completes, with its relationship."""
        sequence = self.cell_sequence(composite)
        cell = sequence.get(member)
        if cell is None:
            return
        cell.end = item.end
        for relationship in cell.flags:
            state = self.joins[composite][relationship]
            self._lower(sequence, member, relationship, state.join)
            if self.awaited(composite, relationship):
                # Another member is still awaited, so nothing can be complete.
                state.held[member][item.id] = item
            else:
                for pair in state.take(member, item):
                    yield relationship, pair

    def _lower(self, sequence: dict[Key, CubeValueSet], member: Key, relationship: str, join: Pairing) -> None:
        """Clear the flag of a member that arrived; with `or`, also that of the other [sec V]."""
        for other, cell in sequence.items():
            if other == member or join.op == "or":
                cell.flags[relationship] = 0

    def lower(self, composite: Key, member: Key, relationship: str) -> int:
        """Clear a flag as in the paper, without items; returns the flags left. At zero all are set again."""
        sequence = self.cell_sequence(composite)
        self._lower(sequence, member, relationship, self.joins[composite][relationship].join)
        left = self.awaited(composite, relationship)
        if not left:
            for cell in sequence.values():
                cell.flags[relationship] = 1
        return left

    def awaited(self, composite: Key, relationship: str) -> int:
        """One element of the matching vector: how many members are awaited."""
        return sum(cell.flags[relationship] for cell in self.cell_sequence(composite).values())

    def expire(self, composite: Key, now: Instant, *, grace: int) -> list[Id]:
        """Drop items that are too old for their window; a member without items is awaited again."""
        expired: list[Id] = []
        for relationship, state in self.joins.get(composite, {}).items():
            if state.join.within is None:
                continue
            expired += state.drop(now - state.join.within - grace)
            for member, cell in self.cell_sequence(composite).items():
                if state.join.op != "or" and not state.held[member]:
                    cell.flags[relationship] = 1
        return expired
