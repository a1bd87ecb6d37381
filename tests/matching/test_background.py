"""A sample of the stream: how common answers are, what that does to scores, and how an engine collects one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from tests.encoders import HashedEncoder

from likewise.calibration import NEAREST
from likewise.engine import Engine
from likewise.errors import BuildError, MissingError
from likewise.events import Event
from likewise.language import parse
from likewise.matching import LEARNED_AT, Background, Commonness, Matcher, joint
from likewise.matching.background import KnownStream, least_product, watched_entry
from likewise.semantics import Evidence, WordNet

WISHES = """\
noise: {type~ = car~, country~ = Spain~}
lift: {device~ = lift~, room = hall}
vehicle: {device~ = car~}
"""


@pytest.fixture(scope="module")
def plain() -> Evidence:
    """Evidence of WordNet and the glossary alone."""
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    return Evidence(encoder=False)


def stream(count: int) -> list[Event]:
    """Events that nearly all come from one country, in two words."""
    kinds, devices = ("automobile", "alarm", "auto", "rain", "machine"), ("elevator", "car", "auto", "lamp")
    return [
        Event.of(
            {
                "type": kinds[n % 5],
                "country": ("Spain", "Kingdom of Spain", "Ireland")[n % 3 if n % 10 == 0 else n % 2],
                "device": devices[n % 4],
                "room": "hall",
                "number": n,
            },
            id=f"e{n}",
            time=n,
        )
        for n in range(count)
    ]


def told(matcher: Matcher, events: list[Event]) -> list[list[tuple[object, float]]]:
    return [[(match.subscription, round(match.score, 5)) for match in found] for found in matcher.match_batch(events)]


def filled(plain: Evidence, background: Background | None, **options: object) -> Matcher:
    matcher = Matcher(plain, background=background, **options)  # type: ignore[arg-type]
    for subscription in parse(WISHES):
        matcher.add(subscription.body, key=subscription.name)  # type: ignore[arg-type]
    return matcher


def test_no_score_reaches_a_limit_whose_product_is_below_the_bound() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        size = int(rng.integers(1, 6))
        known = rng.random() < 0.5
        commonness = Commonness.seen(rng.random(size).tolist(), [True] * size) if known else Commonness.unknown(
            [True] * size)  # fmt: skip
        entries, limit = rng.random((size, 200)) ** rng.choice([0.1, 0.5, 2.0]), float(rng.random())
        reached = joint(entries, commonness) >= limit
        assert (entries.prod(axis=0)[reached] >= least_product(limit, commonness) * (1 - 1e-9)).all()


def test_a_common_answer_says_less_of_the_others_than_a_rare_one() -> None:
    entries = np.array([1.0, 0.4])
    common, rare = (float(joint(entries, Commonness.seen([share, 0.1], [True, True]))) for share in (0.9, 0.05))
    assert common < 0.4 < rare


@pytest.mark.parametrize("base_rate", [0.02, 0.1, 0.5, 0.9])
def test_the_prior_follows_the_base_rate(base_rate: float) -> None:
    """The more events answer two predicates, the likelier are both answered; a lone one keeps its probability."""
    found = Commonness.seen([base_rate] * 2, [True] * 2)
    wider = Commonness.seen([min(1.0, base_rate + 0.05)] * 2, [True] * 2)
    assert found.base_rate <= wider.base_rate
    assert float(joint(np.array([0.6]), Commonness.seen([base_rate], [True]))) == pytest.approx(0.6)


def test_the_kernel_the_explanation_and_single_events_agree(plain: Evidence) -> None:
    events = stream(40)
    matcher = filled(plain, Background.of(events), threshold=0.05)
    scores = told(matcher, events)
    assert any(scores)
    assert [row for event in events for row in told(matcher, [event])] == scores
    for event, row in zip(events[:5], scores, strict=False):
        for name, score in row:
            explanation = matcher.explain(["noise", "lift", "vehicle"].index(str(name)), event)
            assert explanation.score == pytest.approx(score, abs=1e-5)
            assert "prior" in explanation.text(full=True)


def test_values_of_the_stream_that_are_nearer_count_alike_in_kernel_and_explanation() -> None:
    events = stream(70)
    measure = Evidence(encoder=HashedEncoder(), wordnet=False)
    background = Background.of(events)
    matcher = filled(measure, background, threshold=0.0)
    around = measure.surrounded_by(KnownStream(background.events).values())
    assert around is not None
    [ranks] = around.prepare(["car"]).bits(["machine"])
    assert ranks[0] < NEAREST, "with these vectors others are nearer"
    scores = told(matcher, events)
    assert [row for event in events[:9] for row in told(matcher, [event])] == scores[:9]
    said = []
    for event, row in zip(events[:9], scores, strict=False):
        for name, score in row:
            explanation = matcher.explain(["noise", "lift", "vehicle"].index(str(name)), event)
            assert explanation.score == pytest.approx(score, abs=1e-5)
            said.append(explanation.text(full=True))
    assert any("of the stream" in text for text in said)


def test_a_sample_changes_scores_and_its_version_tells_which(plain: Evidence) -> None:
    events = stream(40)
    background = Background.of(events)
    assert told(filled(plain, background), events) != told(filled(plain, None), events)
    again = pickle.loads(pickle.dumps(background))
    assert again.version == background.version == Background.of(events).version != Background.of(events[1:]).version
    assert told(filled(plain, again), events) == told(filled(plain, background), events)


@pytest.mark.parametrize("measure", ["plain", "embedding"])
def test_an_index_knows_the_stream_too(plain: Evidence, measure: str) -> None:
    chosen = plain if measure == "plain" else Evidence(encoder=HashedEncoder(), wordnet=False)
    events = stream(70)
    background = Background.of(events)
    indexed, scored = (filled(chosen, background, dense=dense, threshold=0.1) for dense in (0, 10_000))
    assert indexed.is_indexed
    assert not scored.is_indexed
    found = told(scored, events)
    assert any(found)
    assert told(indexed, events) == found
    late = filled(chosen, None, dense=0, threshold=0.1)
    assert told(late, events) != found
    late.learn(background)
    assert told(late, events) == found
    [first] = [row for row in found if row][:1]
    name, score = first[0]
    handle = ["noise", "lift", "vehicle"].index(str(name))
    assert late.explain(handle, events[found.index(first)]).score == pytest.approx(score, abs=1e-5)
    late.learn(None)
    assert told(late, events) == told(filled(chosen, None, threshold=0.1), events)


def test_what_one_of_the_watched_predicates_must_reach_holds_for_any_stream() -> None:
    """If all watched predicates are below the bound, no stream lets the others make up for it."""
    rng = np.random.default_rng(2)
    for _ in range(500):
        count = int(rng.integers(2, 8))
        watched, limit = int(rng.integers(1, count + 1)), float(rng.choice([0.2, 0.5, 0.8]))
        for known in (False, True):
            shares = rng.random(count) ** rng.choice([0.1, 1.0, 10.0])
            every = [True] * count
            commonness = Commonness.seen(shares.tolist(), every) if known else Commonness.unknown(every)
            entries = np.ones(count)
            entries[:watched] = watched_entry(limit, watched, count, known=known) * 0.999
            assert float(joint(entries, commonness)) < limit


@pytest.mark.parametrize("size", [1, 7, 300])
def test_an_engine_learns_its_stream_however_it_is_cut(plain: Evidence, size: int) -> None:
    events = stream(300)
    whole, parts = (Engine(measure=plain, background="stream") for _ in range(2))
    for engine in (whole, parts):
        engine.subscribe(WISHES)
    want = [(found.subscription, found.event.id, found.score) for found in whole.publish_batch(events)]
    got = [
        (found.subscription, found.event.id, found.score)
        for start in range(0, 300, size)
        for found in parts.publish_batch(events[start : start + size])
    ]
    assert got == want
    fixed = Engine(measure=plain, background=Background.of(events))
    fixed.subscribe(WISHES)
    last = [(found.subscription, found.event.id) for found in fixed.publish_batch(events[256:])]
    assert last == [(name, event) for name, event, _ in want if int(event[1:]) >= 256]


def test_a_snapshot_keeps_what_was_learned(plain: Evidence) -> None:
    events = stream(120)
    whole, half = (Engine(measure=plain, background="stream") for _ in range(2))
    for engine in (whole, half):
        engine.subscribe(WISHES)
    whole.publish_batch(events[:100])
    half.publish_batch(events[:100])
    again = Engine.restore(half.snapshot(), measure=plain, background="stream")
    want, got = ([(f.subscription, f.score) for f in engine.publish_batch(events[100:])] for engine in (whole, again))
    assert got == want


def test_only_an_engine_collects_by_itself(plain: Evidence) -> None:
    with pytest.raises(BuildError, match="not a background"):
        Matcher(plain, background="stream")  # type: ignore[arg-type]


def found(engine: Engine, events: list[Event]) -> list[tuple[str, str, float]]:
    return [(told.subscription, told.event.id, told.score) for told in engine.publish_batch(events)]


def rounded(told: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
    """Without the last digit: an index sums up in another order how many events answer a predicate."""
    return [(name, event, round(score, 5)) for name, event, score in told]


def test_an_engine_learns_unless_it_is_switched_off(plain: Evidence) -> None:
    events = stream(300)
    engines = {name: Engine(measure=plain, **given) for name, given in (  # type: ignore[arg-type]
        ("default", {}), ("stream", {"background": "stream"}), ("none", {"background": None}))}  # fmt: skip
    for engine in engines.values():
        engine.subscribe(WISHES)
    scores = {name: found(engine, events) for name, engine in engines.items()}
    assert scores["default"] == scores["stream"] != scores["none"]
    few = LEARNED_AT[0]
    early = {name: [each for each in told if int(each[1][1:]) < few] for name, told in scores.items()}
    assert early["default"] == early["none"] != []
    assert Engine(approach="exact").matcher.settings(parse(WISHES)[0].body).approach.base == "exact"  # type: ignore[arg-type]


def test_what_is_foreseen_counts_from_the_first_event_on(plain: Evidence) -> None:
    events = stream(100)
    fixed, foreseen = Engine(measure=plain, background=Background.of(events)), Engine(measure=plain)
    for engine in (fixed, foreseen):
        engine.subscribe(WISHES)
    foreseen.learn_background(events)
    again = Engine.restore(foreseen.snapshot(), measure=plain)
    assert found(fixed, events) == found(foreseen, events) == found(again, events)


def test_a_snapshot_without_a_background_stays_without(plain: Evidence) -> None:
    events = stream(300)
    plainly = Engine(measure=plain, background=None)
    plainly.subscribe(WISHES)
    again = Engine.restore(plainly.snapshot(), measure=plain)
    assert found(again, events) == found(plainly, events)


def test_many_subscriptions_change_no_score(plain: Evidence) -> None:
    """The same background counts before the index, while profiles move to it, and afterwards."""
    events = stream(300)
    some = [f"chamber{n}: {{chamber~ = number {n}~, lamp~ = yard {n}~}}" for n in range(12)]
    engines = [Engine(measure=plain, dense=dense) for dense in (8, 10_000)]
    for engine in engines:
        engine.subscribe(WISHES)
    for begin in range(0, 300, 25):
        few, many = (rounded(found(engine, events[begin : begin + 25])) for engine in engines)
        assert few == many
        for engine in engines:
            engine.subscribe(some[begin // 25])
    assert [engine.matcher.is_indexed for engine in engines] == [True, False]
    without = Engine(measure=plain, dense=8, background=None)
    without.subscribe(WISHES + "\n".join(some))
    few, many, plainly = (rounded(found(engine, events)) for engine in (*engines, without))
    assert few == many != plainly
