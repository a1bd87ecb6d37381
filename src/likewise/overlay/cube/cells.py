"""The CECube and its Composite Event Matching Vector [001 sec IV.B, V, figures 4 to 6].

The cube of a node has a cell for each composite, each of its members and each occurrence time. In the subscription
phase a flag says that the member is awaited. When the member comes, its flag goes down; the vector has, for each
relationship, how many flags are still up. At zero the composite may have happened, and the relationship is checked.
The paper's flags go down once; here a flag goes up again when what came is too old to be of use.
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
"""Items that one relationship holds at most; then the oldest go."""


class CubeValueSet:
    """A cell: flags and subscribers by relationship, and when the member last ended."""

    __slots__ = ("end", "flags", "sim")

    def __init__(self) -> None:
        self.flags: dict[str, int] = {}
        self.sim: dict[str, dict[str, Subscriber]] = {}
        self.end: Instant | None = None

    @property
    def flag(self) -> int:
        """The EventFlag: whether some relationship awaits this member."""
        return int(any(self.flags.values()))


class JoinState:
    """What came of two members, and the pairs that stand in one relationship, in whatever order they come."""

    def __init__(self, members: tuple[Key, ...], join: Pairing) -> None:
        self.members = members
        self.join = join
        self.sides = (members[-1], members[0]) if join.swapped else (members[0], members[-1])
        self.held: dict[Key, dict[Id, Item]] = {member: {} for member in members}

    def take(self, member: Key, item: Item) -> list[Item]:
        """An item of a member: what it makes with those of the other."""
        join = self.join
        if join.op == "or":
            return [item]
        made = []
        left, right = self.sides
        if member == left:
            made += [item.with_other(other) for other in self.held[right].values() if fits(join, item, other)]
        if member == right:
            made += [item.with_other(other) for other in self.held[left].values() if fits(join, other, item)]
        held = self.held[member]
        held[item.id] = item
        if len(held) > LIMIT:
            del held[next(iter(held))]
        return list({each.id: each for each in made}.values()) if len(made) > 1 else made

    def drop(self, before: Instant) -> list[Id]:
        """Forget what ended before a moment."""
        old = []
        for held in self.held.values():
            gone = [number for number, item in held.items() if item.end < before]
            old += gone
            for number in gone:
                del held[number]
        return old


def fits(join: Pairing, left: Item, right: Item) -> bool:
    """Whether two items stand in a relationship: necessary for the pattern, and cheap [Algorithm 2, line 12]."""
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
    """All composites of one rendezvous node.

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
        """Map a composite's members into their cells; False if this composite was mapped before [lines 3 to 11]."""
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
        """Take a subscriber out; True if the composite has none left and is gone."""
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
        """The plane [I(CE), *, *]: the composition at any time."""
        return {key: self.cells[composite, *key] for key in sorted(self._matrix.get(composite, ()))}

    def cell_sequence(self, composite: Key, time: Key = ANY) -> dict[Key, CubeValueSet]:
        """The line [I(CE), *, I(T)]: the composition at one time."""
        members = self._composites.get(composite, ())
        return {member: self.cells[composite, member, time] for member in dict.fromkeys(members)}

    def composites_of(self, member: Key) -> Iterable[Key]:
        """The plane [*, I(E), *]: the composites that a member belongs to [Algorithm 2, line 8]."""
        return tuple(self._of_member.get(member, ()))

    def vector(self, composite: Key, time: Key = ANY) -> dict[str, int]:
        """The Composite Event Matching Vector: by relationship, how many members are awaited [figure 5]."""
        sums: dict[str, int] = {}
        for cell in self.cell_sequence(composite, time).values():
            for relationship, flag in cell.flags.items():
                sums[relationship] = sums.get(relationship, 0) + flag
        return sums

    def relationships(self, composite: Key) -> list[str]:
        """How the members of a composite are related, as its subscribers want."""
        return list(self.joins.get(composite, ()))

    def subscribers(self, composite: Key, relationship: str) -> list[Subscriber]:
        """The SIV of a relationship."""
        for member in self._composites.get(composite, ())[:1]:
            return list(self.cells[composite, member, ANY].sim.get(relationship, {}).values())
        return []

    # publication [Algorithm 2]

    def arrive(self, composite: Key, member: Key, item: Item) -> Iterator[tuple[str, Item]]:
        """A member has come: for each relationship that is now fulfilled, what it makes."""
        sequence = self.cell_sequence(composite)
        cell = sequence.get(member)
        if cell is None:
            return
        cell.end = item.end
        for relationship in cell.flags:
            state = self.joins[composite][relationship]
            self._lower(sequence, member, relationship, state.join)
            if self.awaited(composite, relationship):
                # Someone is still awaited: it cannot be complete.
                state.held[member][item.id] = item
            else:
                for made in state.take(member, item):
                    yield relationship, made

    def _lower(self, sequence: dict[Key, CubeValueSet], member: Key, relationship: str, join: Pairing) -> None:
        """The flag of what came goes down; with `or`, that of the other too [sec V]."""
        for each, cell in sequence.items():
            if each == member or join.op == "or":
                cell.flags[relationship] = 0

    def lower(self, composite: Key, member: Key, relationship: str) -> int:
        """The flags alone, as the paper has them: how many are still up; at none, all go up for the next time."""
        sequence = self.cell_sequence(composite)
        self._lower(sequence, member, relationship, self.joins[composite][relationship].join)
        left = self.awaited(composite, relationship)
        if not left:
            for cell in sequence.values():
                cell.flags[relationship] = 1
        return left

    def awaited(self, composite: Key, relationship: str) -> int:
        """One element of the vector."""
        return sum(cell.flags[relationship] for cell in self.cell_sequence(composite).values())

    def expire(self, composite: Key, now: Instant, *, grace: int) -> list[Id]:
        """Forget what is too old for its window; a member of which nothing is left is awaited again."""
        gone: list[Id] = []
        for relationship, state in self.joins.get(composite, {}).items():
            if state.join.within is None:
                continue
            gone += state.drop(now - state.join.within - grace)
            for member, cell in self.cell_sequence(composite).items():
                if state.join.op != "or" and not state.held[member]:
                    cell.flags[relationship] = 1
        return gone
