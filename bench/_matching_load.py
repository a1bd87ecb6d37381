"""The papers' load: 94 fully approximate subscriptions, 14,743 events; exactness of scores, and baselines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from _matching_world import Row, filled, rate, seconds
from likewise.errors import LikewiseError
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.events import Event, normalise
from likewise.language import Profile
from likewise.matching import Matcher
from likewise.matching.definition import attribute_matrix, value_matrix
from likewise.matching.encoding import term_of
from likewise.matching.settings import Aggregation, aggregate
from likewise.semantics import Competitors, Contrast, Esa, Measure, Space, contrasted

AIMED = ("approximate", "thematic", "contrast")
APPROACHES = (*AIMED, "evidence", "clustered", "hybrid", "concept", "exact")
THEMES = (3, 10)
"""Event tags and subscription tags of the thematic load."""


def papers(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Every approach with a warm vocabulary and with all words new, and the difference from plain NumPy."""
    for approach in AIMED if quick else APPROACHES:
        tags = data.themes(*THEMES) if approach == "thematic" else ((), ())
        events = [Event(e.id, e.tuples, tuple(tags[0]), e.start, e.end) for e in data.events]
        # Ranks depend on all attributes of an event, so the first pass of hybrid is long: a tenth is enough.
        events = events[::10] if approach == "hybrid" else events
        profiles = [Profile(subscription.body.predicates, tuple(tags[1])) for subscription in data.subscriptions]
        try:
            matcher = filled(Matcher(spaces=[space], approach=approach, threshold=0.3), profiles)
            first = seconds(lambda m=matcher, e=events: m.score_batch(m.encode(e)))
        except LikewiseError as error:
            yield {"what": approach, "value": None, "unit": "events/s", "note": f"skipped: {error.message}"}
            continue
        goal = {"target": ">= 200,000"} if approach in AIMED else {}
        yield {"what": f"papers' load, {approach}", "value": rate(matcher, events, runs=5), "unit": "events/s", **goal}
        yield {"what": f"papers' load, {approach}, all words new", "value": len(events) / first, "unit": "events/s"}
        if approach in AIMED:
            gap = _gap(space, approach, profiles, events[:: 600 if quick else 150])
            what = f"papers' load, {approach}: largest difference from plain NumPy"
            yield {"what": what, "value": gap, "unit": "score", "target": "< 1e-6"}


def _gap(space: Space, approach: str, profiles: Sequence[Profile], events: Sequence[Event]) -> float:
    """The kernel's scores compared with those of the four matrices, pair by pair."""
    matcher = filled(Matcher(spaces=[space], approach=approach, threshold=0.0), profiles)
    found = matcher.score_batch(matcher.encode(events))
    scores = np.zeros((len(events), len(profiles)))
    scores[found.event, found.handle] = found.score
    names = _table(matcher, approach, profiles, events, names=True)
    values = _table(matcher, approach, profiles, events, names=False)
    worst = 0.0
    for e, event in enumerate(events):
        for p, profile in enumerate(profiles):
            matrix = attribute_matrix(profile, event, names) * value_matrix(profile, event, values)
            score = aggregate(matrix.max(axis=1).tolist(), Aggregation.GEOMETRIC)
            worst = max(worst, abs(score - scores[e, p]))
    return float(worst)


def _table(
    matcher: Matcher, approach: str, profiles: Sequence[Profile], events: Sequence[Event], *, names: bool
) -> Callable[[Sequence[str], Sequence[str]], Any]:
    """Relatedness looked up in one matrix."""
    measure = matcher._options.measures.of("approximate" if approach == "contrast" else approach)
    subscribed = sorted({normalise(q.attribute) if names else term_of(q.value) for p in profiles for q in p.predicates})  # type: ignore[arg-type]
    published = sorted({normalise(a) if names else term_of(v) for e in events for a, v in e.tuples})
    themes = {"subscription_theme": profiles[0].theme, "event_theme": events[0].theme} if approach == "thematic" else {}
    whole = measure.matrix(subscribed, published, **themes)
    if approach == "contrast":
        tau = Contrast(measure, Competitors.of(())).temperature
        whole = contrasted(whole.T, whole.max(axis=0), tau).T
    rows, columns = ({term: at for at, term in enumerate(terms)} for terms in (subscribed, published))
    return lambda left, right: whole[np.ix_([rows[t] for t in left], [columns[t] for t in right])]


def peers(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """A loop over pairs, as in the papers; and sentence embeddings with FAISS."""
    profiles = [subscription.body for subscription in data.subscriptions]
    # A whole pass would take hours: the rate of two events is the rate of all.
    sample = data.events[100:14_000:7_000] if not quick else data.events[100:101]
    profiles = profiles[:10] if quick else profiles
    measure: Measure = Esa(space)
    spent = seconds(lambda: [_loop(measure, profile, event) for event in sample for profile in profiles])
    what = f"peer: ESA in a loop over pairs of terms, {len(profiles)} subscriptions"
    note = f"{len(sample)} of {len(data.events):,} events"
    yield {"what": what, "value": len(sample) / spent, "unit": "events/s", "note": note}
    try:
        yield from _faiss(data)
    except (ImportError, LikewiseError) as error:
        yield {"what": "peer: MiniLM and FAISS", "value": None, "unit": "events/s", "note": f"skipped: {error}"}


def _loop(measure: Measure, profile: Profile, event: Event) -> float:
    """One cosine after the other, each computed when needed."""
    product = 1.0
    for predicate in profile.predicates:
        product *= max(
            float(measure.matrix([predicate.attribute], [name])[0, 0])
            * float(measure.matrix([str(predicate.value)], [str(value)])[0, 0])
            for name, value in event.tuples
        )
    return product


def _faiss(data: ThematicDataset) -> Iterator[Row]:
    """Each distinct term embedded once; an event is the mean of its terms, compared with all subscriptions."""
    import faiss

    from likewise.semantics import Embedding

    faiss.omp_set_num_threads(1)
    profiles = [subscription.body for subscription in data.subscriptions]
    subscribed = [[t for p in profile.predicates for t in (p.attribute, str(p.value))] for profile in profiles]
    published = [[t for a, v in event.tuples for t in (a, str(v))] for event in data.events]
    terms = sorted({term for texts in (*subscribed, *published) for term in texts})
    measure, start = Embedding(), time.process_time()
    vectors = measure.vectors(terms)
    spent = time.process_time() - start
    yield {"what": "peer: MiniLM, distinct terms embedded", "value": len(terms) / spent, "unit": "terms/s"}
    number = {term: at for at, term in enumerate(terms)}
    left, right = (_means(texts, vectors, number) for texts in (subscribed, published))
    index = faiss.IndexFlatIP(left.shape[1])
    index.add(left)
    best = min(seconds(lambda: index.search(right, len(subscribed))) for _ in range(3))
    yield {
        "what": "peer: MiniLM cosine of whole texts over all pairs with FAISS",
        "value": len(published) / best,
        "unit": "events/s",
        "note": "embedding not counted; one cosine a pair: no predicates, no mapping, no threshold",
    }
    pairs = faiss.IndexFlatIP(left.shape[1])
    asked = sorted({term for texts in subscribed for term in texts})
    pairs.add(vectors[[number[term] for term in asked]])
    rows = [np.array([number[term] for term in texts]) for texts in published[:1000]]
    spent = seconds(lambda: [pairs.search(vectors[row], len(asked)) for row in rows])
    yield {
        "what": f"peer: MiniLM cosine of all pairs of terms with FAISS, {len(asked)} subscription terms",
        "value": len(rows) / spent,
        "unit": "events/s",
        "note": "embedding not counted; the terms' cosines only, scores not yet made of them",
    }


def _means(texts: Sequence[Sequence[str]], vectors: Any, number: dict[str, int]) -> Any:
    sums = np.array([vectors[[number[term] for term in words]].sum(axis=0) for words in texts], dtype=np.float32)
    return np.ascontiguousarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9))
