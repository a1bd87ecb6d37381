"""The subscription language: text to subscriptions and patterns, and back."""

from likewise.language.durations import (
    parse_duration,
    write_duration,
)
from likewise.language.members import (
    labels,
    members,
)
from likewise.language.model import (
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
from likewise.language.reading.events import (
    format_event,
    parse_event,
)
from likewise.language.reading.parser import (
    Placed,
    parse,
    parse_lenient,
    parse_pattern,
    parse_placed,
    parse_subscription,
)
from likewise.language.references import (
    circle,
    references,
)
from likewise.language.writing.pattern import (
    format_pattern,
)
from likewise.language.writing.profile import format_predicate
from likewise.language.writing.structure import (
    structure,
)
from likewise.language.writing.subscription import (
    format_file,
    format_subscription,
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
