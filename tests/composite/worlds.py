"""Small worlds for the tests: a matcher of one attribute, and random traces and patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import strategies as st

from likewise.events import Event
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
    Options,
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
)

KINDS = "ABC"


def profile(kind: str) -> Profile:
    return Profile((Predicate("kind", Operator.EQ, kind),))


def member(kind: str, alias: str | None = None, keep: Duplicates | None = None) -> Member:
    return Member(profile(kind), alias or kind.lower(), keep)


def event(kind: str, time: int, *, start: int | None = None, id: str | None = None, **attributes: object) -> Event:
    tuples = (("kind", kind), *attributes.items())
    return Event(id or f"{kind}{time}", tuples, (), time if start is None else start, time)


def events(text: str, **attributes: object) -> list[Event]:
    """`A1 B3`: an A at 1 and a B at 3."""
    return [event(word[0], int(word[1:]), **attributes) for word in text.split()]


def match(wanted: Profile, happened: Event) -> float:
    """The event's `p` for its kind, or 1; a near kind has a quarter of it."""
    [predicate] = wanted.predicates
    attributes = happened.attributes
    kind = attributes["kind"][0]
    p = float(attributes.get("p", [1.0])[0])
    if predicate.value == kind:
        return p
    near = attributes.get("near", [None])[0]
    return 0.25 if near == predicate.value else 0.0


@dataclass(frozen=True)
class Hit:
    subscription: Hashable
    probability: float
    mappings: tuple[object, ...] = ()


class SimpleMatcher:
    """Matches by `match`, and refuses invalid requests."""

    def __init__(self) -> None:
        self.profiles: dict[int, tuple[Profile, Hashable]] = {}
        self.numbers = count()

    def add(self, wanted: Profile, *, options: Options | None = None, key: Hashable = None) -> int:
        handle = next(self.numbers)
        self.profiles[handle] = (wanted, key)
        return handle

    def remove(self, handle: int) -> None:
        del self.profiles[handle]

    def match(self, happened: Event) -> Iterable[Hit]:
        for wanted, key in self.profiles.values():
            score = match(wanted, happened)
            if score:
                yield Hit(key, score)


def relate(left: str, right: str) -> float:
    return 1.0 if left == right else 0.5 if left[:1] == right[:1] else 0.0


# random worlds


@st.composite
def traces(draw: st.DrawFn, *, most: int = 9, doubtful: bool = False) -> list[Event]:
    out = []
    time = 10
    for number in range(draw(st.integers(0, most))):
        time += draw(st.sampled_from((0, 1, 1, 2, 3)))
        kind = draw(st.sampled_from(KINDS))
        length = draw(st.sampled_from((0, 0, 1, 2, 4)))
        extra: dict[str, object] = {"room": draw(st.sampled_from(("x", "y", "xx"))), "level": draw(st.integers(0, 2))}
        if doubtful:
            extra["p"] = draw(st.sampled_from((1.0, 0.5, 0.75)))
            near = draw(st.sampled_from((None, None, *KINDS)))
            if near is not None and near != kind:
                extra["near"] = near
        out.append(event(kind, time, start=time - length, id=f"e{number:02}", **extra))
    return sorted(out, key=lambda e: (e.end, e.start, e.id))


@st.composite
def gappy(draw: st.DrawFn, *, most: int = 9) -> list[Event]:
    """Traces in which some events have no room."""
    trace = draw(traces(most=most))
    gaps = draw(st.lists(st.sampled_from((None, None, "room", "level")), min_size=len(trace), max_size=len(trace)))
    return [
        Event(e.id, tuple(pair for pair in e.tuples if pair[0] != gap), (), e.start, e.end)
        for e, gap in zip(trace, gaps, strict=True)
    ]


_WITHIN = st.sampled_from((2, 3, 5, 8))
_MAYBE = st.sampled_from((None, 3, 5, 8))
_KEEP = st.sampled_from(
    (None, None, None, Duplicates(Keep.FIRST), Duplicates(Keep.LAST), Duplicates(Keep.NTH, 2), Duplicates(Keep.ALL))
)


# `last` needs another part that waits.
_SOME = st.sampled_from((None, None, None, None, Duplicates(Keep.FIRST), Duplicates(Keep.NTH, 2)))
_Keeps = st.SearchStrategy[Duplicates | None]


class _Names:
    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.numbers = count(1)
        self.known = known

    def __call__(self) -> str:
        return f"m{next(self.numbers)}"


def _member(draw: st.DrawFn, names: _Names, *, keep: _Keeps) -> Member | Reference:
    if names.known and draw(st.booleans()):
        return Reference(draw(st.sampled_from(names.known)), names(), draw(keep))
    return Member(profile(draw(st.sampled_from(KINDS))), names(), draw(keep))


def _pattern(draw: st.DrawFn, names: _Names, depth: int, *, keep: _Keeps = _SOME, plain: bool = False) -> Pattern:
    kinds = ["member", "member"]
    if plain:
        kinds = ["sequence", "conjunction"]
    elif depth:
        kinds += [
            "sequence",
            "sequence",
            "guarded",
            "conjunction",
            "or",
            "xor",
            "not",
            "nth",
            "times",
            "longest",
            "allen",
        ]
        kinds += ["time"]
    kind = draw(st.sampled_from(kinds))
    return _BUILD[kind](draw, names, depth - 1, keep)


def _sequence(draw: st.DrawFn, names: _Names, depth: int, keep: _Keeps) -> Pattern:
    within = draw(_MAYBE)
    parts = [_pattern(draw, names, depth, keep=_KEEP) for _ in range(draw(st.integers(2, 3)))]
    if within is None and isinstance(parts[-1], Member | Reference) and parts[-1].duplicates == Duplicates(Keep.LAST):
        within = 5
    return Sequence(tuple(parts), within)


def _guarded(draw: st.DrawFn, names: _Names, depth: int, keep: _Keeps) -> Pattern:
    within = draw(_WITHIN)
    parts: list[Pattern] = []
    for k in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            parts.append(Negation(_pattern(draw, names, max(0, depth - 1))))
        if k and within >= 5 and draw(st.booleans()):
            parts.append(Negation(_pattern(draw, names, max(0, depth - 1)), draw(st.sampled_from((1, 2)))))
        parts.append(_pattern(draw, names, depth, keep=_KEEP))
    if draw(st.booleans()):
        parts.append(Negation(_pattern(draw, names, max(0, depth - 1))))
    return Sequence(tuple(parts), within)


def _conjunction(draw: st.DrawFn, names: _Names, depth: int, keep: _Keeps) -> Pattern:
    parts = [_pattern(draw, names, depth, keep=_KEEP) for _ in range(draw(st.integers(2, 3)))]
    within = draw(_MAYBE)
    if within is not None and draw(st.booleans()):
        parts[-1] = Negation(_pattern(draw, names, max(0, depth - 1)))
    return Conjunction(tuple(parts), within)


def _two(draw: st.DrawFn, names: _Names, depth: int) -> tuple[Pattern, Pattern]:
    return _pattern(draw, names, depth), _pattern(draw, names, depth)


# ruff: noqa: ARG005
_BUILD = {
    "member": lambda draw, names, depth, keep: _member(draw, names, keep=keep),
    "sequence": _sequence,
    "guarded": _guarded,
    "conjunction": _conjunction,
    "or": lambda draw, names, depth, keep: Disjunction(_two(draw, names, depth)),
    "xor": lambda draw, names, depth, keep: ExclusiveOr(_two(draw, names, depth), draw(_WITHIN)),
    "not": lambda draw, names, depth, keep: Negation(_pattern(draw, names, depth), draw(_WITHIN)),
    "nth": lambda draw, names, depth, keep: Selection(
        _pattern(draw, names, depth), draw(st.integers(1, 3)), draw(_MAYBE)
    ),
    "times": lambda draw, names, depth, keep: Repetition(
        _pattern(draw, names, depth), draw(st.integers(1, 2)), draw(st.integers(2, 3)), draw(_MAYBE)
    ),
    "longest": lambda draw, names, depth, keep: Repetition(
        _pattern(draw, names, depth), draw(st.integers(1, 2)), draw(st.sampled_from((None, 2, 3))), draw(_WITHIN), True
    ),
    "allen": lambda draw, names, depth, keep: Relation(
        _member(draw, names, keep=_KEEP),
        draw(st.sampled_from(list(Allen))),
        _pattern(draw, names, 0, keep=_KEEP),
        draw(_MAYBE),
    ),
    "time": lambda draw, names, depth, keep: TimeEvent(every=draw(st.sampled_from((3, 4))), alias=names()),
}


def _names(pattern: Pattern) -> list[str]:
    if isinstance(pattern, Member | Reference):
        return [pattern.alias or ""]
    if isinstance(pattern, TimeEvent):
        return []
    if isinstance(pattern, Negation | Selection | Repetition):
        return _names(pattern.part)
    parts = (pattern.left, pattern.right) if isinstance(pattern, Relation) else pattern.parts
    return [name for part in parts for name in _names(part)]


@st.composite
def composites(
    draw: st.DrawFn, *, depth: int = 2, meaning: bool = False, known: tuple[str, ...] = (), plain: bool = False
) -> Composite:
    names = _Names(known)
    root = _pattern(draw, names, depth, plain=plain)
    if isinstance(root, Member) and root.duplicates is not None and not known:
        root = replace(root, duplicates=None)
    where = []
    there = _names(root)
    if len(there) > 1:
        for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
            left, right = draw(st.permutations(there))[:2]
            where.append(draw(_condition(left, right, meaning)))
    consumption = draw(st.sampled_from((None, Consumption.UNIQUE, Consumption.ALL_PAIRS)))
    return Composite(root, tuple(where), consumption)


@st.composite
def families(draw: st.DrawFn, *, meaning: bool = False) -> tuple[Composite, list[Subscription]]:
    """A pattern and the named patterns that it uses, each with its own choice, threshold and consumption."""
    known: list[Subscription] = []
    for name in ("n1", "n2"):
        below = tuple(subscription.name for subscription in known)
        # A simple pattern is likely to consume.
        body = draw(composites(depth=1, meaning=meaning, known=below, plain=draw(st.booleans())))
        known.append(Subscription(name, body, Options(threshold=draw(st.sampled_from((None, None, 0.4, 0.6))))))
    return draw(composites(depth=1, meaning=meaning, known=("n1", "n2"), plain=draw(st.booleans()))), known


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Composite, list[Subscription]]:
    """A consuming pattern of two kinds, used by name in a small one, where its consumption makes a difference."""
    kind = draw(st.sampled_from((Sequence, Conjunction)))
    inner = kind((member("A", "l", draw(_KEEP)), member("B", "r")), draw(_MAYBE))
    name = Reference("n1", "x", draw(_SOME))
    other = member(draw(st.sampled_from("ABC")), "y")
    within = draw(_WITHIN)
    outer: tuple[Pattern, ...] = (
        name,
        Sequence((name, other)),
        Sequence((other, name), within),
        Sequence((other, Negation(Selection(name, 2))), within),
        Conjunction((name, other), within),
        Disjunction((name, other)),
        ExclusiveOr((name, other), within),
        Repetition(name, 1, 2),
        Negation(name, within),
    )
    consumption = draw(st.sampled_from((None, Consumption.UNIQUE)))
    known = [Subscription("n1", Composite(inner, (), Consumption.UNIQUE))]
    return Composite(draw(st.sampled_from(outer)), (), consumption), known


def _condition(left: str, right: str, meaning: bool) -> st.SearchStrategy[Binding]:
    kinds = [
        Binding(Field(left, "room"), Operator.EQ, Field(right, "room")),
        Binding(Field(left, "level"), Operator.LE, Field(right, "level")),
        Binding(Field(left, "level"), Operator.GT, Field(right, "level", -1.0)),
        Binding(Field(left, "level"), Operator.GE, 1),
        Binding(Field(left, "room"), Operator.EQ, Field(left, "room")),
    ]
    if meaning:
        kinds.append(Binding(Field(left, "room"), Operator.EQ, Field(right, "room"), approximate=True))
    return st.sampled_from(kinds)
