"""Decomposition of a subscription into a tree of members, each with the key of its rendezvous [001 sec III].

A primitive profile is a topic. A pattern of sequences, conjunctions, disjunctions and Allen's relations becomes a
binary tree: CE = [op(E1, E2)], where each E is a topic or a composite. A composite is identified by its members,
without relationship and time, so equal ones share a rendezvous.

All other operators (negation, exclusive or, the n-th, repetition, choice of duplicates, unique consumption, time
events) need the events in order. The root of such a pattern is evaluated in one piece, at the rendezvous of all its
members. Composites inside negations and exclusive ors still have their own rendezvous, which send only complete
combinations on to the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from likewise.composite import NEAR, build_plan
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
    Operator,
    Options,
    Pattern,
    Profile,
    Reference,
    Relation,
    Sequence,
    Subscription,
    TimeEvent,
    format_file,
    format_subscription,
    references,
    write_duration,
)
from likewise.overlay.ring.ids import Key, key_of

NAME: Final = "p"
"""The name of every pattern at its rendezvous, where the names that subscribers chose do not matter."""


class ProfileTopic(msgspec.Struct, frozen=True, array_like=True, tag="topic"):
    """A primitive profile: its text, and the attribute by which it is split, if any."""

    text: str
    split: str = ""

    @property
    def key(self) -> Key:
        """The key of its rendezvous."""
        return key_of(self.text if not self.split else f"{self.text} by {self.split}")

    @property
    def name(self) -> str:
        """The profile's text without the name, for display."""
        return self.text.partition(": ")[2]


class Pairing(msgspec.Struct, frozen=True, array_like=True):
    """The relationship of two members: `and`, `or`, `then`, or one of Allen's relations.

    `swapped`: the first member, in the order of keys, is the right operand. `whole`: the window spans the first to the
    last event, instead of the ends of the two members.
    """

    op: str
    within: int | None = None
    swapped: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        """The relationship as text, the key in the map of subscribers (SIM)."""
        sides = "E2 {} E1" if self.swapped else "E1 {} E2"
        window = (
            "" if self.within is None else f" within {write_duration(self.within)}{' in all' if self.whole else ''}"
        )
        return sides.format(self.op) + window


class Compound(msgspec.Struct, frozen=True, array_like=True, tag="compound"):
    """A composite event: its members in the order of their keys, and their relationship.

    Without a `join` it is evaluated in one piece. The root of a subscription has the whole pattern's text as `source`.
    """

    members: tuple[ProfileTopic | Compound, ...]
    join: Pairing | None = None
    source: str = ""
    split: str = ""

    @property
    def name(self) -> str:
        """The members, without relationship and time."""
        return f"[{', '.join(member.name for member in self.members)}]"

    @property
    def key(self) -> Key:
        """The key of its rendezvous; if it is split, the keys of its values are derived from this one."""
        members = ", ".join(sorted(_identity(member) for member in self.members))
        whole = "in one piece " if self.join is None else ""
        return key_of(f"{whole}[{members}]" + (f" by {self.split}" if self.split else ""))

    @property
    def relationship(self) -> str:
        """The text under which its subscribers are kept."""
        return f"in one piece: {self.source}" if self.join is None else self.join.text


def _identity(member: ProfileTopic | Compound) -> str:
    return member.key.hex()


def topics_of(node: ProfileTopic | Compound) -> Iterator[ProfileTopic]:
    """The topics of a tree, from left to right, without repetition."""
    if isinstance(node, ProfileTopic):
        yield node
        return
    seen: set[Key] = set()
    for member in node.members:
        for topic in topics_of(member):
            if topic.key not in seen:
                seen.add(topic.key)
                yield topic


def compounds_of(node: ProfileTopic | Compound) -> Iterator[Compound]:
    """The composites of a tree, the root first."""
    if isinstance(node, Compound):
        yield node
        for member in node.members:
            yield from compounds_of(member)


def levels_of(node: ProfileTopic | Compound) -> int:
    """The greatest number of composites that an event passes through."""
    return 0 if isinstance(node, ProfileTopic) else 1 + max(map(levels_of, node.members), default=0)


def reach_of(node: ProfileTopic | Compound) -> int | None:
    """The longest time from the first event of a composite to its last; None if unlimited."""
    if isinstance(node, ProfileTopic):
        return 0
    inner = [reach_of(member) for member in node.members]
    known = [reach for reach in inner if reach is not None]
    if len(known) < len(inner):
        return None
    longest = max(known, default=0)
    if node.join is None or node.join.op == "or":
        return longest
    if node.join.within is None:
        return None
    return node.join.within if node.join.whole else node.join.within + longest


def topic_of(profile: Profile, options: Options, *, split: str = "") -> ProfileTopic:
    """The topic of a profile with its matching options."""
    return ProfileTopic(format_subscription(Subscription(NAME, profile, options)), split)


def decompose(
    subscription: Subscription, known: Mapping[str, Subscription] | None = None, *, spread: bool = True
) -> ProfileTopic | Compound:
    """The tree of a subscription; `spread` splits it by an attribute that all members share by `=`.

    >>> from likewise.language import parse_subscription
    >>> tree = decompose(parse_subscription("alarm: ({kind = smoke} then {kind = heat}) and {kind = open}"))
    >>> tree.name
    '[[{kind = heat}, {kind = smoke}], {kind = open}]'
    >>> tree.members[0].relationship
    'E2 then E1'
    """
    known = {**(known or {}), subscription.name: subscription}
    if isinstance(subscription.body, Profile):
        return topic_of(subscription.body, subscription.options)
    plan = build_plan(subscription, known)
    source = _source(subscription, known)
    if not is_open(subscription, known):
        tree = Compound(tuple(_InOnePiece(known).members(subscription)), None, source)
        assert set(topics_of(tree)) == {topic_of(leaf.profile, leaf.options) for leaf in plan.leaves}
        return tree
    split = _common_attribute(subscription) if spread else ""
    root = _Tree(known, split).node(subscription.body.root, subscription.options)
    if isinstance(root, ProfileTopic):
        return Compound((root,), Pairing("or"), source, split)
    return Compound(root.members, root.join, source, split)


def _source(subscription: Subscription, known: Mapping[str, Subscription]) -> str:
    """The text of a pattern and of the subscriptions it refers to, under a neutral name."""
    needed: dict[str, Subscription] = {}

    def collect(referring: Subscription) -> None:
        for name in references(referring):
            target = known.get(name)
            if target is not None and name not in needed and name != subscription.name:
                collect(target)
                needed[name] = target

    collect(subscription)
    name = NAME
    while name in needed:
        name += "'"
    return format_file([*needed.values(), Subscription(name, subscription.body, subscription.options)])


def is_open(subscription: Subscription, known: Mapping[str, Subscription]) -> bool:
    """Whether a detection depends only on its own events, so that members may be joined in pairs."""
    body = subscription.body
    if isinstance(body, Profile):
        return True
    if body.consumption is Consumption.UNIQUE:
        return False
    return _open(body.root, known)


def _open(pattern: Pattern, known: Mapping[str, Subscription]) -> bool:
    if isinstance(pattern, Member | Reference):
        if not _keeps_all(pattern):
            return False
        return isinstance(pattern, Member) or is_open(known[pattern.name], known)
    if isinstance(pattern, Relation):
        return _open(pattern.left, known) and _open(pattern.right, known)
    if isinstance(pattern, Sequence | Conjunction | Disjunction):
        return all(_open(part, known) for part in pattern.parts)
    return False


def _keeps_all(pattern: Member | Reference) -> bool:
    return pattern.duplicates is None or pattern.duplicates.keep is Keep.ALL


class _Tree:
    """Builds the binary tree of an open pattern; inside a negation (`near`), near matches count too."""

    def __init__(self, known: Mapping[str, Subscription], split: str = "", *, near: bool = False) -> None:
        self.known = known
        self.split = split
        self.near = near

    def topic(self, profile: Profile, options: Options) -> ProfileTopic:
        return topic_of(profile, replace(options, threshold=NEAR) if self.near else options, split=self.split)

    def node(self, pattern: Pattern, options: Options) -> ProfileTopic | Compound:
        if isinstance(pattern, Member):
            return self.topic(pattern.profile, options)
        if isinstance(pattern, Reference):
            target = self.known[pattern.name]
            if isinstance(target.body, Profile):
                return self.topic(target.body, target.options)
            return self.node(target.body.root, target.options)
        if isinstance(pattern, Relation):
            left, right = self.node(pattern.left, options), self.node(pattern.right, options)
            return self._pair(left, right, Pairing(pattern.relation.value, pattern.within))
        assert isinstance(pattern, Sequence | Conjunction | Disjunction)
        return self._chain(pattern, options)

    def _chain(self, pattern: Sequence | Conjunction | Disjunction, options: Options) -> ProfileTopic | Compound:
        """Join several parts in pairs, as and(E3, and(E1, E2)) [001 eq 1], in a balanced tree with few levels."""
        op = {Sequence: "then", Conjunction: "and", Disjunction: "or"}[type(pattern)]
        return self.chain(op, pattern.parts, None if isinstance(pattern, Disjunction) else pattern.within, options)

    def chain(self, op: str, parts: Iterable[Pattern], within: int | None, options: Options) -> ProfileTopic | Compound:
        """Join parts by `op`, in pairs."""
        parts = tuple(parts)
        whole = within is not None and all(isinstance(part, Member) for part in parts)
        return self._halves([self.node(part, options) for part in parts], Pairing(op, within, False, whole))

    def _halves(self, parts: list[ProfileTopic | Compound], join: Pairing) -> ProfileTopic | Compound:
        if len(parts) == 1:
            return parts[0]
        middle = (len(parts) + 1) // 2
        return self._pair(self._halves(parts[:middle], join), self._halves(parts[middle:], join), join)

    def _pair(self, left: ProfileTopic | Compound, right: ProfileTopic | Compound, join: Pairing) -> Compound:
        swapped = _identity(right) < _identity(left)
        members = (right, left) if swapped else (left, right)
        if join.op in ("and", "or"):
            swapped = False
        return Compound(members, Pairing(join.op, join.within, swapped, join.whole), "", self.split)


class _InOnePiece:
    """Finds the members of a pattern evaluated in one piece: topics, and composites where they suffice.

    A composite suffices if detections depend only on its instances, not on its single events, and if it has a window:
    that limits how late its first event reaches the root.
    """

    def __init__(self, known: Mapping[str, Subscription], *, near: bool = False) -> None:
        self.known = known
        self.tree = _Tree(known, near=near)

    def members(self, subscription: Subscription) -> list[ProfileTopic | Compound]:
        """The members of the root, in the order of their keys."""
        return sorted(dict.fromkeys(self._body(subscription)), key=_identity)

    def _body(self, subscription: Subscription) -> Iterator[ProfileTopic | Compound]:
        body, options = subscription.body, subscription.options
        if isinstance(body, Profile):
            yield self.tree.topic(body, options)
        elif body.consumption is Consumption.UNIQUE:
            yield from self._topics(body.root, options)
        else:
            yield from self._of(body.root, options)

    def _of(self, pattern: Pattern, options: Options) -> Iterator[ProfileTopic | Compound]:
        if isinstance(pattern, Reference) and _keeps_all(pattern):
            yield from self._body(self.known[pattern.name])
        elif isinstance(pattern, Sequence):
            yield from self._sequence(pattern, options)
        elif isinstance(pattern, Conjunction | Relation) and _open(pattern, self.known):
            yield from self._composite(self.tree.node(pattern, options), _parts(pattern), options)
        elif isinstance(pattern, Negation):
            yield from _InOnePiece(self.known, near=True)._of(pattern.part, options)
        elif isinstance(pattern, Conjunction | Disjunction | ExclusiveOr | Relation):
            for part in _parts(pattern):
                yield from self._of(part, options)
        else:
            yield from self._topics(pattern, options)

    def _sequence(self, pattern: Sequence, options: Options) -> Iterator[ProfileTopic | Compound]:
        """Join the positive parts of a sequence; the negated ones go to the root directly."""
        positive = [part for part in pattern.parts if not isinstance(part, Negation)]
        if len(positive) > 1 and all(_open(part, self.known) for part in positive):
            yield from self._composite(self.tree.chain("then", positive, pattern.within, options), positive, options)
        else:
            for part in positive:
                yield from self._of(part, options)
        for absent in pattern.parts:
            if isinstance(absent, Negation):
                yield from self._of(absent, options)

    def _composite(
        self, tree: ProfileTopic | Compound, parts: Iterable[Pattern], options: Options
    ) -> Iterator[ProfileTopic | Compound]:
        if reach_of(tree) is not None:
            yield tree
            return
        for part in parts:
            yield from self._of(part, options)

    def _topics(self, pattern: Pattern, options: Options) -> Iterator[ProfileTopic]:
        """The topics of all single events of a pattern."""
        if isinstance(pattern, Member):
            yield self.tree.topic(pattern.profile, options)
        elif isinstance(pattern, Reference):
            target = self.known[pattern.name]
            if isinstance(target.body, Profile):
                yield self.tree.topic(target.body, target.options)
            else:
                yield from self._topics(target.body.root, target.options)
        elif isinstance(pattern, Negation):
            yield from _InOnePiece(self.known, near=True)._topics(pattern.part, options)
        else:
            for part in _parts(pattern):
                yield from self._topics(part, options)


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    if isinstance(pattern, Sequence | Conjunction | Disjunction | ExclusiveOr):
        return pattern.parts
    if isinstance(pattern, Relation):
        return pattern.left, pattern.right
    return () if isinstance(pattern, Member | Reference | TimeEvent) else (pattern.part,)


def _common_attribute(subscription: Subscription) -> str:
    """The attribute that all members share by `=`; empty if there is none, or if its names differ."""
    body = subscription.body
    assert isinstance(body, Composite)
    aliases = list(_aliases(body.root))
    if None in aliases or len(set(aliases)) < 2:
        return ""
    for attribute in dict.fromkeys(binding.left.attribute for binding in body.where):
        reached = {aliases[0]}
        pairs = [pair for pair in map(_pair_of, body.where) if pair is not None and pair[2] == attribute]
        for _ in pairs:
            for left, right, _name in pairs:
                if left in reached or right in reached:
                    reached |= {left, right}
        if reached >= set(aliases):
            return attribute
    return ""


def _pair_of(binding: Binding) -> tuple[str, str, str] | None:
    left, right = binding.left, binding.right
    if binding.operator is not Operator.EQ or binding.approximate or not isinstance(right, Field):
        return None
    if left.attribute != right.attribute or left.offset or right.offset:
        return None
    return left.alias, right.alias, left.attribute


def _aliases(pattern: Any) -> Iterator[str | None]:
    """The aliases of the members; None for a member that cannot be split by an attribute."""
    if isinstance(pattern, Member):
        approximate = any(predicate.attribute_approximate for predicate in pattern.profile.predicates)
        yield None if approximate else pattern.alias
    elif isinstance(pattern, Relation):
        yield from _aliases(pattern.left)
        yield from _aliases(pattern.right)
    elif isinstance(pattern, Sequence | Conjunction):
        for part in pattern.parts:
            yield from _aliases(part)
    else:
        yield None
