"""Subscriptions to text: one canonical form, which the parser reads back to the same value."""

from __future__ import annotations

from collections.abc import Iterable

from likewise.errors import BuildError
from likewise.language.literals import write_literal
from likewise.language.model import Options, Profile, Subscription
from likewise.language.writing.pattern import format_pattern
from likewise.language.writing.profile import format_profile
from likewise.language.writing.terms import write_header


def format_subscription(subscription: Subscription) -> str:
    """A subscription on one line.

    >>> from likewise.language import parse_subscription
    >>> format_subscription(parse_subscription("{power,computers}{device~:laptop~}  top 3 threshold 0.6"))
    's1: {power, computers} {device~ = laptop~} threshold 0.6 top 3'
    """
    body = subscription.body
    text = format_profile(body) if isinstance(body, Profile) else format_pattern(body)
    return " ".join((f"{write_header(subscription.name)}:", text, *_options(subscription.options)))


def format_file(subscriptions: Iterable[Subscription]) -> str:
    """Subscriptions one per line, as `parse` reads them."""
    return "".join(f"{format_subscription(one)}\n" for one in subscriptions)


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
