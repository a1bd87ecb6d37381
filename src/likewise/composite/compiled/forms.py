"""Forms: plain patterns that differ only in the profiles of their members have one shape, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from likewise.composite.compiled.shape import Shape, ShapeRole, shape_of
from likewise.composite.plan.nodes import Plan
from likewise.language import Composite, Conjunction, Member, Negation, Profile, Subscription
from likewise.language import Sequence as Then

Form: TypeAlias = tuple[Any, ...]
"""All of a pattern but its profiles: equal forms have equal shapes but for those."""

_OPERATORS: Final = (Then, Conjunction)
_MOST: Final = 1_000
"""How many forms are remembered: those of patterns that are gone need not stay."""


class Forms:
    """The shapes of plain patterns by their forms, so that a pattern of a known form needs no plan to be deployed."""

    def __init__(self) -> None:
        self._shapes: dict[Form, Shape] = {}

    def known(self, subscription: Subscription) -> Shape | None:
        """The shape of a pattern, if one of its form was learned."""
        split = _split(subscription)
        if split is None:
            return None
        form, profiles = split
        shape = self._shapes.get(form)
        return None if shape is None else _filled(shape, profiles)

    def learn(self, subscription: Subscription, plan: Plan) -> Shape | None:
        """The shape of a pattern by its plan, kept for others of its form; None if it is not plain."""
        shape, split = shape_of(plan), _split(subscription)
        if shape is not None and split is not None:
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            self._shapes[split[0]] = shape
        return shape


def _split(subscription: Subscription) -> tuple[Form, list[Profile]] | None:
    """The form and the profiles, in the order of the pattern; None where the profiles have a say in the shape."""
    body = subscription.body
    if not isinstance(body, Composite):
        return None
    root, joined = body.root, bool(body.where)
    members: list[tuple[Any, ...]] = []
    profiles: list[Profile] = []
    parts, within = (root.parts, root.within) if isinstance(root, _OPERATORS) else ((root,), None)
    for part in parts:
        absent = isinstance(part, Negation) and part.within is None
        member = part.part if isinstance(part, Negation) and absent else part
        if not isinstance(member, Member) or not _plain(member.profile, joined=joined):
            return None
        members.append((member.alias, member.duplicates, absent))
        profiles.append(member.profile)
    return (type(root), *members, within, body.where, body.consumption, subscription.options), profiles


def _plain(profile: Profile, *, joined: bool) -> bool:
    """Whether its place is taken by any other: it asks for something, and no condition may mean another attribute."""
    predicates = profile.predicates
    return bool(predicates) and not (joined and any(one.attribute_approximate for one in predicates))


def _filled(shape: Shape, profiles: Sequence[Profile]) -> Shape:
    """The same shape with other profiles."""
    made = [
        ShapeRole(role.name, profile, role.options, role.keep, role.attributes)
        for role, profile in zip(shape.leaves, profiles, strict=True)
    ]
    guard = None if shape.guard is None else made.pop(shape.after + 1)
    return Shape(tuple(made), shape.joint, shape.within, shape.unique, shape.threshold, guard, shape.after)
