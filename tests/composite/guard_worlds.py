"""Random patterns and traces: every case is determined by a seed and has a list of features."""

from __future__ import annotations

import itertools
import re
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from guard_conditions import labels_below, parts_of, sides

from likewise.events import Event, Value
from likewise.language import (
    Allen,
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    Duplicates,
    ExclusiveOr,
    Field,
    Keep,
    Member,
    Negation,
    Operator,
    Pattern,
    Predicate,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
    format_subscription,
    parse,
)

SECOND = 1_000_000
KINDS = "ABC"
ROOMS: tuple[Value, ...] = (1, 1, 2, 2, 1.0, "1", "x", True)


@dataclass(frozen=True)
class Case:
    """Patterns (of which the last is tested), a trace in order of arrival, and the last moment."""

    seed: int
    patterns: tuple[Subscription, ...]
    trace: tuple[Event, ...]
    horizon: int

    def text(self) -> str:
        """The case as text, for pasting."""
        lines = [format_subscription(pattern) for pattern in self.patterns]
        return "\n".join([*lines, *map(event_text, self.trace), f"advance to {self.horizon / SECOND:g} s"])


def event_text(event: Event) -> str:
    span = f"{event.end / SECOND:g}" if event.start == event.end else f"{event.start / SECOND:g}-{event.end / SECOND:g}"
    return f"  {event.id}@{span}: " + " ".join(f"{name}={value!r}" for name, value in event.tuples)


def read_case(text: str, *, seed: int = 0) -> Case:
    """A case from its text; values that are no Python literals are words.

    >>> case = read_case("p: {k = A} as a\\n e1@2: k=A r=1\\n e2@3-5: k='B'")
    >>> case.trace[1].start, case.trace[1].end, case.horizon
    (3000000, 5000000, 14000000)
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    trace = tuple(read_event(line) for line in lines if EVENT.match(line))
    advance = [line for line in lines if line.startswith("advance to ")]
    patterns = parse("\n".join(line for line in lines if not EVENT.match(line) and line not in advance))
    horizon = max(e.end for e in trace) + 9 * SECOND
    if advance:
        horizon = round(float(advance[0].split()[2]) * SECOND)
    return Case(seed, tuple(patterns), trace, horizon)


EVENT = re.compile(r"(\w+)@([\d.]+)(?:-([\d.]+))?:")


def read_event(line: str) -> Event:
    head = EVENT.match(line)
    assert head is not None
    name, start, end = head.groups()
    pairs = (word.split("=", 1) for word in line[head.end() :].split())
    tuples = tuple((attribute, read_value(value)) for attribute, value in pairs)
    return Event(name, tuples, (), round(float(start) * SECOND), round(float(end or start) * SECOND))


def read_value(text: str) -> Value:
    try:
        value: Value = literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value


@dataclass
class Maker:
    """Makes one case from a stream of random numbers."""

    random: Random
    used: int = 0
    names: list[str] = field(default_factory=list)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def alias(self) -> str:
        self.used += 1
        return "abcdefghijklmnopqrstuvwxyz"[self.used - 1]

    # traces

    def trace(self, most: int) -> tuple[Event, ...]:
        random, time, out = self.random, self.random.choice((0, 0, 3, 86_395)), []
        gaps, few = self.chance(0.25), self.chance(0.5)
        for number in range(random.randint(3, most)):
            time += random.choice((0, 1, 1, 1, 2, 3))
            length = random.choice((0, 0, 0, 1, 2, 4))
            tuples: list[tuple[str, Value]] = [("k", kind) for kind in self.kinds()]
            for attribute in ("r", "s"):
                if not (gaps and self.chance(0.3)):
                    tuples += [(attribute, value) for value in self.rooms(few)]
            if not (gaps and self.chance(0.2)):
                tuples.append(("v", random.randint(0, 3)))
            out.append(Event(f"e{number:02}", tuple(tuples), (), max(0, time - length) * SECOND, time * SECOND))
        if self.chance(0.7):
            out.sort(key=lambda e: (e.end, e.start))
            out = [Event(f"e{n:02}", e.tuples, (), e.start, e.end) for n, e in enumerate(out)]
        return tuple(out)

    def kinds(self) -> list[str]:
        first = self.random.choice(KINDS)
        return [first] if self.chance(0.88) else sorted({first, self.random.choice(KINDS)})

    def rooms(self, few: bool) -> list[Value]:
        choice = (1, 2) if few else ROOMS
        number = 2 if not few and self.chance(0.1) else 1
        return list(dict.fromkeys(self.random.choice(choice) for _ in range(number)))

    # patterns

    def profile(self) -> Profile:
        kind = Predicate("k", Operator.EQ, self.random.choice(KINDS))
        number = Predicate("v", Operator.GT, self.random.randint(0, 1))
        return Profile(self.random.choice(((kind,),) * 8 + ((number,), (kind, number))))

    def duplicates(self, last: bool) -> Duplicates | None:
        if self.chance(0.6):
            return None
        keep = self.random.choice((Keep.FIRST, Keep.FIRST, Keep.LAST if last else Keep.FIRST, Keep.NTH, Keep.ALL))
        return Duplicates(keep, 2 if keep is Keep.NTH else None)

    def leaf(self, *, last: bool = True) -> Pattern:
        if self.names and self.chance(0.5):
            return Reference(self.random.choice(self.names), self.alias(), self.duplicates(last))
        if self.chance(0.03):
            return TimeEvent(every=self.random.choice((2, 5)) * SECOND, alias=self.alias())
        return Member(self.profile(), self.alias(), self.duplicates(last))

    def within(self, *, least: int = 1) -> int:
        return self.random.choice((1, 2, 3, 5, 8)[least - 1 :]) * SECOND

    def maybe_within(self) -> int | None:
        return None if self.chance(0.15) else self.within()

    def flat(self) -> Pattern:
        """A pattern of a form that may be compiled: a sequence or conjunction of profiles, at most one absence."""
        parts: list[Pattern] = [self.leaf() for _ in range(self.random.choice((1, 2, 2, 2, 3, 3, 4)))]
        if len(parts) == 1 and self.chance(0.5):
            return parts[0]
        if self.chance(0.3) and len(parts) > 1:
            return Conjunction(tuple(parts), self.maybe_within())
        if self.chance(0.5) or len(parts) == 1:
            away = Negation(self.leaf(last=False))
            parts.insert(self.random.randint(0 if self.chance(0.2) else 1, len(parts)), away)
            return Sequence(tuple(parts), self.within())
        return Sequence(tuple(parts), self.maybe_within())

    def plain(self) -> Composite:
        """Equalities of all kinds between members, which the compiled path supports or just does not."""
        names, self.names = self.names, []
        number = self.random.choice((1, 2, 2, 2, 3, 3, 4))
        parts: list[Pattern] = [Member(self.profile(), self.alias(), self.few()) for _ in range(number)]
        root: Pattern
        if number > 1 and self.chance(0.25):
            root = Conjunction(tuple(parts), self.maybe_within())
        elif self.chance(0.45):
            place = self.random.randint(1, number)
            parts.insert(place, Negation(Member(self.profile(), self.alias())))
            root = Sequence(tuple(parts), self.within(least=2))
        else:
            root = Sequence(tuple(parts), self.maybe_within()) if number > 1 else parts[0]
        self.names = names
        members = sorted(labels_below(root))
        where = self.joined(members) if self.chance(0.8) else self.where(root)
        consumption = self.random.choice((None, Consumption.UNIQUE, Consumption.UNIQUE))
        return Composite(root, where, consumption)

    def few(self) -> Duplicates | None:
        return self.random.choice((None, None, None, Duplicates(Keep.FIRST), Duplicates(Keep.LAST)))

    def joined(self, members: list[str]) -> tuple[Binding, ...]:
        """Equalities in a tree over the members, by one attribute of each or by any."""
        self.random.shuffle(members)
        by = dict.fromkeys(members, "r") if self.chance(0.5) else {name: self.random.choice("rs") for name in members}
        loose, out = self.chance(0.3), []
        for n in range(1, len(members)):
            left, right = members[self.random.randrange(n)], members[n]
            if not self.chance(0.1):
                own = self.random.choice("rs") if loose else by[left]
                out.append(self.equality(left, right, own, by[right]))
        return tuple(out)

    def node(self, depth: int, *, last: bool = True) -> Pattern:
        if depth == 0 or self.chance(0.25):
            return self.leaf(last=last)
        make = self.random.choice(
            (self.sequence, self.sequence, self.conjunction, self.either, self.exclusive, self.count, self.select,
             self.relation, self.silence)
        )  # fmt: skip
        return make(depth - 1)

    def sequence(self, depth: int) -> Pattern:
        parts = [self.node(depth) for _ in range(self.random.choice((1, 2, 2, 3)))]
        for _ in range(self.random.choice((0, 0, 1, 1, 2)) if len(parts) < 3 else self.random.choice((0, 1))):
            window = self.within() if self.chance(0.25) else None
            parts.insert(self.random.randint(0, len(parts)), Negation(self.node(depth, last=False), window))
        if len(parts) == 1:
            parts.append(self.node(depth))
        return Sequence(tuple(parts), self.within() if self.chance(0.85) else None)

    def conjunction(self, depth: int) -> Pattern:
        parts = [self.node(depth) for _ in range(self.random.choice((2, 2, 3)))]
        if self.chance(0.35):
            parts[self.random.randrange(len(parts))] = Negation(self.node(depth, last=False))
        return Conjunction(tuple(parts), self.maybe_within())

    def either(self, depth: int) -> Pattern:
        return Disjunction(tuple(self.node(depth, last=False) for _ in range(self.random.choice((2, 2, 3)))))

    def exclusive(self, depth: int) -> Pattern:
        return ExclusiveOr(
            tuple(self.node(depth, last=False) for _ in range(self.random.choice((2, 2, 3)))), self.within()
        )

    def count(self, depth: int) -> Pattern:
        least, longest = self.random.randint(1, 3), self.chance(0.3)
        most = self.random.choice((least, least + 1, None)) if not longest else self.random.choice((least + 1, None))
        window = self.within() if longest or most is None else self.maybe_within()
        return Repetition(self.counted(depth), least, most, window, longest)

    def select(self, depth: int) -> Pattern:
        return Selection(self.counted(depth), self.random.randint(1, 3), self.maybe_within())

    def counted(self, depth: int) -> Pattern:
        return self.either(0) if self.chance(0.3) else self.node(depth, last=False)

    def relation(self, depth: int) -> Pattern:
        left, right = self.node(min(depth, 1)), self.node(min(depth, 1))
        return Relation(left, self.random.choice(list(Allen)), right, self.maybe_within())

    def silence(self, depth: int) -> Pattern:
        return Negation(self.node(depth, last=False), self.within())

    # conditions

    def where(self, root: Pattern) -> tuple[Binding, ...]:
        members = sorted(labels_below(root))
        read = sorted(read_and_counted(root))
        if read and self.chance(0.5):
            return tuple(self.equality(a, a, "r", "r") for a in read if self.chance(0.6))
        style = self.random.choice(("none", "graph", "graph", "chain", "mixed", "mixed", "self"))
        if style == "chain":
            by = (
                {name: self.random.choice("rs") for name in members}
                if self.chance(0.4)
                else dict.fromkeys(members, "r")
            )
            links = zip(members, self.random.sample(members, len(members)), strict=True)
            pairs = links if self.chance(0.3) else itertools.pairwise(members)
            return tuple(self.equality(a, b, by[a], by[b]) for a, b in pairs if a != b)
        if style == "none":
            return ()
        counted = sorted(set().union(*(labels_below(node) for node in nodes(root) if isinstance(node, Repetition))))
        others = [name for name in members if name not in counted]
        if counted and others and self.chance(0.4):
            return (self.equality(self.random.choice(counted), self.random.choice(others), "r", "r"),)
        if style == "self":
            return tuple(self.equality(a, a, "r", "r") for a in members if self.chance(0.5))
        number = self.random.randint(1, 3)
        return tuple(dict.fromkeys(self.condition(members, style) for _ in range(number)))

    def condition(self, members: list[str], style: str) -> Binding:
        left, right = self.random.choice(members), self.random.choice(members)
        if style == "graph":
            attribute = self.random.choice("rs")
            other = attribute if self.chance(0.6) else self.random.choice("rs")
            return self.equality(left, right, attribute, other)
        if self.chance(0.25):
            value: Value = self.random.randint(0, 2)
            return Binding(Field(left, "v"), self.random.choice((Operator.GT, Operator.LE, Operator.EQ)), value)
        if self.chance(0.3):
            return Binding(Field(left, "v"), Operator.EQ, Field(right, "v", float(self.random.choice((0, 1, -1)))))
        if self.chance(0.2):
            return Binding(Field(left, "r"), Operator.NE, Field(right, "r"))
        return Binding(Field(left, "v"), self.random.choice((Operator.LT, Operator.GE)), Field(right, "v"))

    @staticmethod
    def equality(left: str, right: str, attribute: str, other: str) -> Binding:
        return Binding(Field(left, attribute), Operator.EQ, Field(right, other))

    def composite(self, root: Pattern) -> Composite:
        consumption = self.random.choice((None, None, Consumption.UNIQUE, Consumption.UNIQUE, Consumption.ALL_PAIRS))
        return Composite(root, self.where(root), consumption)


def read_and_counted(root: Pattern) -> set[str]:
    """The members of an `or` below a count."""
    counts = [node for node in nodes(root) if isinstance(node, Repetition | Selection)]
    ors = [part for node in counts for part in nodes(node.part) if isinstance(part, Disjunction)]
    return set().union(*(labels_below(part) for part in ors))


def make(seed: int) -> Case:
    """The case of a number."""
    maker = Maker(Random(seed))
    flavour = maker.random.choice(("plain", "plain", "flat", "nested", "nested"))
    patterns: list[Subscription] = []
    for number in range(0 if flavour == "plain" else maker.random.choice((0, 0, 0, 1, 1, 2))):
        maker.used = 0
        root = maker.flat() if maker.chance(0.5) else maker.node(1, last=False)
        patterns.append(Subscription(f"q{number}", maker.composite(root)))
        maker.names.append(f"q{number}")
    maker.used = 0
    if flavour == "plain":
        patterns.append(Subscription("p", maker.plain()))
    else:
        root = maker.flat() if flavour == "flat" else maker.node(2, last=False)
        patterns.append(Subscription("p", maker.composite(root)))
    trace = maker.trace(8 if flavour == "nested" else 10)
    return Case(seed, tuple(patterns), trace, max(e.end for e in trace) + 9 * SECOND)


# features


def nodes(root: Pattern) -> Iterator[Pattern]:
    yield root
    for part in parts_of(root):
        yield from nodes(part)


def features(case: Case) -> set[str]:
    """The features of a case."""
    out = set(trace_features(case))
    for pattern in case.patterns:
        assert isinstance(pattern.body, Composite)
        out |= set(pattern_features(pattern.body))
    if len(case.patterns) > 1:
        out.add("a name is defined")
    return out


def pattern_features(composite: Composite) -> Iterator[str]:
    if composite.consumption is Consumption.UNIQUE:
        yield "consume unique"
    for node in nodes(composite.root):
        yield type(node).__name__.lower()
        yield from node_features(node)
    for condition in composite.where:
        yield from condition_features(composite, condition)


def node_features(node: Pattern) -> Iterator[str]:
    if isinstance(node, Repetition) and node.longest:
        yield "longest"
    if isinstance(node, Member | Reference) and node.duplicates is not None:
        yield f"{node.duplicates.keep.value} {'name' if isinstance(node, Reference) else 'member'}"
    if isinstance(node, Sequence | Conjunction):
        away = [k for k, part in enumerate(node.parts) if isinstance(part, Negation)]
        kind = type(node).__name__.lower()
        for k in away:
            place = "at the end" if k == len(node.parts) - 1 else "at the start" if k == 0 else "between"
            yield f"{kind} with an absence" + (f" {place}" if kind == "sequence" else "")
            if node.parts[k].within is not None:  # type: ignore[union-attr]
                yield f"{kind} with a silence of its own time"
            if not isinstance(node.parts[k].part, Member):  # type: ignore[union-attr]
                yield f"{kind} with an absence of several events"
        if node.within is None:
            yield f"{kind} without within"


def condition_features(composite: Composite, condition: Binding) -> Iterator[str]:
    absent = {name for node in nodes(composite.root) if isinstance(node, Negation) for name in labels_below(node.part)}
    repeated = {
        name for node in nodes(composite.root) if isinstance(node, Repetition) for name in labels_below(node.part)
    }
    names = {node.alias for node in nodes(composite.root) if isinstance(node, Reference)}
    if isinstance(condition.right, Field) and len(sides(condition)) == 2:
        same = condition.left.attribute == condition.right.attribute
        if condition.operator is Operator.EQ:
            yield "equality, same attribute" if same else "equality, different attributes"
            if condition.right.offset:
                yield "equality with an offset"
        else:
            yield f"condition {condition.operator.value}"
        if len(sides(condition) & absent) == 1:
            yield "condition on an absent member"
        if sides(condition) & repeated:
            yield "condition on a repeated member"
        if sides(condition) & names:
            yield "condition on a name"
    elif isinstance(condition.right, Field):
        yield "condition of a member with itself"
        if sides(condition) & read_and_counted(composite.root):
            yield "counted member of an or with itself"
    else:
        yield "condition with a value"


def trace_features(case: Case) -> Iterator[str]:
    times = [event.end for event in case.trace]
    if len(set(times)) < len(times):
        yield "equal times"
    for event in case.trace:
        names = [name for name, _ in event.tuples]
        if names.count("r") > 1 or names.count("s") > 1:
            yield "several values of a key"
        if names.count("k") > 1:
            yield "an event of two kinds"
        if not {"r", "s"} <= set(names):
            yield "a missing attribute"
        if event.start != event.end:
            yield "an interval"
        if any(isinstance(value, str | bool) for name, value in event.tuples if name != "k"):
            yield "mixed types"
