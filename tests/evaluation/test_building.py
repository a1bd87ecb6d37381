"""The simulated building: known truth for three vocabularies."""

from __future__ import annotations

from likewise.evaluation.datasets.building import SECOND, SUBSCRIPTIONS, relevant, simulate
from likewise.language import Profile, parse


def test_the_same_seed_gives_the_same_day() -> None:
    assert simulate(200, seed=3) == simulate(200, seed=3)
    assert simulate(200, seed=3) != simulate(200, seed=4)


def test_events_are_counted_unique_and_in_order() -> None:
    day = simulate(300)
    assert len({happening.event.id for happening in day}) == len(day) == 300
    times = [happening.event.span for happening in day]
    assert times == sorted(times)


def test_every_break_in_is_a_window_and_then_presence_in_its_room() -> None:
    day = simulate(400, break_ins=6)
    windows = [happening for happening in day if happening.kind == "window"]
    assert len(windows) == 6
    for window in windows:
        (at, _), room = window.event.span, window.room
        assert any(
            happening.kind == "presence" and happening.room == room and 0 < happening.event.span[0] - at <= 600 * SECOND
            for happening in day
        )


def test_truth_is_known_for_every_subscription_to_single_events() -> None:
    day = simulate(2000)
    for subscription in parse(SUBSCRIPTIONS):
        if isinstance(subscription.body, Profile):
            asked = relevant(subscription.name, day)
            assert 0 < len(asked) < len(day)
