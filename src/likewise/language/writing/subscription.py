"""Writes subscriptions and patterns as text, in a canonical form that the parser reads back to the same value.

A pattern is written in words: `a then b within 30 minutes where a.room = b.room`.
"""

from __future__ import annotations

from collections.abc import Iterable

from likewise.errors import BuildError
from likewise.language.durations import write_duration
from likewise.language.literals import write_literal
from likewise.language.model import (
    Binding,
    Composite,
    Conjunction,
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
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
)
from likewise.language.writing.profile import format_profile, write_header, write_name, write_quoted


def format_subscription(subscription: Subscription) -> str:
    """Write a subscription on one line.

    >>> from likewise.language import parse_subscription
    >>> format_subscription(parse_subscription("{power,computers}{device~:laptop~}  top 3 threshold 0.6"))
    's1: {power, computers} {device~ = laptop~} threshold 0.6 top 3'
    """
    body = subscription.body
    text = format_profile(body) if isinstance(body, Profile) else format_pattern(body)
    return " ".join((f"{write_header(subscription.name)}:", text, *_options(subscription.options)))


def format_file(subscriptions: Iterable[Subscription]) -> str:
    """Write subscriptions, one per line, as `parse` reads them."""
    return "".join(f"{format_subscription(subscription)}\n" for subscription in subscriptions)


def _options(options: Options) -> Iterable[str]:
    if options.threshold is not None:
        if not 0 <= options.threshold <= 1:
            raise BuildError(f"threshold {options.threshold} is not from 0 to 1")
        yield f"threshold {write_literal(options.threshold)}"
    if options.top_k is not None:
        yield f"top {options.top_k}"
    if options.approach is not None:
        yield f"approach {options.approach}"
    if options.aggregation is not None:
        yield f"aggregation {options.aggregation}"


_JOINER = {Sequence: " then ", Conjunction: " and ", Disjunction: " or ", ExclusiveOr: " xor "}


def format_pattern(pattern: Composite) -> str:
    """Write a pattern with its conditions and consumption; nested parts are in parentheses.

    >>> from likewise.language import parse_pattern
    >>> format_pattern(parse_pattern("((E1; E2)5min, !E3)1h"))
    '(E1 then E2 within 5 minutes) and not E3 within 1 hour'
    """
    # A single profile needs parentheses, or it would be read as a profile, not a pattern.
    root = pattern.root
    lone = isinstance(root, Member) and root.alias is None and root.duplicates is None
    text = f"({_write(root)})" if lone else _write(root)
    if pattern.where:
        text += " where " + " and ".join(_binding(binding) for binding in pattern.where)
    return text if pattern.consumption is None else f"{text} consume {pattern.consumption}"


def _write(pattern: Pattern) -> str:
    if isinstance(pattern, Member | Reference | TimeEvent):
        return _leaf(pattern)
    if isinstance(pattern, Negation):
        return f"not {_single(pattern.part)}" + _bound(pattern.within, " for ")
    if isinstance(pattern, Disjunction):
        return _joined(pattern)
    return _unbounded(pattern) + _bound(pattern.within, " within ")


def _unbounded(pattern: Sequence | Conjunction | ExclusiveOr | Relation | Selection | Repetition) -> str:
    if isinstance(pattern, Relation):
        return f"{_operand(pattern.left)} {pattern.relation} {_operand(pattern.right)}"
    if isinstance(pattern, Selection):
        return f"{_ordinal(pattern.index)} {_single(pattern.part)}"
    if isinstance(pattern, Repetition):
        return f"{'longest ' if pattern.longest else ''}{_count(pattern)} times {_single(pattern.part)}"
    return _joined(pattern)


def _joined(pattern: Sequence | Conjunction | ExclusiveOr | Disjunction) -> str:
    if len(pattern.parts) < 2:
        raise BuildError(f"a {type(pattern).__name__} of fewer than two parts cannot be written")
    return _JOINER[type(pattern)].join(_operand(part) for part in pattern.parts)


def _operand(pattern: Pattern) -> str:
    """Write a part of a chain: members and `not` of a member bare, the rest in parentheses."""
    if isinstance(pattern, Negation) and pattern.within is None:
        return f"not {_single(pattern.part)}"
    return _single(pattern)


def _single(pattern: Pattern) -> str:
    """Write the operand of `not` or a count: a member, or parentheses."""
    return _leaf(pattern) if isinstance(pattern, Member | Reference | TimeEvent) else f"({_write(pattern)})"


def _leaf(pattern: Member | Reference | TimeEvent) -> str:
    if isinstance(pattern, TimeEvent):
        text = _time(pattern)
    else:
        body = format_profile(pattern.profile) if isinstance(pattern, Member) else write_name(pattern.name)
        text = body if pattern.duplicates is None else f"{_duplicates(pattern.duplicates)} {body}"
    return text if pattern.alias is None else f"{text} as {write_name(pattern.alias)}"


def _duplicates(duplicates: Duplicates) -> str:
    return str(duplicates.keep) if duplicates.keep is not Keep.NTH else f"{_ordinal(duplicates.nth or 1)} duplicate"


def _time(event: TimeEvent) -> str:
    if event.every is not None:
        return f"every {write_duration(event.every)}"
    seconds, micros = divmod(event.at or 0, 1_000_000)
    if not 0 <= seconds < 86_400:
        raise BuildError("a time of day lies between 00:00 and 24:00")
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or micros:
        clock += f":{seconds % 60:02}"
    return f"at {clock}.{micros:06}" if micros else f"at {clock}"


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(number) for number in (1, 2, 3, 11, 22)]
    ['1st', '2nd', '3rd', '11th', '22nd']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _count(pattern: Repetition) -> str:
    if pattern.most is None:
        return f"{pattern.least} or more"
    return str(pattern.least) if pattern.most == pattern.least else f"{pattern.least} to {pattern.most}"


def _bound(duration: Duration | None, word: str) -> str:
    return "" if duration is None else word + write_duration(duration)


def _binding(binding: Binding) -> str:
    right = binding.right
    if isinstance(right, Field):
        value = _field(right)
    else:
        value = write_quoted(right) if isinstance(right, str) else write_literal(right)
    return f"{_field(binding.left)} {_sign(binding)} {value}"


def _sign(binding: Binding) -> str:
    if not binding.approximate:
        return str(binding.operator)
    if binding.operator not in (Operator.EQ, Operator.NE):
        raise BuildError(f"`{binding.operator}` cannot be approximate")
    return "~" if binding.operator is Operator.EQ else "!~"


def _field(field: Field) -> str:
    text = f"{write_name(field.alias)}.{write_name(field.attribute)}"
    if not field.offset:
        return text
    size = write_literal(abs(field.offset)).removesuffix(".0")
    return f"{text} {'-' if field.offset < 0 else '+'} {size}"
