"""The subscription language: text to subscriptions and patterns, and back."""

from likewise.language._durations import (
    parse_duration,
    write_duration,
)
from likewise.language._events import (
    format_event,
    parse_event,
)
from likewise.language._format import (
    format_file,
    format_subscription,
)
from likewise.language._format_pattern import (
    format_pattern,
)
from likewise.language._format_profile import format_predicate
from likewise.language._literals import (
    ordered_literal,
)
from likewise.language._members import (
    labels,
    members,
)
from likewise.language._model import (
    AGGREGATIONS,
    APPROACHES,
    Allen,
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    Duplicates,
    Duration,
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
    Range,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
)
from likewise.language._parser import (
    Placed,
    parse,
    parse_lenient,
    parse_pattern,
    parse_placed,
    parse_subscription,
)
from likewise.language._references import (
    circle,
    references,
)
from likewise.language._structure import (
    structure,
)

__all__ = [
    "AGGREGATIONS",
    "APPROACHES",
    "Allen",
    "Binding",
    "Composite",
    "Conjunction",
    "Consumption",
    "Disjunction",
    "Duplicates",
    "Duration",
    "ExclusiveOr",
    "Field",
    "Keep",
    "Member",
    "Negation",
    "Operator",
    "Options",
    "Pattern",
    "Placed",
    "Predicate",
    "Profile",
    "Range",
    "Reference",
    "Relation",
    "Repetition",
    "Selection",
    "Sequence",
    "Subscription",
    "TimeEvent",
    "circle",
    "format_event",
    "format_file",
    "format_pattern",
    "format_predicate",
    "format_subscription",
    "labels",
    "members",
    "ordered_literal",
    "parse",
    "parse_duration",
    "parse_event",
    "parse_lenient",
    "parse_pattern",
    "parse_placed",
    "parse_subscription",
    "references",
    "structure",
    "write_duration",
]
