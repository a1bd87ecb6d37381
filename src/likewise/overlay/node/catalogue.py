"""The catalogue of all topics with a subscriber in the federation, the same at every node.

An entry node matches events against it, so an event without a subscriber is not sent. Changes are broadcast, and
neighbours compare digests with their heartbeats, so that a missed change is repaired soon.
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
from likewise.overlay.node.wire import CatalogueEntry
from likewise.overlay.ring.ids import Key

BUCKETS: Final = 64


class TopicCatalogue:
    """Topics by key; the larger version of an entry wins.

    A catalogue that is `common` to all nodes of a simulation needs no broadcast.
    """

    def __init__(self, *, common: bool = False) -> None:
        self.common = common
        self.entries: dict[Key, CatalogueEntry] = {}
        self.buckets = [0] * BUCKETS
        self.digest = 0
        """Equal for equal catalogues."""
        self.version = 0
        self.by_text: dict[str, dict[Key, CatalogueEntry]] = {}
        self.texts: dict[Key, str] = {}

    def __len__(self) -> int:
        return sum(entry.alive for entry in self.entries.values())

    def merge(self, entries: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
        """Merge entries; returns those that were new."""
        new = []
        for entry in entries:
            key = entry.topic.key
            known = self.entries.get(key)
            if known is not None and _rank(known) >= _rank(entry):
                continue
            if known is not None:
                self.buckets[key[0] % BUCKETS] ^= _checksum(known)
            self.buckets[key[0] % BUCKETS] ^= _checksum(entry)
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

    def differing(self, buckets: Sequence[int]) -> tuple[CatalogueEntry, ...]:
        """The entries of all buckets whose checksum differs from that of another catalogue."""
        differing = {
            number for number, (own, other) in enumerate(zip(self.buckets, buckets, strict=False)) if own != other
        }
        return tuple(entry for key, entry in self.entries.items() if key[0] % BUCKETS in differing)


def _digest(buckets: Iterable[int]) -> int:
    digest = 0
    for number in buckets:
        digest = (digest * 31 + number) & 0x7FFF_FFFF_FFFF_FFFF
    return digest


def _rank(entry: CatalogueEntry) -> tuple[int, bool, int]:
    return entry.version, entry.alive, len(entry.plans)


def _checksum(entry: CatalogueEntry) -> int:
    text = f"{entry.version} {entry.alive} {len(entry.plans)}"
    return int.from_bytes(id_of(entry.topic.key, text)[:7], "big")


class TopicClassifier(Protocol):
    """Returns the topics that each event matches."""

    def __call__(self, events: Sequence[Event], catalogue: TopicCatalogue, /) -> list[tuple[TopicHit, ...]]: ...


class MatchingClassifier:
    """Matches events with a matcher; nodes with equal catalogues may share one.

    `unsupported` has the topics that this node cannot match, with the reason.
    """

    def __init__(self, make: Callable[[], Matcher] = Matcher) -> None:
        self._matcher = make()
        self._handles: dict[str, int] = {}
        self._keys: dict[str, tuple[Key, bool]] = {}
        self._seen: tuple[int, int] | None = None
        self.unsupported: dict[str, str] = {}

    def __call__(self, events: Sequence[Event], catalogue: TopicCatalogue) -> list[tuple[TopicHit, ...]]:
        if self._seen != (id(catalogue), catalogue.version):
            self._update(catalogue)
        return [self._hits(matches) for matches in self._matcher.match_batch(events)]

    def _hits(self, matches: Sequence[Match]) -> tuple[TopicHit, ...]:
        hits = []
        for match in matches:
            topic, approximate = self._keys[str(match.subscription)]
            values = _values(match.event, match.mappings) if approximate else ()
            hits.append(TopicHit(topic, match.probability, values))
        return tuple(sorted(hits, key=_topic) if len(hits) > 1 else hits)

    def _update(self, catalogue: TopicCatalogue) -> None:
        for text in self._handles.keys() - catalogue.by_text.keys():
            self._matcher.remove(self._handles.pop(text))
        for text in catalogue.by_text.keys() - self._handles.keys() - self.unsupported.keys():
            try:
                self._handles[text] = self._add(self._matcher, text)
            except LikewiseError as error:
                # A topic that needs a measure or space which this node lacks must not block the others.
                self.unsupported[text] = str(error)
        self._seen = (id(catalogue), catalogue.version)

    def _add(self, matcher: Matcher, text: str) -> int:
        subscription = parse_subscription(text)
        if not isinstance(subscription.body, Profile):
            raise InputError(f"not a profile: {text}")
        self._keys[text] = (ProfileTopic(text).key, _has_approximate_attribute(subscription.body.predicates))
        return matcher.add(subscription.body, options=subscription.options, key=text)

    def check(self, topics: Iterable[ProfileTopic]) -> None:
        """Raise an error for a topic that this node cannot match, because it lacks a measure or a space."""
        trial = self._matcher.sibling()
        for topic in topics:
            self._add(trial, topic.text)


def _topic(hit: TopicHit) -> Key:
    return hit.topic


def _has_approximate_attribute(predicates: Iterable[Predicate]) -> bool:
    return any(predicate.attribute_approximate for predicate in predicates)


def _values(event: Event, mappings: Sequence[Mapping]) -> tuple[tuple[str, int, float], ...]:
    """For approximate attributes: which tuple each mapping chose, weighted relative to the best mapping."""
    best = mappings[0].probability if mappings else 1.0
    places = {values: place for place, values in reversed(list(enumerate(event.tuples)))}
    names = {normalise(name) for name, _ in event.tuples}
    weights: dict[tuple[str, int], float] = {}
    for mapping in mappings:
        for pair in mapping.correspondences:
            name = pair.predicate.attribute
            if pair.predicate.attribute_approximate and normalise(name) not in names:
                weights.setdefault((name, places[pair.tuple]), mapping.probability / best)
    return tuple((name, place, weight) for (name, place), weight in weights.items())
