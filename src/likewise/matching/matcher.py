"""The matcher: finds the registered profiles that an event matches."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Options, Profile
from likewise.matching.background import Background, Commonness, KnownStream
from likewise.matching.competition import Competition
from likewise.matching.definition import MatrixParts, parts_of
from likewise.matching.encoding import Encoded, TupleVocabulary
from likewise.matching.explain import Explanation, explain
from likewise.matching.index.exact import ExactIndex
from likewise.matching.index.groups import GroupKey, Groups, MatchGroup
from likewise.matching.index.lists import grown
from likewise.matching.index.sparse import SparseGroup
from likewise.matching.match import Match, best_assignments
from likewise.matching.settings import (
    EVIDENCE,
    Aggregation,
    Approach,
    MatcherOptions,
    Measures,
    Settings,
    aggregate,
    compared_by_meaning,
)
from likewise.matching.topics import Taxonomy
from likewise.semantics import Competitors, Evidence, Measure, Space

DENSE = 1024
"""Up to this many distinct predicates of a group are scored for every event; beyond that, profiles are indexed."""


class EventScores(NamedTuple):
    """All matches of a batch as columns: event, profile and score."""

    event: NDArray[np.int32]
    handle: NDArray[np.int32]
    score: NDArray[np.float32]


class ScoringState(NamedTuple):
    """What scores depend on besides settings and measures: the known stream, and the version of the competition."""

    stream: KnownStream
    competition: int


@dataclass(slots=True)
class Registration:
    """A registered profile; an exact one has no group."""

    key: Hashable
    profile: Profile
    settings: Settings
    group: MatchGroup | None
    slot: int = -1
    """Its number in the group; slots of removed profiles are reused, handles never."""

    _conditions: NDArray[np.intp] | None = None

    @property
    def conditions(self) -> NDArray[np.intp]:
        """The numbers of its predicates in the group, looked up at the first match."""
        if self._conditions is None:
            assert self.group is not None
            self._conditions = np.array(self.group.conditions.numbers(self.profile.predicates), np.intp)
        return self._conditions


class Matcher:
    """Matches events against many profiles at once.

    >>> from likewise.language import Operator, Predicate
    >>> matcher = Matcher()
    >>> parking = Profile((Predicate("slots", Operator.GT, 0), Predicate("city", Operator.EQ, "Galway")))
    >>> handle = matcher.add(parking, key="parking")
    >>> [match.subscription for match in matcher.match(Event.of({"city": "galway", "slot": 3}))]
    ['parking']
    """

    def __init__(
        self,
        measure: Measure | Mapping[str, Measure] | None = None,
        *,
        spaces: Sequence[Space | str | Path] = (),
        approach: str | None = None,
        threshold: float | None = None,
        aggregation: str | Aggregation | None = None,
        top_k: int = 1,
        distinct: bool = False,
        competitors: Competitors | tuple[Competitors, Competitors] | None = None,
        background: Competitors | Background | None = None,
        temperature: float | None = None,
        attribute_bits: float | None = None,
        taxonomy: Taxonomy | Path | str | None = None,
        dense: int = DENSE,
        vocabulary: TupleVocabulary | None = None,
    ) -> None:
        """Create an empty matcher.

        `measure` is one measure for all approaches, or a measure for each approach by name; the missing ones are
        built from `spaces`. The default `approach` is evidence for profiles with `~` and exact for the others. The
        default `threshold` is 0.5 for evidence, and the best one measured for the papers' approaches. With `distinct`
        a tuple answers one predicate only. `competitors` fixes the terms of contrast; by default they are those of
        the registered profiles. `background` is a vocabulary of the stream, or a `Background`: a sample of its events,
        from which the matcher learns how common answers are. With more than `dense` distinct predicates, profiles
        are indexed instead of all scored. `taxonomy` has the topics of the approach
        clustered. `attribute_bits` are added to the log odds of an attribute whose text value matches; by default
        they are learned for evidence, and 0 for the papers' approaches.
        """
        chosen = None if approach is None else Approach.parse(approach)
        given: object = background  # callers without type checks may pass a text
        if isinstance(given, str):
            raise BuildError(
                f"{given!r} is not a background",
                hint="give Background.of(events); only an engine learns one from its stream",
            )
        if background is not None and chosen not in (None, EVIDENCE):
            raise BuildError(
                f"the approach {approach} cannot use a background", hint="leave it out, or choose evidence"
            )
        self._options = MatcherOptions(
            Measures(
                measure,
                spaces=spaces,
                background=None if isinstance(background, Background) else background,
            ),
            approach=chosen,
            threshold=threshold,
            aggregation=None if aggregation is None else Aggregation.parse(aggregation),
            top_k=top_k,
            temperature=temperature,
            attribute_bits=attribute_bits,
            taxonomy=taxonomy,
        )
        self._distinct = distinct
        self._competition = Competition(competitors)
        self._dense = dense
        # Not `vocabulary or …`: an empty vocabulary is false, but must be shared too.
        self.vocabulary = TupleVocabulary() if vocabulary is None else vocabulary
        self._registrations: dict[int, Registration] = {}
        self._next = 0
        self._free: list[int] = []
        self._handle_of = np.zeros(64, dtype=np.int32)
        self._lock = self.vocabulary.lock
        self._exact = ExactIndex(self.vocabulary)
        self._stream = KnownStream()
        self._sampled: Encoded | None = None
        self._groups = Groups(self._make_group, dense=dense)
        if isinstance(background, Background):
            self.learn(background)

    def __len__(self) -> int:
        return len(self._registrations)

    @property
    def measure(self) -> Measure | None:
        """The measure of the approximate approach; None without a measure and without spaces."""
        return self._options.measures.approximate

    def sibling(self) -> Matcher:
        """An empty matcher with the same measures, options and competitors, so that it gives the same scores."""
        twin = Matcher(distinct=self._distinct, dense=self._dense, vocabulary=self.vocabulary)
        twin._options, twin._competition = self._options, self._competition
        twin._set_stream(self._stream)
        return twin

    def learn(self, background: Background | None) -> None:
        """Use a sample of the stream, from which follows how common answers are; None removes it."""
        with self._lock:
            self._set_stream(KnownStream(() if background is None else background.events))

    @property
    def is_indexed(self) -> bool:
        """Whether any profiles are indexed instead of all scored."""
        return any(isinstance(group, SparseGroup) and group.conditions.used for group in self._groups)

    @property
    def learns(self) -> bool:
        """Whether a sample of the stream would change scores: some profile uses evidence."""
        return any(entry.settings.approach == EVIDENCE for entry in self._registrations.values())

    def _set_stream(self, stream: KnownStream) -> None:
        self._stream, self._sampled = stream, None
        for group in self._groups:
            group.set_stream(None, None)

    def _refresh_sample(self) -> None:
        """Encode the sample anew for all groups, if the vocabulary was cleared."""
        if not self._stream.events:
            return
        if self._sampled is None or self._sampled.generation != self.vocabulary.generation:
            self._sampled = self.vocabulary.encode(self._stream.events)
            for group in self._groups:
                self._share_sample(group)

    def _share_sample(self, group: MatchGroup) -> None:
        group.set_stream(self._sampled, None if self._sampled is None else self._stream.around(group.measure))

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:
        """Register a profile and return its handle."""
        with self._lock:
            settings = self.settings(profile, options)
            handle, slot = self._next, self._free[-1] if self._free else len(self._registrations)
            group = None if settings.approach.base == "exact" else self._groups.place(slot, profile, settings)
            if group is None:
                self._exact.add(slot, profile)
            elif settings.approach.contrast:
                self._competition.enter(profile)
            if self._free:
                self._free.pop()
            self._next += 1
            self._handle_of = grown(self._handle_of, slot + 1)
            self._handle_of[slot] = handle
            name = handle if key is None else key
            self._registrations[handle] = Registration(name, profile, settings, group, slot)
            if isinstance(group, SparseGroup):
                self._move(self._groups.moving(profile, settings))
            return handle

    def _move(self, slots: Sequence[int]) -> None:
        """Move profiles from the group where all are scored to the index."""
        for slot in slots:
            handle = int(self._handle_of[slot])
            entry = self._registrations[handle]
            assert entry.group is not None
            # Added there before it is removed here, so that the terms of both are never dropped in between.
            group = self._groups.place(slot, entry.profile, entry.settings)
            self._groups.leave(entry.group, slot, entry.profile, entry.settings)
            self._registrations[handle] = replace(entry, group=group)

    def settings(self, profile: Profile, options: Options | None = None) -> Settings:
        """The settings with which a profile with these options would be matched."""
        return self._options.settings(profile, options or Options())

    def remove(self, handle: int) -> None:
        """Remove a profile."""
        with self._lock:
            entry = self._known(handle)
            if entry.group is None:
                self._exact.remove(entry.slot)
            else:
                self._groups.leave(entry.group, entry.slot, entry.profile, entry.settings)
            if entry.settings.approach.contrast:
                self._competition.leave(entry.profile)
            self._free.append(entry.slot)
            del self._registrations[handle]

    @property
    def compared(self) -> int:
        """How many pairs of event and profile were compared so far; clustering and indexing skip most pairs."""
        return sum(int(group.compared[0]) for group in self._groups)

    @property
    def competitors(self) -> tuple[Competitors, Competitors]:
        """The competing attributes and values; a matcher with the same competitors gives the same scores."""
        return self._competition.competitors

    def encode(self, events: Sequence[Event]) -> Encoded:
        """Events as numbers, for the batch calls."""
        with self._lock:
            return self.vocabulary.encode(events)

    def match(self, event: Event) -> list[Match]:
        """The matches of an event, best score first."""
        return self.match_batch((event,))[0]

    def match_batch(self, events: Sequence[Event]) -> list[list[Match]]:
        """The matches of every event, best score first, in the order of the events."""
        out: list[list[Match]] = [[] for _ in events]
        with self._lock:
            encoded = self.encode(events)
            for at, match in self.matches_of(encoded, self.score_batch(encoded)):
                out[at].append(match)
        return out

    def matches_of(
        self, encoded: Encoded, scores: EventScores, *, handles: Container[int] | None = None
    ) -> list[tuple[int, Match]]:
        """Build the matches of scored pairs, of these profiles or of all; by event, best score first.

        Each match comes with the position of its event.
        """
        matches: list[tuple[int, Match]] = []
        # Single events often match nothing, or only one profile.
        if not len(scores.event):
            return matches
        if len(scores.event) > 1:
            order = np.lexsort((-scores.score, scores.event))
            scores = EventScores(scores.event[order], scores.handle[order], scores.score[order])
        with self._lock:
            explain = partial(self._explain_match, ScoringState(self._stream, self._competition.version))
            columns = scores.event.tolist(), scores.handle.tolist(), scores.score.tolist()
            for at, handle, score in zip(*columns, strict=True):
                wanted = handles is None or handle in handles
                match = self._match(encoded, at, handle, score, explain) if wanted else None
                if match is not None:
                    matches.append((at, match))
        if self._distinct:
            matches.sort(key=lambda pair: (pair[0], -pair[1].score))
        return matches

    def score_batch(self, encoded: Encoded) -> EventScores:
        """The scores that reach the thresholds, without building matches."""
        with self._lock:
            self._refresh_sample()
            if encoded.generation != self.vocabulary.generation:
                encoded = self.encode(encoded.events)
            which, slots = self._exact.match(encoded)
            parts = [EventScores(which, slots, np.ones(len(which), dtype=np.float32))]
            parts += [EventScores(*group.match(encoded)) for group in self._groups]
            event, slots, score = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
            return EventScores(event, self._handle_of[slots], score)

    def probabilities(self, handles: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
        """The scores of these profiles as probabilities of a match."""
        distinct, place = np.unique(handles, return_inverse=True)
        powers = np.array([self._registrations[handle].settings.power for handle in distinct.tolist()], np.float64)
        raised: NDArray[np.float64] = (
            scores.astype(np.float64) ** powers[place] if len(distinct) else scores.astype(np.float64)
        )
        return np.minimum(raised, 1.0)

    def _match(
        self, encoded: Encoded, at: int, handle: int, score: float, explain: Callable[[Match], Explanation]
    ) -> Match | None:
        entry = self._registrations[handle]
        matrix = None if entry.group is None else entry.group.matrix(encoded, at, entry.conditions)
        if self._distinct:
            # The kernel's score ignores this condition and is never lower, so no match is missed.
            score = self._distinct_score(entry, encoded.events[at], matrix)
            if score < entry.settings.threshold or score <= 0:
                return None
        return Match(
            entry.key,
            encoded.events[at],
            score,
            profile=entry.profile,
            threshold=entry.settings.threshold,
            approach=entry.settings.approach,
            aggregation=entry.settings.aggregation,
            power=entry.settings.power,
            matrix=matrix,
            top_k=entry.settings.top_k,
            distinct=self._distinct,
            explain=explain,
        )

    def explain(self, subscription: int | Profile, event: Event, *, options: Options | None = None) -> Explanation:
        """Why an event matches a profile (by handle, or any profile), or why not."""
        if isinstance(subscription, Profile):
            settings = self.settings(subscription, options)
            return self._explain("this subscription", subscription, event, settings)
        entry = self._known(subscription)
        return self._explain(str(entry.key), entry.profile, event, entry.settings)

    def rank(
        self,
        subscription: int | Profile,
        events: Sequence[Event],
        *,
        options: Options | None = None,
        limit: int | None = None,
    ) -> list[Match]:
        """The events with a score above 0, best first, without a threshold [002 sec 5.3]."""
        if isinstance(subscription, Profile):
            settings = self.settings(subscription, options)
            entry = Registration("this subscription", subscription, settings, None)
        else:
            entry = self._known(subscription)
        alone = self.sibling()
        with self._lock:
            handle = alone.add(entry.profile, options=_any_score(entry.settings), key=entry.key)
            ranked = [match for matches in alone.match_batch(events) for match in matches]
            # Its terms must not stay in the competition, which both matchers share.
            alone.remove(handle)
        return sorted(ranked, key=_descending)[:limit]

    def without_thresholds(self, handles: Iterable[int]) -> Matcher:
        """A matcher of some of the profiles that gives every score above 0, to find near misses."""
        twin = self.sibling()
        with self._lock:
            for entry in map(self._known, handles):
                twin.add(entry.profile, options=_any_score(entry.settings), key=entry.key)
        return twin

    def parts(self, profile: Profile, event: Event, settings: Settings, *, themes: bool = True) -> MatrixParts:
        """Attribute and value matrix in plain NumPy: slow, the reference for the kernels."""
        measure = self._options.measure_of(settings.approach)
        with self._lock:
            self._refresh_sample()
            group = self._groups.of(settings.approach)
        return parts_of(
            profile,
            event,
            settings,
            measure=measure,
            beside=self._beside(measure),
            competition=self._competition,
            temperature=1.0 if measure is None else self._options.temperature_of(settings.approach),
            attribute_bits=self._options.bits_of(settings.approach),
            themes=themes,
            best_rivals=None if group is None else partial(self._best_rivals, group),
        )

    def _best_rivals(self, group: MatchGroup, side: int, terms: Sequence[str]) -> Mapping[str, float]:
        with self._lock:
            return group.best_rivals(side, terms)

    def _beside(self, measure: Measure | None) -> Measure | None:
        """The measure of values, which includes the values of a known stream."""
        around = self._stream.around(measure)
        return measure.beside(around) if around is not None and isinstance(measure, Evidence) else measure

    def _explain_match(self, state: ScoringState, match: Match) -> Explanation:
        """Explain a match with the state and the settings it was scored with, not those of the matcher now."""
        options = Options(match.threshold, None, None if match.approach is None else str(match.approach))
        settings = self.settings(match.profile, options)
        if match.aggregation is not None:
            settings = replace(settings, aggregation=match.aggregation)
        return self._as_of(state)._explain(str(match.subscription), match.profile, match.event, settings)

    def _as_of(self, state: ScoringState) -> Matcher:
        """A matcher that scores as this one did in an earlier state."""
        if state == (self._stream, self._competition.version):
            return self
        competition = self._competition.as_of(state.competition)
        if competition is None:
            raise BuildError(
                "subscriptions have changed too often since this match to explain it",
                hint="explain a match sooner, or explain its event with the subscriptions of now",
            )
        twin = self.sibling()
        twin._competition = competition
        twin._set_stream(state.stream)
        return twin

    def _explain(self, name: str, profile: Profile, event: Event, settings: Settings) -> Explanation:
        base = settings.approach.base
        themed = base == "thematic" and bool(profile.theme or event.theme)
        measure = self._options.measure_of(settings.approach)
        return explain(
            name,
            profile,
            event,
            settings,
            parts=self.parts(profile, event, settings),
            plain=self.parts(profile, event, settings, themes=False) if themed else None,
            measure=measure,
            beside=self._beside(measure),
            distinct=self._distinct,
            commonness=self._commonness(profile, settings),
            out_of_topics=self._options.out_of_topics(profile, event) if base == "clustered" else (),
        )

    def _distinct_score(self, entry: Registration, event: Event, matrix: NDArray[np.float32] | None) -> float:
        entries = Match(entry.key, event, 1.0, profile=entry.profile, matrix=matrix).matrix
        best = best_assignments(entries, 1, distinct=True)
        if not best:
            return 0.0
        reached = [float(entries[i, j]) for i, j in enumerate(best[0][0])]
        commonness = self._commonness(entry.profile, entry.settings)
        return aggregate(reached, entry.settings.aggregation, commonness=commonness)

    def _commonness(self, profile: Profile, settings: Settings) -> Commonness:
        """How common answers to a profile's predicates are in the stream, if a sample is known."""
        if not self._stream.events or settings.aggregation is not Aggregation.JOINT:
            return Commonness.unknown(list(map(compared_by_meaning, profile.predicates)))
        with self._lock:
            # Not in a sibling: that would have to prepare all competing terms anew.
            self._refresh_sample()
            first_free = self._next
            handle = self.add(profile, options=Options(settings.threshold, None, str(settings.approach)))
            group = self._registrations[handle].group
            assert group is not None
            commonness = group.commonness(profile)
            self.remove(handle)
            self._next = first_free
            return commonness

    def _make_group(self, key: GroupKey) -> MatchGroup:
        approach, theme, kind = key
        measure = self._options.measure_of(approach)
        assert measure is not None
        group = kind(
            self.vocabulary,
            measure,
            theme=theme,
            thematic=approach.base == "thematic",
            temperature=self._options.temperature_of(approach) if approach.contrast else None,
            competition=self._competition,
            attribute_bits=self._options.bits_of(approach),
            **({"clusters": self._options.clusters()} if approach.base == "clustered" else {}),
        )
        self._share_sample(group)
        return group

    def _known(self, handle: int) -> Registration:
        try:
            return self._registrations[handle]
        except KeyError:
            raise BuildError(f"no profile has the handle {handle}", hint="it may have been removed") from None


def _any_score(settings: Settings) -> Options:
    how = None if settings.approach.base == "exact" else settings.aggregation
    return Options(0.0, settings.top_k, str(settings.approach), how)


def _descending(match: Match) -> float:
    return -match.score
