"""A second reference implementation of patterns, written from docs/composite.md alone: slow, small and stateless.

Every operator is a function from its activation to the list of its instances, computed over the whole trace. Only
consumption needs history: the first moment with instances is decided, their events are marked as consumed, and the rest
is computed again. Only the values of the language are shared with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf

from guard_conditions import (
    Placed,
    Roles,
    below,
    events_of,
    holds,
    place,
    profile_holds,
    repeated_by,
    values_of,
)
from guard_counting import as_one, longest, repeated, selected
from guard_instances import Active, Found, Known, SeenEvent, absent, duplicates_of, joined, label_of, until
from guard_relations import allen

from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    ExclusiveOr,
    Field,
    Keep,
    Member,
    Negation,
    Pattern,
    Reference,
    Relation,
    Repetition,
    Selection,
    Subscription,
    TimeEvent,
)
from likewise.language import Sequence as Steps


@dataclass
class World:
    """A trace in its order, the patterns by name, and the last moment that is seen."""

    trace: Sequence[Event]
    patterns: dict[str, Subscription]
    horizon: int
    memo: dict[tuple[str, Active], list[Found]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = enumerate(self.trace)
        self.trace = [SeenEvent(e.id, e.tuples, e.theme, e.start, e.end, place) for place, e in seen]

    def detections(self, name: str, active: Active) -> list[Found]:
        """The detections of the pattern with this name, if it starts at this activation."""
        if (name, active) not in self.memo:
            body = self.patterns[name].body
            whole = body if isinstance(body, Composite) else Composite(Member(body))
            self.memo[name, active] = list(Running(self, whole, active).detections())
        return self.memo[name, active]

    def whole(self, name: str, *, position: int = 0) -> list[Found]:
        """The detections of a running pattern: active from its first event, or from when it was added."""
        moment = self.trace[max(0, position - 1)].end
        found = self.detections(name, Active(moment, position, whole=True))
        return [instance for instance in found if instance.known[0] <= self.horizon]

    def after(self, moment: int) -> Active:
        later = (n for n, event in enumerate(self.trace) if event.end > moment)
        return Active(moment, next(later, len(self.trace)))


@dataclass
class Prefix:
    """The found part of a sequence, from when the next part is awaited, and the undecided absences."""

    found: Found | None
    active: Active
    opened: int | None = None
    pending: tuple[tuple[int, Active], ...] = ()
    replaced: float = inf
    deferred: tuple[tuple[int, Active, float, float], ...] = ()


class Running:
    """One activation of a pattern, with its consumed events."""

    def __init__(self, world: World, composite: Composite, active: Active) -> None:
        self.world, self.composite, self.active = world, composite, active
        self.placed: Placed = place(composite)
        absences = [node for node in below(composite.root) if isinstance(node, Negation)]
        counts = [node for node in below(composite.root) if isinstance(node, Selection | Repetition | ExclusiveOr)]
        # Consumed events still count and break an `xor`. In a negation nothing is consumed.
        self.free = {id(part) for absence in absences for part in below(absence.part)}
        self.lasting = self.free | {id(part) for count in counts for part in below(count)}
        self.consumed: dict[Known, Known] = {}
        self.memo: dict[tuple[int, Active], list[Found]] = {}

    # detections and consumption

    def detections(self) -> Iterator[Found]:
        unique = self.composite.consumption is Consumption.UNIQUE
        decided: Known = (-1, -1)
        while later := [
            instance for instance in self.alone(self.composite.root, self.active) if instance.known > decided
        ]:
            decided = min(instance.known for instance in later)
            for instance in sorted((o for o in later if o.known == decided), key=lambda o: o.order):
                if instance.events & self.consumed.keys():
                    continue
                yield instance
                if unique:
                    self.consumed |= dict.fromkeys(instance.events, decided)
                    self.memo.clear()

    def gone(self, instance: Found, *, before: Known) -> bool:
        """Whether one of the events was consumed before a moment."""
        return any(self.consumed.get(event, until(1 << 62)) < before for event in instance.events)

    def spent(self, instance: Found) -> Known:
        return min((self.consumed.get(event, until(1 << 62)) for event in instance.events), default=until(1 << 62))

    # operators

    def of(self, node: Pattern, active: Active) -> list[Found]:
        """The instances of an active part, in order; for a member, with its choice of duplicates."""
        key = (id(node), active)
        if key not in self.memo:
            operator: Callable[[Pattern, Active], Iterable[Found]] = getattr(self, type(node).__name__.lower())
            self.memo[key] = sorted(operator(node, active), key=lambda instance: instance.order)
        return self.memo[key]

    def member(self, node: Member, active: Active) -> Iterator[Found]:
        for position, event in enumerate(self.world.trace):
            if position >= active.position and profile_holds(node.profile, event):
                roles = ((node.alias or "", event),)
                instance = Found(
                    event.end,
                    (event.end, position),
                    event.end,
                    event.start,
                    event.end,
                    (roles,),
                    frozenset({(event.end, position)}),
                )
                yield from self.checked(instance, self.placed.alone.get(node.alias or "", ()))

    def reference(self, node: Reference, active: Active) -> Iterator[Found]:
        label = node.alias or node.name
        for instance in self.world.detections(node.name, active):
            roles = tuple((f"{label}.{role}" if role else label, event) for role, event in instance.reading)
            yield from self.checked(replace(instance, readings=(roles,)), self.placed.alone.get(label, ()))

    def timeevent(self, node: TimeEvent, active: Active) -> Iterator[Found]:
        day = 86_400_000_000
        step, offset = (node.every, 0) if node.every is not None else (day, node.at or 0)
        moment = active.moment - active.moment % day + offset
        while moment <= self.world.horizon:
            if moment > active.moment or (active.whole and moment == active.moment):
                tick = Event("", (), (), moment, moment)
                yield Found(moment, until(moment), moment, moment, moment, (((node.alias or "", tick),),))
            moment += step

    def checked(self, instance: Found, conditions: Iterable[object]) -> Iterator[Found]:
        """The instance with the readings that satisfy the conditions, if there are any."""
        readings = tuple(roles for roles in instance.readings if all(holds(c, roles) for c in conditions))
        if readings:
            yield replace(instance, readings=readings)

    def disjunction(self, node: Disjunction, active: Active) -> Iterator[Found]:
        """Either part; instances of the same events are one instance with several readings."""
        found: dict[object, Found] = {}
        for instance in (instance for part in node.parts for instance in self.alone(part, active)):
            same = found.setdefault((instance.known, instance.events), instance)
            if same is not instance:
                early = min(same, instance, key=lambda way: (way.start, way.end))
                found[instance.known, instance.events] = replace(early, readings=same.readings + instance.readings)
        yield from found.values()

    def negation(self, node: Negation, active: Active) -> Iterator[Found]:
        """A silence: measured from activation and again from every instance of the part, once each."""
        times = [instance.time for instance in self.alone(node.part, active)]
        for opened in sorted({active.moment, *times}):
            ends = opened + (node.within or 0)
            if ends <= self.world.horizon and not any(opened < time <= ends for time in times):
                yield Found(ends, until(ends), ends, opened, ends, ((),))

    def selection(self, node: Selection, active: Active) -> Iterator[Found]:
        return as_one(instance for row in self.rows(node.part, active) for instance in selected(row, node))

    def repetition(self, node: Repetition, active: Active) -> Iterator[Found]:
        counted = longest if node.longest else repeated
        return as_one(instance for row in self.rows(node.part, active) for instance in counted(row, node))

    def rows(self, part: Pattern, active: Active) -> Iterator[list[Found]]:
        """The instances to count; for a member that is equal to itself, separately for each value.

        An instance that may be read in several ways is counted for the values of each, in the ways that have them.
        """
        found = [replace(instance, place=n) for n, instance in enumerate(self.alone(part, active))]
        fields = repeated_by(self.composite, part)
        by_value: dict[object, dict[int, Found]] = {}
        for instance in found:
            for roles in instance.readings:
                for values in product(*(self.counted_by(f, roles) for f in fields)):
                    row = by_value.setdefault(values, {})
                    ways = row[instance.place].readings if instance.place in row else ()
                    row[instance.place] = replace(instance, readings=(*ways, roles))
        for row in by_value.values():
            yield list(row.values())

    def counted_by(self, wanted: Field, roles: Roles) -> Sequence[object]:
        """The values for which a reading is counted; a reading without the member is counted, too."""
        return values_of(wanted, roles) if events_of(wanted.alias, roles) else [None]

    def relation(self, node: Relation, active: Active) -> Iterator[Found]:
        for left, right in self.together(node, (node.left, node.right), active):
            if allen((left.start, left.end), (right.start, right.end)) is node.relation:
                yield from self.checked(joined((left, right)), self.placed.between(node))

    def exclusiveor(self, node: ExclusiveOr, active: Active) -> Iterator[Found]:
        """One of them, with none of the others near it."""
        within = node.within or 0
        chosen = [self.picked(part, active, over=lambda instance: until(instance.time + within)) for part in node.parts]
        for k, ones in enumerate(chosen):
            others = [other for j, row in enumerate(chosen) if j != k for other in row]
            for instance in ones:
                near = [other for other in others if abs(other.time - instance.time) <= within]
                for left in self.unbroken(instance, [(other, self.placed.between(node)) for other in near]):
                    yield replace(left, time=instance.time + within, known=until(instance.time + within))

    def unbroken(self, instance: Found, away: Sequence[tuple[Found, list[Binding]]]) -> Iterator[Found]:
        """The instance with the readings that no negated part breaks, by the conditions on the negated parts."""
        readings = tuple(
            roles
            for roles in instance.readings
            if not any(
                all(holds(c, roles + other) for c in conditions)
                for happened, conditions in away
                for other in happened.readings
            )
        )
        if readings:
            yield replace(instance, readings=readings)

    # and

    def conjunction(self, node: Conjunction, active: Active) -> Iterator[Found]:
        wanted = [part for part in node.parts if not absent(part)]
        for parts in self.together(node, wanted, active):
            for instance in self.checked(joined(parts), self.placed.between(node)):
                if len(wanted) == len(node.parts):
                    yield instance
                    continue
                ends = min(part.time for part in parts) + (node.within or 0)
                for left in self.unbroken(instance, self.beside(node, parts, active)):
                    yield replace(left, time=ends, known=until(ends))

    def beside(self, node: Conjunction, parts: Sequence[Found], active: Active) -> list[tuple[Found, list[Binding]]]:
        """The negated parts that happened in the window of these parts, with their conditions."""
        low, high = min(part.time for part in parts), max(part.time for part in parts)
        return [
            (other, self.placed.guards(node, part))
            for part in node.parts
            if absent(part)
            for other in self.alone(part.part, active)
            if max(high, other.time) - min(low, other.time) <= (node.within or 0)
        ]

    def together(
        self, node: Conjunction | Relation, wanted: Sequence[Pattern], active: Active
    ) -> Iterator[list[Found]]:
        """One instance per part, of different events and within the window, after the choice of duplicates."""
        rows = [self.waiting(node, part, active) for part in wanted]
        for parts in product(*rows):
            completed = max(instance.time for instance in parts)
            if self.near(node, parts) and not any(
                self.replaced(part, instance, row, before=completed)
                for part, instance, row in zip(wanted, parts, rows, strict=True)
            ):
                yield list(parts)

    def waiting(self, node: Conjunction | Relation, part: Pattern, active: Active) -> list[Found]:
        found = [instance for instance in self.of(part, active) if not self.forbidden(node, part, instance, active)]
        if duplicates_of(part).keep is Keep.LAST:
            return [
                instance
                for instance in found
                if id(node) in self.lasting or not self.gone(instance, before=instance.known)
            ]
        return self.chosen(part, found, over=lambda instance: self.waits_beside(node, part, instance, active))

    def forbidden(self, node: Conjunction | Relation, part: Pattern, instance: Found, active: Active) -> bool:
        """Whether a negated part had happened before the only positive part."""
        if not isinstance(node, Conjunction) or not all(other is part or absent(other) for other in node.parts):
            return False
        before = [b for b in self.beside(node, (instance,), active) if b[0].known <= instance.known]
        return bool(before) and any(not any(self.unbroken(instance, [b])) for b in before)

    def waits_beside(self, node: Conjunction | Relation, part: Pattern, instance: Found, active: Active) -> Known:
        """The end of the window or, for the only positive part, the time at which a negated part happened."""
        ends = [until(1 << 62 if node.within is None else instance.time + node.within)]
        if isinstance(node, Conjunction) and all(other is part or absent(other) for other in node.parts):
            broken = [b for b in self.beside(node, (instance,), active) if not any(self.unbroken(instance, [b]))]
            ends += [until(max(instance.time, other.time)) for other, _ in broken]
        return min(ends)

    def replaced(self, part: Pattern, instance: Found, row: Sequence[Found], *, before: int) -> bool:
        """Whether a later duplicate came before the other parts; a part of `and` always waits for the others."""
        if duplicates_of(part).keep is not Keep.LAST:
            return False
        key = self.key(label_of(part), instance)
        later = (other for other in row[row.index(instance) + 1 :] if other.time < before)
        return any(self.key(label_of(part), other) == key for other in later)

    def near(self, node: Conjunction | Relation, parts: Sequence[Found]) -> bool:
        events = sum(len(p.events) for p in parts)
        times = [p.time for p in parts]
        apart = events == len(frozenset().union(*(p.events for p in parts)))
        return apart and (node.within is None or max(times) - min(times) <= node.within)

    # duplicates where no other part waits

    def alone(self, part: Pattern, active: Active) -> list[Found]:
        """The instances of a part of `or`, `not` or a count: duplicates count from activation on."""
        return self.picked(part, active, over=lambda _: until(1 << 62))

    def picked(self, part: Pattern, active: Active, *, over: Callable[[Found], Known]) -> list[Found]:
        return self.chosen(part, self.of(part, active), over=over)

    def chosen(self, part: Pattern, found: list[Found], *, over: Callable[[Found], Known]) -> list[Found]:
        choice = duplicates_of(part)
        if choice.keep is Keep.ALL:
            return found
        label, out = label_of(part), []
        kept: dict[object, tuple[Found | None, int]] = {}
        takes, lasts = id(part) not in self.free, id(part) in self.lasting
        for instance in found:
            if not lasts and self.gone(instance, before=instance.known):
                continue
            key = self.key(label, instance)
            held, count = kept.get(key, (None, 0))
            if held is not None and ((takes and self.gone(held, before=instance.known)) or over(held) < instance.known):
                held, count = None, 0
            if held is None:
                count += 1
                if count == (choice.nth or 1):
                    held = instance
                    out.append(instance)
            kept[key] = (held, count)
        return out

    def key(self, label: str, instance: Found) -> object:
        """Duplicates agree in the attributes that `=` conditions use; those of a name event by event."""
        fields = self.placed.equated.get(label, ())
        events = events_of(label, instance.reading)
        return tuple(frozenset(values_of(f, ((label, event),))) for f in fields for event in events)

    # sequence

    def sequence(self, node: Steps, active: Active) -> Iterator[Found]:
        return self.steps(node, 0, Prefix(None, active))

    def steps(self, node: Steps, k: int, prefix: Prefix) -> Iterator[Found]:
        """All ways to complete a sequence from its part k on."""
        if k == len(node.parts):
            assert prefix.found is not None
            yield from self.ended(node, prefix)
            return
        part = node.parts[k]
        if isinstance(part, Negation) and part.within is None:
            yield from self.steps(node, k + 1, replace(prefix, pending=(*prefix.pending, (k, prefix.active))))
        elif isinstance(part, Negation) and prefix.found is not None:
            for silent in self.silent(node, k, prefix):
                yield from self.steps(node, k + 1, silent)
        else:
            for extended in self.extended(node, k, prefix):
                yield from self.steps(node, k + 1, extended)

    def ended(self, node: Steps, prefix: Prefix) -> Iterator[Found]:
        """The whole sequence, if no negated part happened before the end of the window."""
        assert prefix.found is not None
        assert prefix.opened is not None
        if not prefix.pending:
            yield prefix.found
            return
        ends = prefix.opened + (node.within or 0)
        if ends >= prefix.replaced:
            return
        away = [happened for k, since in prefix.pending for happened in self.away(node, k, since, high=ends + 1)]
        for left in self.unbroken(prefix.found, away):
            yield replace(left, time=ends, known=until(ends))

    def silent(self, node: Steps, k: int, prefix: Prefix) -> Iterator[Prefix]:
        """After `not b for u`: none up to u later, and the next part comes after that."""
        part = node.parts[k]
        assert isinstance(part, Negation)
        assert prefix.found is not None
        assert prefix.opened is not None
        ends = prefix.active.moment + (part.within or 0)
        if ends > prefix.replaced or (node.within is not None and ends - prefix.opened > node.within):
            return
        away = self.away(node, k, prefix.active, high=ends + 1)
        away += [happened for j, since in prefix.pending for happened in self.away(node, j, since, high=ends)]
        for left in self.unbroken(prefix.found, away):
            found = replace(left, time=ends, known=until(ends), end=ends)
            yield replace(prefix, found=found, active=self.world.after(ends), replaced=inf, pending=())

    def away(
        self, node: Steps, k: int, since: Active, *, low: float = -inf, high: float = inf
    ) -> list[tuple[Found, list[Binding]]]:
        """The instances of a negated part between two times, with their conditions."""
        part = node.parts[k]
        assert isinstance(part, Negation)
        guards = self.placed.guards(node, part)
        return [(instance, guards) for instance in self.alone(part.part, since) if low <= instance.time < high]

    def extended(self, node: Steps, k: int, prefix: Prefix) -> list[Prefix]:
        """The prefixes with an instance of part k, after its choice of duplicates."""
        ways = [
            (w, instance)
            for instance in self.of(node.parts[k], prefix.active)
            for w in self.with_one(node, k, prefix, instance)
        ]
        choice = duplicates_of(node.parts[k])
        if choice.keep is Keep.ALL:
            return [way for way, _ in ways]
        groups: dict[object, list[tuple[Prefix, Found]]] = {}
        for way, instance in ways:
            groups.setdefault(self.key(label_of(node.parts[k]), instance), []).append((way, instance))
        choose = self.latest if choice.keep is Keep.LAST else self.earliest
        return [way for group in groups.values() for way in choose(node, k, group, choice.nth or 1)]

    def with_one(self, node: Steps, k: int, prefix: Prefix, instance: Found) -> Iterator[Prefix]:
        opened = instance.time if prefix.opened is None else prefix.opened
        if instance.time > prefix.replaced or (node.within is not None and instance.time - opened > node.within):
            return
        whole = instance if prefix.found is None else joined((prefix.found, instance), time=instance.time)
        gaps = prefix.deferred + tuple((j, since, *self.gap(node, j, instance)) for j, since in prefix.pending)
        later = [j for j, *_ in gaps if self.placed.undecided(node, node.parts[j], node.parts[k + 1 :])]
        away = [
            happened
            for j, since, low, high in gaps
            if j not in later
            for happened in self.away(node, j, since, low=low, high=high)
        ]
        for candidate in self.checked(whole, self.placed.between(node)):
            for left in self.unbroken(candidate, away):
                deferred = tuple(gap for gap in gaps if gap[0] in later)
                yield Prefix(left, self.world.after(instance.time), opened, deferred=deferred)

    def gap(self, node: Steps, k: int, instance: Found) -> tuple[float, float]:
        """The interval before an instance that must be free: since the part before it, else the time `within`."""
        leading = all(isinstance(part, Negation) and part.within is None for part in node.parts[:k])
        return (instance.first - (node.within or 0) if leading else -inf, instance.first)

    def earliest(self, node: Steps, k: int, group: list[tuple[Prefix, Found]], nth: int) -> Iterator[Prefix]:
        held: Prefix | None = None
        count = 0
        for way, instance in group:
            if id(node) not in self.lasting and self.gone(instance, before=instance.known):
                continue
            if held is not None and self.waits_until(node, k, held) < instance.known:
                held, count = None, 0
            if held is None:
                count += 1
                if count == nth:
                    held = way
                    yield way

    def waits_until(self, node: Steps, k: int, way: Prefix) -> Known:
        """The end of the window, the consumption of an event, or the break of an absence, whichever is first."""
        assert way.found is not None
        assert way.opened is not None
        window = until(1 << 62) if node.within is None else until(way.opened + node.within)
        spent = until(1 << 62) if id(node) in self.free else self.spent(way.found)
        return min(window, spent, self.broken_at(node, k, way))

    def broken_at(self, node: Steps, k: int, way: Prefix) -> Known:
        """The end of the moment at which an absence that follows was surely broken.

        Where the next part is more than a profile, it may have begun before that moment, and so is not broken for sure.
        """
        assert way.found is not None
        ends = [until(1 << 62)]
        following = next((part for part in node.parts[k + 1 :] if not absent(part)), None)
        if not isinstance(following, Member | TimeEvent | Negation | None):
            return min(ends)
        since, waiting = way.active, list[int]()
        for j in range(k + 1, len(node.parts)):
            part = node.parts[j]
            if not isinstance(part, Negation):
                break
            waiting.append(j)
            if part.within is not None:
                # Its time closes the absences before it; those after it begin there.
                over = since.moment + part.within
                ends += self.breaks(node, waiting[:-1], since, way, high=over)
                ends += self.breaks(node, [j], since, way, high=over + 1)
                since, waiting = self.world.after(over), []
        ends += self.breaks(node, waiting, since, way, high=inf)
        return min(ends)

    def breaks(self, node: Steps, parts: list[int], since: Active, way: Prefix, *, high: float) -> Iterator[Known]:
        """The ends of the moments at which absences with this beginning were certainly broken."""
        assert way.found is not None
        for j in parts:
            if not self.placed.undecided(node, node.parts[j], node.parts[j + 1 :]):
                for happened in self.away(node, j, since, high=high):
                    if not any(self.unbroken(way.found, [happened])):
                        yield until(happened[0].time)

    def latest(self, node: Steps, k: int, group: list[tuple[Prefix, Found]], _: int) -> Iterator[Prefix]:
        """Each duplicate until the next one; events at the time of the next one may still follow it."""
        lasts = id(node) in self.lasting
        group = [(way, instance) for way, instance in group if lasts or not self.gone(instance, before=instance.known)]
        for n, (way, _found) in enumerate(group):
            following = min((instance.time for _way, instance in group[n + 1 :]), default=inf)
            if k < len(node.parts) - 1:
                yield replace(way, replaced=following)
                continue
            assert way.found is not None
            assert way.opened is not None
            assert node.within is not None
            ends = way.opened + node.within
            if following > ends:
                yield replace(way, found=replace(way.found, time=ends, known=until(ends)))
