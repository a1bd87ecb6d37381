"""A reference implementation of patterns: simple, slow, and without code of the detectors.

`found(pattern)` follows docs/composite.md line by line [003 sec 2.2, tables 1 and 2]: the instances of a pattern that
is activated at a moment are computed as one sorted list, and the trace is read again for each detection, because of
what earlier detections consumed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from brute_instances import (
    DAY,
    INF,
    Found,
    Step,
    aliases,
    allen,
    below,
    binds,
    children,
    compare,
    counted_inside,
    joined,
    longest,
    merged,
    nth,
    read_by,
    rows,
    smallest,
    top,
    values,
)

from likewise.events import Event
from likewise.language import model as m


class Trace:
    """A pattern over a finished trace."""

    def __init__(
        self,
        composite: m.Composite,
        events: Sequence[Event],
        *,
        match: Callable[[m.Profile, Event], float],
        horizon: int,
        start: int | None = None,
        threshold: float = 0.0,
        relate: Callable[[str, str], float] | None = None,
        known: Mapping[str, m.Subscription] | None = None,
    ) -> None:
        self.composite = composite
        self.events = events
        self.match = match
        self.horizon = horizon
        self.start = start if start is not None else (events[0].span[1] if events else horizon)
        self.threshold = threshold
        self.relate = relate
        self.known = known or {}
        self.consumed: dict[int, Step] = {}

    def detections(self, after: int | None = None, origin: int | None = None) -> list[Found]:
        """Step by step: complete instances that reach the threshold and contain no event of an earlier detection."""
        self.after = self.start - 1 if after is None else after
        self.origin = self.start if origin is None else origin
        if self.composite.consumption is not m.Consumption.UNIQUE:
            return [f for f in self._root() if f.p > 0 and f.p >= self.threshold]
        out: list[Found] = []
        done: Step = (-INF, 0, 0)
        while True:
            fresh = [f for f in self._root() if f.step > done and f.p > 0 and f.p >= self.threshold]
            if not fresh:
                return out
            done = fresh[0].step
            for f in fresh:
                if f.step == done and not any(r in self.consumed for r in f.ranks):
                    out.append(f)
                    self.consumed.update(dict.fromkeys(f.ranks, done))

    def _root(self) -> list[Found]:
        found = self.found(self.composite.root, self.after, self.origin, False)
        dup = getattr(self.composite.root, "duplicates", None)
        return [c for c, _ in self._select(found, self.composite.root, dup, lambda _: INF, False)]

    def found(self, node: m.Pattern, after: int, origin: int, free: bool | str) -> list[Found]:
        """Every instance of `node`, activated at `after`; `free` ones do not care for consumption.

        What is counted has happened, consumed or not: only the choice of duplicates cares.
        """
        name = type(node).__name__.lower()
        out: list[Found] = getattr(self, f"_{name}")(node, after, origin, free)
        out = self._together(node, out)
        out = [f for f in out if f.p > 0 and f.time <= self.horizon]
        if not free:
            out = [f for f in out if not self._taken(f, f.step)]
        return sorted(out, key=lambda f: f.order)

    def _lone(self, node: m.Pattern, after: int, origin: int, free: bool | str, hold: float = INF) -> list[Found]:
        """A part that no other part waits for; it may still keep only the first or the n-th of its duplicates."""
        found = self.found(node, after, origin, free)
        dup = getattr(node, "duplicates", None)
        return [f for f, _ in self._select(found, node, dup, lambda c: c.time + hold, free)]

    def _reference(self, node: m.Reference, after: int, origin: int, free: bool | str) -> list[Found]:
        """A name: what its pattern would detect if it started here, independent of consumption outside."""
        target = self.known[node.name]
        assert node.alias
        if isinstance(target.body, m.Profile):
            return self._member(m.Member(target.body, node.alias), after, origin, free)
        inner = Trace(
            target.body,
            self.events,
            match=self.match,
            horizon=self.horizon,
            threshold=0.1 if target.options.threshold is None else target.options.threshold,
            relate=self.relate,
            known=self.known,
        )
        out = []
        for f in inner.detections(after, origin):
            roles = tuple((f"{node.alias}.{a}", rank, e) for a, rank, e in f.roles)
            mine = [
                b for b in self.composite.where if {b.left.alias, getattr(b.right, "alias", node.alias)} == {node.alias}
            ]
            p = math.prod(self._holds(b, {node.alias: roles}) for b in mine) if roles else 1.0
            out.append(replace(f, roles=roles, p=f.p * p))
        return out

    def _member(self, node: m.Member, after: int, origin: int, free: bool | str) -> list[Found]:
        out = []
        for rank, e in enumerate(self.events):
            start, end = e.span
            if end > after:
                f = Found(end, 0, end, start, end, ((node.alias or "?", rank, e),), self.match(node.profile, e))
                out.append(replace(f, p=f.p * self._bound(node, [], f.roles)))
        return out

    def _timeevent(self, node: m.TimeEvent, after: int, origin: int, free: bool | str) -> list[Found]:
        step, shift = (node.every, 0) if node.every is not None else (DAY, node.at)
        assert step is not None
        assert shift is not None
        out = []
        t = (after - shift) // step * step + step + shift
        while t <= self.horizon:
            out.append(Found(t, 1, t, t, t, ((node.alias or "?", None, Event("", start=t, end=t)),), 1.0))
            t += step
        return out

    # operators

    def _sequence(self, node: m.Sequence, after: int, origin: int, free: bool | str) -> list[Found]:
        steps: list[m.Pattern] = []
        guards: list[tuple[int, m.Negation]] = []
        for part in node.parts:
            if isinstance(part, m.Negation) and part.within is None:
                guards.append((len(steps) - 1, part))
            else:
                steps.append(part)
        within = INF if node.within is None else node.within
        out: list[Found] = []

        def finish(prefix: list[Found], until: float) -> None:
            last_duplicates = getattr(steps[-1], "duplicates", None)
            last = last_duplicates is not None and last_duplicates.keep is m.Keep.LAST
            trailing = any(k == len(steps) - 1 for k, _ in guards)
            time, phase = prefix[-1].time, prefix[-1].phase
            if last or trailing:
                time, phase = prefix[0].time + node.within, 1
                if time > self.horizon or (last and not until > time):
                    return
            roles = tuple(r for f in prefix for r in f.roles)
            p = math.prod(f.p for f in prefix)
            for k, guard in guards:
                low = prefix[k].time if k >= 0 else after
                for j in self._lone(guard.part, low, low if k >= 0 else origin, True):
                    if k == len(steps) - 1:
                        inside = j.time <= time
                    else:
                        inside = j.time < prefix[k + 1].first and (k >= 0 or j.time >= prefix[0].first - within)
                    if inside:
                        p *= 1 - j.p * self._bound(node, [roles], j.roles)
            out.append(joined(prefix, time, phase, p))

        def breaking(part: m.Pattern, prefix: list[Found], low: int, start: int) -> list[int]:
            """When a negated part certainly happened, as far as these parts decide that."""
            roles = tuple(r for f in prefix for r in f.roles)
            asked = set().union(*(binds(b) for b in self.composite.where if binds(b) & aliases(part)))
            inside = {top(a) for a, _, _ in roles}
            later = set().union(*(aliases(step) for step in steps[len(prefix) :]))
            if asked & later - inside:
                return []
            return [
                j.time for j in self._lone(part, low, start, True) if j.p * self._bound(node, [roles], j.roles) == 1
            ]

        def forbidden(parts: list[Found]) -> bool:
            """Whether the last of these parts comes after a negated part that must not precede it."""
            for place, guard in guards:
                if place < len(parts) - 1:
                    low = parts[place].time if place >= 0 else after
                    high = parts[place + 1].first
                    least = low if place >= 0 else high - within - 1
                    times = breaking(guard.part, parts, low, low if place >= 0 else origin)
                    if any(least < time < high for time in times):
                        return True
            return False

        def broken(prefix: list[Found]) -> float:
            """When a negated part breaks the sequence that waits after these parts."""
            k, low = len(prefix) - 1, prefix[-1].time
            step = steps[k + 1] if k + 1 < len(steps) else None
            times: list[float] = [
                time
                for place, guard in guards
                if place == k and (step is None or self._at_once(step))
                for time in breaking(guard.part, prefix, low, low)
            ]
            if isinstance(step, m.Negation):
                over = low + (step.within or 0)
                if over <= prefix[0].time + within:
                    times += [time for time in breaking(step.part, prefix, low, low) if time <= over]
                    if not times and k + 2 < len(steps):
                        times.append(broken([*prefix, Found(over, 1, over, low, over, (), 1.0)]))
            return min(times, default=INF)

        def extend(prefix: list[Found], until: float, k: int) -> None:
            if prefix:
                until = min(until, broken(prefix)) if k < len(steps) else until
            if k == len(steps):
                finish(prefix, until)
                return
            step = steps[k]
            low = prefix[-1].time if prefix else after
            deadline = prefix[0].time + within if prefix else INF
            roles = tuple(r for f in prefix for r in f.roles)
            if isinstance(step, m.Negation) and prefix:
                time = low + (step.within or 0)
                if time <= min(deadline, self.horizon) and time <= until:
                    p = 1.0
                    for j in self._lone(step.part, low, low, True):
                        if j.time <= time:
                            p *= 1 - j.p * self._bound(node, [roles], j.roles)
                    if p > 0:
                        extend([*prefix, Found(time, 1, time, low, time, (), p)], INF, k + 1)
                return
            candidates = []
            for c in self.found(step, low, low if prefix else origin, free):
                p = c.p * (self._bound(node, [roles], c.roles) if prefix else 1.0)
                if c.time <= min(deadline, until) and p > 0 and not forbidden([*prefix, c]):
                    candidates.append(replace(c, p=p))

            def hold(c: Found) -> float:
                return min(deadline if prefix else c.time + within, broken([*prefix, c]))

            for c, new_until in self._select(candidates, step, getattr(step, "duplicates", None), hold, free):
                extend([*prefix, c], new_until, k + 1)

        extend([], INF, 0)
        return out

    def _at_once(self, step: m.Pattern) -> bool:
        """Whether a part begins when it is known; a part of several events may have begun before."""
        if isinstance(step, m.Reference):
            return isinstance(self.known[step.name].body, m.Profile)
        return isinstance(step, m.Member | m.TimeEvent | m.Negation)

    def _conjunction(
        self,
        node: m.Conjunction | m.Relation,
        after: int,
        origin: int,
        free: bool | str,
        relation: m.Allen | None = None,
    ) -> list[Found]:
        parts = (node.left, node.right) if isinstance(node, m.Relation) else node.parts
        guards = [p for p in parts if isinstance(p, m.Negation) and p.within is None]
        positive = [p for p in parts if p not in guards]
        within = INF if node.within is None else node.within
        chosen = []
        for part in positive:
            found = self.found(part, after, origin, free)
            dup = getattr(part, "duplicates", None)
            breaks = self._breaks(node, guards, after, origin) if len(positive) == 1 else _never
            found = [f for f in found if breaks(f) > f.time]
            chosen.append(
                self._select(found, part, dup, lambda c, breaks=breaks: min(c.time + within, breaks(c)), free)
            )
        out = []
        for combination in itertools.product(*chosen):
            fs = [f for f, _ in combination]
            ranks = [r for f in fs for r in f.ranks]
            low, high = min(f.time for f in fs), max(f.time for f in fs)
            if len(ranks) != len(set(ranks)) or high - low > within or any(u < high for _, u in combination):
                continue
            if relation is not None and allen(fs[0], fs[1]) is not relation:
                continue
            p = math.prod(f.p for f in fs) * self._bound(node, [f.roles for f in fs[:-1]], fs[-1].roles)
            time, phase = high, max(f.phase for f in fs if f.time == high)
            if guards:
                time, phase = low + node.within, 1
            roles = tuple(r for f in fs for r in f.roles)
            for guard in guards:
                for j in self._lone(guard.part, after, origin, True):
                    if max(high, j.time) - min(low, j.time) <= within:
                        p *= 1 - j.p * self._bound(node, [roles], j.roles)
            out.append(joined(fs, time, phase, p))
        return out

    def _breaks(
        self, node: m.Conjunction | m.Relation, guards: list[m.Negation], after: int, origin: int
    ) -> Callable[[Found], float]:
        """When a negated part breaks a single part that waits for the end of its window."""
        within = INF if node.within is None else node.within
        found = [j for guard in guards for j in self._lone(guard.part, after, origin, True)]

        def breaks(f: Found) -> float:
            times = [
                j.time
                for j in found
                if abs(j.time - f.time) <= within and j.p * self._bound(node, [f.roles], j.roles) == 1
            ]
            return min(times, default=INF)

        return breaks

    def _relation(self, node: m.Relation, after: int, origin: int, free: bool | str) -> list[Found]:
        return self._conjunction(node, after, origin, free, node.relation)

    def _disjunction(self, node: m.Disjunction, after: int, origin: int, free: bool | str) -> list[Found]:
        groups: dict[object, list[Found]] = {}
        for part in node.parts:
            for f in self._lone(part, after, origin, free):
                groups.setdefault((f.step, f.ranks), []).append(f)
        ways = [_one_span(group) for group in groups.values()]
        if self._asked_at(node) is not None:
            return [replace(f, read=((id(node), f.step),)) for group in ways for f in group]
        return [merged(group) for group in ways]

    def _asked_at(self, node: m.Disjunction) -> m.Pattern | None:
        """The largest operator with a condition that distinguishes the branches; they are not merged below it."""
        above = [
            place
            for b in self.composite.where
            if (place := self._decided_at(b)) is not node
            and binds(b) & aliases(node)
            and any(node is inner for inner in below(place))
        ]
        return max(above, key=lambda place: len(list(below(place))), default=None)

    def _decided_at(self, b: m.Binding) -> m.Pattern:
        """The smallest part with the members of a condition, or the count that it is the key of."""
        if b.left == b.right and not b.approximate:
            counts = [node for node in below(self.composite.root) if isinstance(node, m.Selection | m.Repetition)]
            for node in reversed([node for node in counts if b.left.alias in aliases(node.part)]):
                return node
        return smallest(self.composite.root, binds(b))

    def _together(self, node: m.Pattern, found: list[Found]) -> list[Found]:
        """Merge the readings of the same events where all conditions about them are decided."""
        ors = [inner for inner in below(node) if isinstance(inner, m.Disjunction) and self._asked_at(inner) is node]
        if not ors:
            return found
        groups: dict[object, list[Found]] = {}
        for f in found:
            if f.p > 0:
                groups.setdefault((f.step, read_by(ors, f)), []).append(f)
        return [merged(group) for group in groups.values()]

    def _exclusiveor(self, node: m.ExclusiveOr, after: int, origin: int, free: bool | str) -> list[Found]:
        assert node.within is not None
        parts = [self._lone(part, after, origin, free or "counted", node.within) for part in node.parts]
        out = []
        for k, instances in enumerate(parts):
            for f in instances:
                p = f.p
                for other in [j for i, js in enumerate(parts) if i != k for j in js]:
                    if abs(other.time - f.time) <= node.within:
                        p *= 1 - other.p * self._bound(node, [f.roles], other.roles)
                out.append(replace(f, time=f.time + node.within, phase=1, p=p))
        return out

    def _negation(self, node: m.Negation, after: int, origin: int, free: bool | str) -> list[Found]:
        assert node.within is not None
        blockers = self._lone(node.part, after, origin, True)
        anchors = [(origin, 1.0, -1)] + [(j.time, j.p, k) for k, j in enumerate(blockers)]
        out = []
        for moment, sure, k in anchors:
            time, p = moment + node.within, sure
            for j in blockers[k + 1 :]:
                if j.time <= time:
                    p *= 1 - j.p
            out.append(Found(time, 1, time, moment, time, (), p))
        return out

    def _selection(self, node: m.Selection, after: int, origin: int, free: bool | str) -> list[Found]:
        return _once([f for fs in nth(node, group) for f in fs] for group in self._counted(node, after, origin, free))

    def _counted(
        self, node: m.Selection | m.Repetition, after: int, origin: int, free: bool | str
    ) -> list[list[list[Found]]]:
        """The instances that are counted together: one group for each value of a member that is equal to itself.

        Each instance is counted once, with all readings of its events.
        """
        open_ors = [
            disjunction
            for disjunction in below(node)
            if isinstance(disjunction, m.Disjunction)
            and (at := self._asked_at(disjunction)) is not None
            and not any(at is inner for inner in below(node.part))
        ]
        groups: dict[object, list[Found]] = {}
        for f in self._lone(node.part, after, origin, free or "counted"):
            keys = [
                {v for a, _, e in f.roles if top(a) == b.left.alias for v in values(e, b.left.attribute)} or {None}
                for b in self.composite.where
                if b.left == b.right and not b.approximate and b.left.alias in aliases(node.part)
                if not counted_inside(node.part, b.left.alias)
            ]
            for key in itertools.product(*keys):
                groups.setdefault(key, []).append(f)
        out = []
        for group in groups.values():
            ways: dict[object, list[Found]] = {}
            for number, f in enumerate(group):
                ways.setdefault((f.step, read_by(open_ors, f)) if open_ors else number, []).append(f)
            out.append(list(ways.values()))
        return out

    def _repetition(self, node: m.Repetition, after: int, origin: int, free: bool | str) -> list[Found]:
        make = longest if node.longest else rows
        return _once(make(node, group) for group in self._counted(node, after, origin, free))

    # instance selection [003 table 2] and binding predicates

    def _select(
        self,
        found: list[Found],
        node: m.Pattern,
        duplicates: m.Duplicates | None,
        hold: Callable[[Found], float],
        free: bool | str,
    ) -> list[tuple[Found, float]]:
        keep = duplicates.keep if duplicates else m.Keep.ALL
        if keep is m.Keep.ALL:
            return [(f, INF) for f in found]
        out: list[tuple[Found, float]] = []
        classes: dict[object, list[Found]] = {}
        for f in found:
            classes.setdefault(self._class(node, f), []).append(f)
        for group in classes.values():
            if keep is m.Keep.LAST:
                out += [(f, g.time) for f, g in itertools.pairwise(group)] + [(group[-1], INF)]
                continue
            n = 1 if keep is m.Keep.FIRST else (duplicates.nth if duplicates else None)
            held: Found | None = None
            count = 0
            for f in group:
                if held is not None and (f.time > hold(held) or (free is not True and self._taken(held, f.step))):
                    held, count = None, 0
                if held is None:
                    count += 1
                    if count == n:
                        held = f
                        out.append((f, INF))
        return sorted(out, key=lambda pair: pair[0].order)

    def _taken(self, held: Found, step: Step) -> bool:
        return any(self.consumed.get(r, (INF, 0, 0)) < step for r in held.ranks)

    def _class(self, node: m.Pattern, f: Found) -> object:
        key = []
        for b in self.composite.where:
            if b.operator is m.Operator.EQ and not b.approximate and isinstance(b.right, m.Field):
                mine = [side for side in (b.left, b.right) if side.alias == getattr(node, "alias", None)]
                key += [tuple(frozenset(values(e, side.attribute)) for _, _, e in f.roles) for side in mine]
        return tuple(key)

    def _bound(self, node: m.Pattern, others: list[tuple[object, ...]], mine: tuple[object, ...]) -> float:
        """The product of all conditions that are first decidable at `node`, between parts already joined."""
        everything = [*others, mine]
        p = 1.0
        for b in self.composite.where:
            names = {b.left.alias} | ({b.right.alias} if isinstance(b.right, m.Field) else set())
            if isinstance(node, m.Member):
                if names == {node.alias}:
                    p *= self._holds(b, dict.fromkeys(names, mine))
                continue
            if len(names) < 2:
                continue
            place = {top(a): k for k, part in enumerate(everything) for a, _, _ in part if top(a) in names}
            crossing = any(names <= aliases(child) for child in children(node))
            if crossing or set(place) != names:
                continue
            # Pairs inside the prefix were checked when they were joined.
            if len(set(place.values())) == 1:
                continue
            p *= self._holds(b, {a: everything[k] for a, k in place.items()})
        return p

    def _holds(self, b: m.Binding, roles: dict[str, tuple[object, ...]]) -> float:
        left = [e for a, _, e in roles[b.left.alias] if top(a) == b.left.alias]
        if not isinstance(b.right, m.Field):
            return min(self._best(b, values(e, b.left.attribute), [b.right]) for e in left)
        right = [e for a, _, e in roles[b.right.alias] if top(a) == b.right.alias]
        return min(
            self._best(b, values(x, b.left.attribute), values(y, b.right.attribute)) for x in left for y in right
        )

    def _best(self, b: m.Binding, left: list[object], right: list[object]) -> float:
        return max((compare(b, x, y, self.relate) for x in left for y in right), default=0.0)


def _one_span(group: list[Found]) -> list[Found]:
    """Several readings of the same events are one instance, with the earliest span."""
    if len(group) == 1:
        return group
    early = min(group, key=lambda f: (f.start, f.end))
    return [replace(f, reading=f.p, first=early.first, start=early.start, end=early.end) for f in group]


def _never(_: Found) -> float:
    return INF


def _once(groups: Iterable[list[Found]]) -> list[Found]:
    """An instance found for several values counts once."""
    out: list[Found] = []
    for group in groups:
        before = set(out)
        out += [f for f in group if f not in before]
    return out
