"""The values of the language: profiles of single events, and patterns over them.

The parser creates these values, the formatter writes them, engines run them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from likewise.events import Value

Duration: TypeAlias = int
"""A length of event time in microseconds."""


class Operator(StrEnum):
    """How a predicate compares an event's value with its own."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"


def _same(left: object, right: object) -> bool:
    """Equality that distinguishes True from 1, unlike Python's."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of values; `in [10, 20)` has a closed low end and an open high end."""

    low: Value
    high: Value
    low_closed: bool = True
    high_closed: bool = True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        closed = (self.low_closed, self.high_closed) == (other.low_closed, other.high_closed)
        return closed and _same(self.low, other.low) and _same(self.high, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high, self.low_closed, self.high_closed))


@dataclass(frozen=True, slots=True)
class Predicate:
    """Attribute, operator, value, and which of the two may be approximated [000 sec 3.4]."""

    attribute: str
    operator: Operator
    value: Value | Range
    attribute_approximate: bool = False
    value_approximate: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Predicate):
            return NotImplemented
        return (
            self.attribute == other.attribute
            and _same(self.value, other.value)
            and self.operator == other.operator
            and self.attribute_approximate == other.attribute_approximate
            and self.value_approximate == other.value_approximate
        )

    def __hash__(self) -> int:
        return hash((self.attribute, self.operator, self.value, self.attribute_approximate, self.value_approximate))


@dataclass(frozen=True, slots=True)
class Profile:
    """A primitive profile: a theme and predicates that must all hold."""

    predicates: tuple[Predicate, ...]
    theme: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a subscription; None means the engine's default."""

    threshold: float | None = None
    top_k: int | None = None
    approach: str | None = None
    aggregation: str | None = None


APPROACHES: tuple[str, ...] = ("evidence", "exact", "concept", "approximate", "thematic", "clustered", "hybrid")
"""How terms are compared: the default, then the approaches of the papers (content-based, thesaurus, distributional,
with themes, within topics, and the mixture of 002)."""

CONTRAST = "contrast"
"""Written after an approach, `thematic+contrast`; alone it is short for `approximate+contrast`."""

UNCONTRASTED: tuple[str, ...] = ("evidence", "exact")
"""Approaches that cannot be written with `+contrast`."""

AGGREGATIONS: tuple[str, ...] = ("product", "geometric", "mean", "cautious", "joint")
"""How the predicates' similarities are combined into one score [000, 004: the first two; 002: the mean]."""


class Keep(StrEnum):
    """Instance selection among duplicates [003 sec 2.2]."""

    FIRST = "first"
    LAST = "last"
    ALL = "all"
    NTH = "nth"


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Which duplicates of a member take part; `nth` counts from 1."""

    keep: Keep = Keep.ALL
    nth: int | None = None


class Consumption(StrEnum):
    """Whether an instance takes part in one combination or in several [003 sec 2.2]."""

    UNIQUE = "unique"
    ALL_PAIRS = "all pairs"


class Allen(StrEnum):
    """The thirteen relations between two intervals [001 sec III]."""

    BEFORE = "before"
    AFTER = "after"
    MEETS = "meets"
    MET_BY = "met by"
    OVERLAPS = "overlaps"
    OVERLAPPED_BY = "overlapped by"
    STARTS = "starts"
    STARTED_BY = "started by"
    DURING = "during"
    CONTAINS = "contains"
    FINISHES = "finishes"
    FINISHED_BY = "finished by"
    EQUALS = "equals"


@dataclass(frozen=True, slots=True)
class Member:
    """A primitive profile as part of a pattern; the alias names its event in bindings."""

    profile: Profile
    alias: str | None = None
    duplicates: Duplicates | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """Another subscription or pattern, by its name."""

    name: str
    alias: str | None = None
    duplicates: Duplicates | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other, `(E1; E2)t` [003 table 1]; `within` limits the time from first to last."""

    parts: tuple[Pattern, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All parts in any order, `(E1, E2)t`."""

    parts: tuple[Pattern, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any of the parts, `(E1 | E2)`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class ExclusiveOr:
    """Exactly one of the parts within the window [001 sec III]."""

    parts: tuple[Pattern, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Negation:
    """No such event for a time, `(not E)t`; inside a sequence, none between its neighbours."""

    part: Pattern
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The i-th instance, `E[i]`, counted from 1."""

    part: Pattern
    index: int
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """From `least` to `most` instances in a row, `E{2..5}`; None is unlimited, `longest` keeps only maximal rows."""

    part: Pattern
    least: int
    most: int | None = None
    within: Duration | None = None
    longest: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Two members whose intervals have one of Allen's relations."""

    left: Pattern
    relation: Allen
    right: Pattern
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class TimeEvent:
    """A time event [003 sec 2.2]: `at` a time of day, or `every` period; exactly one is set."""

    at: Duration | None = None
    every: Duration | None = None
    alias: str | None = None


Pattern: TypeAlias = (
    Member
    | Reference
    | Sequence
    | Conjunction
    | Disjunction
    | ExclusiveOr
    | Negation
    | Selection
    | Repetition
    | Relation
    | TimeEvent
)


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of a named member, `a.room`, optionally plus a number: `a.temperature + 5`."""

    alias: str
    attribute: str
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Binding:
    """A condition between members: `a.room = b.room`, or by meaning `a.room ~ b.room`."""

    left: Field
    operator: Operator
    right: Field | Value
    approximate: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Binding):
            return NotImplemented
        same_operator = (self.operator, self.approximate) == (other.operator, other.approximate)
        return same_operator and self.left == other.left and _same(self.right, other.right)

    def __hash__(self) -> int:
        return hash((self.left, self.operator, self.right, self.approximate))


@dataclass(frozen=True, slots=True)
class Composite:
    """A pattern: its root, the conditions between members, and its consumption."""

    root: Pattern
    where: tuple[Binding, ...] = ()
    consumption: Consumption | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A named profile or pattern with its options."""

    name: str
    body: Profile | Composite
    options: Options = field(default_factory=Options)
