"""Approximate matching: the papers' load, growth to a million subscriptions, new words, change while running."""

from __future__ import annotations

import gc
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from likewise.evaluation.thematic_dataset import ThematicDataset, build_thematic
from likewise.events import Event, normalise
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
from likewise.matching._aggregation import Aggregation, aggregate
from likewise.matching._matrices import attribute_matrix, value_matrix
from likewise.matching._vocabulary import term_of
from likewise.semantics import Competitors, Contrast, Esa, Measure, Space, WordNet, contrasted, find_space

SPACE = "wikipedia"
APPROACHES = ("approximate", "thematic", "contrast", "clustered", "concept")
THEMES = (3, 10)
"""Event tags and subscription tags of the thematic load."""

Row = dict[str, object]


def run(*, quick: bool = False) -> list[Row]:
    """Rows for the table of `likewise bench matching`."""
    try:
        space, data = find_space(SPACE), build_thematic()
    except LikewiseError as error:
        return [
            {"what": "approximate matching", "value": None, "unit": "events/s", "note": f"skipped: {error.message}"}
        ]
    rows: list[Row] = []
    for part in (_papers, _growth, _new_words, _change, _peers):
        print(f"matching: {part.__name__.strip('_')}", file=sys.stderr)
        rows += part(space, data, quick)
    return rows


def _papers(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """94 fully approximate subscriptions, 14,743 events, warm vocabulary."""
    for approach in APPROACHES[:3] if quick else APPROACHES:
        themed = approach == "thematic"
        tags = data.themes(*THEMES) if themed else ((), ())
        events = [Event(e.id, e.tuples, tuple(tags[0]), e.start, e.end) for e in data.events]
        profiles = [Profile(one.body.predicates, tuple(tags[1])) for one in data.subscriptions]
        try:
            matcher = _filled(Matcher(spaces=[space], approach=approach, threshold=0.3), profiles)
            first = _seconds(lambda m=matcher, e=events: m.score_batch(m.encode(e)))
        except LikewiseError as error:
            yield {"what": approach, "value": None, "unit": "events/s", "note": f"skipped: {error.message}"}
            continue
        best = min(_seconds(lambda m=matcher, e=events: m.score_batch(m.encode(e))) for _ in range(5))
        goal = {"target": ">= 200,000"} if approach in ("approximate", "thematic", "contrast") else {}
        yield {"what": f"papers' load, {approach}", "value": len(events) / best, "unit": "events/s", **goal}
        yield {"what": f"papers' load, {approach}, all words new", "value": len(events) / first, "unit": "events/s"}
        if approach in ("approximate", "thematic", "contrast"):
            gap = _gap(space, approach, profiles, events[:: 600 if quick else 100])
            what = f"papers' load, {approach}: largest difference from plain NumPy"
            yield {"what": what, "value": gap, "unit": "score", "target": "< 1e-6"}


def _gap(space: Space, approach: str, profiles: Sequence[Profile], events: Sequence[Event]) -> float:
    """The kernel's scores beside those of the four matrices, pair by pair."""
    matcher = _filled(Matcher(spaces=[space], approach=approach, threshold=0.0), profiles)
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
    """Relatedness looked up in one whole matrix."""
    measure = matcher._measures.of("approximate" if approach == "contrast" else approach)
    mine = sorted({normalise(q.attribute) if names else term_of(q.value) for p in profiles for q in p.predicates})  # type: ignore[arg-type]
    theirs = sorted({normalise(a) if names else term_of(v) for e in events for a, v in e.tuples})
    told = {"subscription_theme": profiles[0].theme, "event_theme": events[0].theme} if approach == "thematic" else {}
    whole = measure.matrix(mine, theirs, **told)
    if approach == "contrast":
        tau = Contrast(measure, Competitors.of(())).temperature
        whole = contrasted(whole.T, whole.max(axis=0), tau).T
    rows, columns = ({term: at for at, term in enumerate(terms)} for terms in (mine, theirs))
    return lambda left, right: whole[np.ix_([rows[t] for t in left], [columns[t] for t in right])]


def _growth(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """From a hundred to a million approximate subscriptions in the words of EuroVoc and WordNet."""
    measure = Esa(space)
    cost: dict[int, float] = {}
    for size in (100, 1_000, 10_000) if quick else (100, 1_000, 10_000, 100_000, 1_000_000):
        print(f"matching: growth, {size:,}", file=sys.stderr)
        profiles, events = _world(data, size, quick=quick)
        gc.collect()
        before = _resident()
        matcher = Matcher(measure, approach="approximate", threshold=0.5)
        adding = _seconds(lambda m=matcher, p=profiles: _filled(m, p))
        gc.collect()
        memory = (_resident() - before) / size
        matcher.score_batch(matcher.encode(events))
        cost[size] = min(_seconds(lambda m=matcher, e=events: m.score_batch(m.encode(e))) for _ in range(3))
        last = size == 1_000_000
        what = f"{size:,} approximate subscriptions, threshold 0.5"
        yield {
            "what": what,
            "value": len(events) / cost[size],
            "unit": "events/s",
            **({"target": ">= 1,000"} if last else {}),
        }
        yield {"what": f"{what}: add", "value": 1e6 * adding / size, "unit": "µs"}
        if size >= 100_000:
            # Growth of the whole process: below that, other allocations hide it.
            goal = {"target": "<= 1024"} if last else {}
            yield {"what": f"{what}: memory", "value": memory, "unit": "B/subscription", **goal}
        del matcher, profiles
    ratio = cost[max(cost)] / cost[min(cost)]
    what = f"cost per event, {max(cost):,} against {min(cost):,} subscriptions"
    yield {"what": what, "value": ratio, "unit": "x", "target": f"much less than {max(cost) // min(cost):,}"}


def _world(data: ThematicDataset, size: int, *, quick: bool) -> tuple[list[Profile], list[Event]]:
    """Profiles of two to four predicates, and events of eight tuples, in the same words."""
    chance = random.Random(5)
    values, names = _words(data, 4_000 if quick else 17_000, chance)
    profiles = [
        Profile(
            tuple(
                Predicate(chance.choice(names), Operator.EQ, chance.choice(values), True, True)
                for _ in range(chance.randint(2, 4))
            )
        )
        for _ in range(size)
    ]
    said = chance.sample(values, 2000)
    events = [
        Event(str(number), tuple((chance.choice(names), chance.choice(said)) for _ in range(8)))
        for number in range(1000)
    ]
    return profiles, events


def _words(data: ThematicDataset, count: int, chance: random.Random) -> tuple[list[str], list[str]]:
    """Values and two hundred attributes from EuroVoc's and WordNet's labels."""
    labels = sorted({normalise(str(v)) for event in data.events for _, v in event.tuples if isinstance(v, str)})
    try:
        lemmas = [lemma.replace("_", " ") for lemma in WordNet.load().lemmas()]
    except LikewiseError:
        lemmas = [f"{a} {b}" for a in labels for b in labels]
    extra = chance.sample(lemmas, count)
    return labels + extra, extra[:200]


def _new_words(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Single events, each with one value never seen before, against 10,000 subscription terms."""
    chance = random.Random(7)
    size = 1_000 if quick else 10_000
    values, names = _words(data, 2 * size, chance)
    matcher = Matcher(Esa(space), approach="approximate")
    for value in values[:size]:
        matcher.add(Profile((Predicate(chance.choice(names[:20]), Operator.EQ, value, True, True),)))
    matcher.match(Event.of({names[0]: "first", names[1]: "second"}))
    times = [_seconds(lambda v=value: matcher.match(Event.of({names[0]: v}))) for value in values[size : size + 500]]
    for share in (50, 99):
        goal = {"target": "< 5"} if share == 99 and not quick else {}
        what = f"first sight of a term, {size:,} subscription terms, p{share}"
        yield {"what": what, "value": 1e3 * float(np.percentile(times, share)), "unit": "ms", **goal}


def _change(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Adding and removing while events come, among many subscriptions."""
    profiles, events = _world(data, 2_000 if quick else 100_000, quick=quick)
    more = profiles[-1000:]
    matcher = _filled(Matcher(Esa(space), approach="approximate"), profiles[:-1000])
    matcher.match_batch(events)
    times: dict[str, list[float]] = {"add one": [], "match the next event": [], "remove one": []}
    for number, profile in enumerate(more):
        handles: list[int] = []
        times["add one"].append(_seconds(lambda p=profile, h=handles: h.append(matcher.add(p))))
        times["match the next event"].append(_seconds(lambda n=number: matcher.match(events[n % len(events)])))
        times["remove one"].append(_seconds(lambda h=handles: matcher.remove(h[0])))
    for what, spent in times.items():
        goals = ({"target": "< 1"}, {"target": "< 50"}) if "one" in what else ({}, {"target": "< 50"})
        yield {"what": f"{what}, mean", "value": 1e3 * float(np.mean(spent)), "unit": "ms", **goals[0]}
        yield {"what": f"{what}, longest", "value": 1e3 * max(spent), "unit": "ms", **goals[1]}


def _peers(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """What the papers did, a loop over pairs; and sentence embeddings of whole texts with FAISS."""
    events = data.events[: 20 if quick else 100]
    profiles = [one.body for one in data.subscriptions][: 10 if quick else 94]
    measure: Measure = Esa(space)
    spent = _seconds(lambda: [_loop(measure, profile, event) for event in events for profile in profiles])
    what = f"peer: a loop over pairs of terms, {len(profiles)} subscriptions"
    yield {"what": what, "value": len(events) / spent, "unit": "events/s"}
    yield _faiss(data)


def _loop(measure: Measure, profile: Profile, event: Event) -> float:
    """One cosine after the other, each worked out when it is needed."""
    product = 1.0
    for predicate in profile.predicates:
        product *= max(
            float(measure.matrix([predicate.attribute], [name])[0, 0])
            * float(measure.matrix([str(predicate.value)], [str(value)])[0, 0])
            for name, value in event.tuples
        )
    return product


def _faiss(data: ThematicDataset) -> Row:
    what = "peer: MiniLM of whole texts, FAISS inner product over all pairs, texts already embedded"
    try:
        import faiss

        from likewise.semantics import Embedding

        embed = Embedding().vectors
        mine = [" ".join(f"{p.attribute} {p.value}" for p in one.body.predicates) for one in data.subscriptions]
        theirs = [" ".join(f"{a} {v}" for a, v in event.tuples) for event in data.events[:1000]]
        left, right = (np.ascontiguousarray(embed(texts), dtype=np.float32) for texts in (mine, theirs))
        index = faiss.IndexFlatIP(left.shape[1])
        index.add(left)
        spent = _seconds(lambda: index.search(right, len(mine)))
    except (ImportError, LikewiseError, AttributeError, TypeError) as error:
        return {"what": what, "value": None, "unit": "events/s", "note": f"skipped: {error}"}
    return {"what": what, "value": len(theirs) / spent, "unit": "events/s"}


def _filled(matcher: Matcher, profiles: Sequence[Profile]) -> Matcher:
    for profile in profiles:
        matcher.add(profile)
    return matcher


def _resident() -> float:
    """Bytes of memory that the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _seconds(work: Callable[[], object]) -> float:
    """The time of this thread, so that other work on the machine does not count."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


if __name__ == "__main__":
    for row in run(quick="--quick" in sys.argv):
        print(row)
