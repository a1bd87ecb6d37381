"""The default score over a million indexed subscriptions: recall, new words, rate and memory."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from _matching_world import TUPLES, Row, filled, rate, resident, seconds, subscriptions
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.events import Event
from likewise.language import Predicate, Profile
from likewise.matching import Background, Matcher
from likewise.semantics import Evidence, Space, WordNet

SIZES = {"size": 1_000_000, "sampled": 1_000, "count": 6_000}
QUICK = {"size": 2_000, "sampled": 200, "count": 1_000}
PART = 500
"""Events that are scored at a time."""
SINGLE = 300
"""Events published one by one, to measure the matching of new words."""


def index_recall(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """The default approach with all subscriptions indexed, compared with scoring a sample of them for every event.

    Every event answers one of the sampled subscriptions in other words, so that thousands of matches are in play. Both
    matchers have the same competitors, those of all subscriptions.
    """
    chosen = QUICK if quick else SIZES
    size, count = chosen["size"], chosen["count"]
    profiles = subscriptions(data, size, quick=quick)
    sample = sorted(random.Random(8).sample(range(size), chosen["sampled"]))
    events = _answers([profiles[at] for at in sample], count)
    gc.collect()
    gc.freeze()
    _say(f"{size:,}: indexing")
    evidence, before = Evidence([space]), resident()
    indexed = Matcher({"evidence": evidence}, approach="evidence", dense=0)
    adding = seconds(lambda: filled(indexed, profiles)) / size
    what = f"{size:,} evidence subscriptions"
    yield {"what": f"{what}: add", "value": 1e6 * adding, "unit": "µs"}
    yield {"what": f"{what}: memory", "value": (resident() - before) / size, "unit": "B/subscription",
           **({} if quick else {"target": "<= 1024"})}  # fmt: skip
    indexed.match(Event.of({"kind": "first"}))
    _say("first sight")
    times = _first_sights(indexed, events[:SINGLE])
    for share in (50, 99):
        goal = {"target": "< 25"} if share == 99 else {}
        value = 1e3 * float(np.percentile(times, share))
        yield {"what": f"{what}: first sight of a term, p{share}", "value": value, "unit": "ms", **goal}
    # Fixed competitors: the same as those of the index.
    whole = Matcher({"evidence": evidence}, approach="evidence", competitors=indexed.competitors, dense=sys.maxsize)
    filled(whole, [profiles[at] for at in sample])
    for background in (None, Background.of(events)):
        known = "" if background is None else ", with a background"
        indexed.learn(background)
        whole.learn(background)
        _say(f"scoring with the index{known}")
        by_index = _found(indexed, events, handles=sample)
        yield {"what": f"{what}: rate{known}, all words known", "value": rate(indexed, events), "unit": "events/s"}
        yield {"what": f"{what}: memory of the process{known}", "value": resident() / 1e9, "unit": "GB",
               **({} if quick else {"target": "< 6"})}  # fmt: skip
        _say(f"scoring all{known}")
        wanted = {(sample[handle], event) for handle, event in _found(whole, events)}
        share = len(wanted & by_index) / max(1, len(wanted))
        both = f"{len(wanted & by_index):,} of {len(wanted):,} matches of {count:,} events"
        yield {"what": f"{what}: recall of the index{known}", "value": share, "unit": "recall", "target": ">= 0.999",
               "note": f"{both} with {len(sample):,} subscriptions; {len(by_index - wanted)} others"}  # fmt: skip


def _answers(profiles: Sequence[Profile], count: int) -> list[Event]:
    """Events of eight tuples; each answers all predicates of one profile, most of them in other words."""
    chance, wordnet = random.Random(7), WordNet.load()

    def say(value: str) -> str:
        others = sorted({word for sense in wordnet.senses(value)[:1] for word in wordnet.words(sense.synset)} - {value})
        return chance.choice(others) if others and chance.random() < 0.5 else value

    predicates: list[Predicate] = [predicate for profile in profiles for predicate in profile.predicates]
    out = []
    for number in range(count):
        asked = list(profiles[number % len(profiles)].predicates)
        asked += chance.choices(predicates, k=TUPLES - len(asked))
        tuples = [(predicate.attribute, say(str(predicate.value))) for predicate in asked]
        out.append(Event(str(number), tuple(tuples)))
    return out


def _first_sights(matcher: Matcher, events: Sequence[Event]) -> list[float]:
    """For each event with new values, the time of matching it alone divided by their number."""
    seen: set[str] = set()
    times = []
    for event in events:
        new = {str(value) for _, value in event.tuples} - seen
        spent = seconds(lambda e=event: matcher.score_batch(matcher.encode([e])))
        seen |= new
        times += [spent / len(new)] if new else []
    return times


def _found(matcher: Matcher, events: Sequence[Event], *, handles: Sequence[int] = ()) -> set[tuple[int, int]]:
    """The pairs of handle and event that match, of these handles or of all."""
    out: set[tuple[int, int]] = set()
    for start in range(0, len(events), PART):
        found = matcher.score_batch(matcher.encode(events[start : start + PART]))
        kept = np.isin(found.handle, handles) if handles else np.ones(len(found.handle), np.bool_)
        out |= set(zip(found.handle[kept].tolist(), (found.event[kept] + start).tolist(), strict=True))
    return out


def _say(message: str) -> None:
    print(f"matching: index recall, {message}", file=sys.stderr)
