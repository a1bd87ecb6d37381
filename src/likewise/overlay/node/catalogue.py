"""The catalogue: all topics that someone in the federation wants, known to every node.

An entry node matches an event against it, so what nobody wants is not sent at all. A change spreads over the rows of
the routing tables, and neighbours compare digests with their heartbeats, so that nothing is missed for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from likewise.errors import InputError, LikewiseError
from likewise.events import Event, normalise
from likewise.language import Predicate, Profile, parse_subscription
from likewise.matching import Mapping, Match, Matcher
from likewise.overlay.cube.decompose import ProfileTopic
from likewise.overlay.cube.items import TopicHit, id_of
from likewise.overlay.node.wire import Listed
from likewise.overlay.ring.ids import Key

BUCKETS: Final = 64


class TopicCatalogue:
    """Topics by key; of two versions of an entry the larger one is right.

    One that is `common` to all nodes of a simulation needs no spreading.
    """

    def __init__(self, *, common: bool = False) -> None:
        self.common = common
        self.entries: dict[Key, Listed] = {}
        self.buckets = [0] * BUCKETS
        self.digest = 0
        """Equal for equal catalogues."""
        self.version = 0
        self.by_text: dict[str, dict[Key, Listed]] = {}
        self.texts: dict[Key, str] = {}

    def __len__(self) -> int:
        return sum(entry.alive for entry in self.entries.values())

    def merge(self, entries: Iterable[Listed]) -> list[Listed]:
        """Take entries over; gives those that were new."""
        new = []
        for entry in entries:
            key = entry.topic.key
            known = self.entries.get(key)
            if known is not None and _rank(known) >= _rank(entry):
                continue
            if known is not None:
                self.buckets[key[0] % BUCKETS] ^= _mark(known)
            self.buckets[key[0] % BUCKETS] ^= _mark(entry)
            self.entries[key] = entry
            self.texts[ProfileTopic(entry.topic.text).key] = entry.topic.text
            texts = self.by_text.setdefault(entry.topic.text, {})
            if entry.alive:
                texts[key] = entry
            else:
                texts.pop(key, None)
            if not texts:
                del self.by_text[entry.topic.text]
            new.append(entry)
        if new:
            self.version += 1
            self.digest = _digest(self.buckets)
        return new

    def differing(self, buckets: Sequence[int]) -> tuple[Listed, ...]:
        """The entries of all buckets that another catalogue has differently."""
        wanted = {
            number for number, (mine, theirs) in enumerate(zip(self.buckets, buckets, strict=False)) if mine != theirs
        }
        return tuple(entry for key, entry in self.entries.items() if key[0] % BUCKETS in wanted)


def _digest(buckets: Iterable[int]) -> int:
    out = 0
    for number in buckets:
        out = (out * 31 + number) & 0x7FFF_FFFF_FFFF_FFFF
    return out


def _rank(entry: Listed) -> tuple[int, bool, int]:
    return entry.version, entry.alive, len(entry.plans)


def _mark(entry: Listed) -> int:
    text = f"{entry.version} {entry.alive} {len(entry.plans)}"
    return int.from_bytes(id_of(entry.topic.key, text)[:7], "big")


class TopicClassifier(Protocol):
    """Says which topics each of some events matches."""

    def __call__(self, events: Sequence[Event], catalogue: TopicCatalogue, /) -> list[tuple[TopicHit, ...]]: ...


class MatchingClassifier:
    """Matches with the federation's recipe; nodes with equal catalogues may share one."""

    def __init__(self, make: Callable[[], Matcher] = Matcher) -> None:
        self._matcher = make()
        self._handles: dict[str, int] = {}
        self._keys: dict[str, tuple[Key, bool]] = {}
        self._seen: tuple[int, int] | None = None
        self.beyond: dict[str, str] = {}

    def __call__(self, events: Sequence[Event], catalogue: TopicCatalogue) -> list[tuple[TopicHit, ...]]:
        if self._seen != (id(catalogue), catalogue.version):
            self._follow(catalogue)
        return [self._hits(found) for found in self._matcher.match_batch(events)]

    def _hits(self, found: Sequence[Match]) -> tuple[TopicHit, ...]:
        out = []
        for match in found:
            topic, renames = self._keys[str(match.subscription)]
            values = _values(match.event, match.mappings) if renames else ()
            out.append(TopicHit(topic, match.probability, values))
        return tuple(sorted(out, key=_topic) if len(out) > 1 else out)

    def _follow(self, catalogue: TopicCatalogue) -> None:
        for text in self._handles.keys() - catalogue.by_text.keys():
            self._matcher.remove(self._handles.pop(text))
        for text in catalogue.by_text.keys() - self._handles.keys() - self.beyond.keys():
            try:
                self._handles[text] = self._add(self._matcher, text)
            except LikewiseError as error:
                # A topic of others that needs what this node has not must not keep it from the rest.
                self.beyond[text] = str(error)
        self._seen = (id(catalogue), catalogue.version)

    def _add(self, matcher: Matcher, text: str) -> int:
        wanted = parse_subscription(text)
        if not isinstance(wanted.body, Profile):
            raise InputError(f"not a profile: {text}")
        self._keys[text] = (ProfileTopic(text).key, _renames(wanted.body.predicates))
        return matcher.add(wanted.body, options=wanted.options, key=text)

    def check(self, topics: Iterable[ProfileTopic]) -> None:
        """Refuse topics that this node could not match, for want of a measure or a space."""
        trial = self._matcher.sibling()
        for topic in topics:
            self._add(trial, topic.text)


def _topic(hit: TopicHit) -> Key:
    return hit.topic


def _renames(predicates: Iterable[Predicate]) -> bool:
    return any(predicate.attribute_approximate for predicate in predicates)


def _values(event: Event, mappings: Sequence[Mapping]) -> tuple[tuple[str, int, float], ...]:
    """For approximate attributes: which tuple answers in each mapping, weighted against the best one."""
    best = mappings[0].probability if mappings else 1.0
    places = {pair: place for place, pair in reversed(list(enumerate(event.tuples)))}
    own = {normalise(name) for name, _ in event.tuples}
    out: dict[tuple[str, int], float] = {}
    for mapping in mappings:
        for one in mapping.correspondences:
            name = one.predicate.attribute
            if one.predicate.attribute_approximate and normalise(name) not in own:
                out.setdefault((name, places[one.tuple]), mapping.probability / best)
    return tuple((name, place, weight) for (name, place), weight in out.items())
