"""The intake takes events in the order of time, and says why it refuses one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from worlds import event

from likewise.composite.intake import Intake, Refused
from likewise.events import Event

_TIMES = st.one_of(st.none(), st.integers(0, 40))


def _intake(refused: list[Refused]) -> Intake:
    return Intake(lateness=3, max_jump=20, refuse=refused.append)


@given(st.lists(st.tuples(_TIMES, _TIMES), max_size=12), st.integers(-1, 10))
def test_a_batch_is_taken_as_its_events_would_be(times: list[tuple[int | None, int | None]], clock: int) -> None:
    events = [Event(str(k), (), (), start, end) for k, (start, end) in enumerate(times)]
    alone: list[Refused] = []
    together: list[Refused] = []
    single, batch = _intake(alone), _intake(together)
    taken = [event for event in events if single.accept(event, clock) is not None]
    assert list(batch.accept_all(events, clock)[0]) == taken
    assert (together, batch.seen, batch.late) == (alone, single.seen, single.late)


def test_who_waits_comes_in_the_order_of_time_then_start_then_id() -> None:
    intake = _intake([])
    for arriving in (event("B", 5), event("A", 5), event("C", 5, start=2), event("A", 4)):
        intake.hold(arriving)
    assert intake.due == 4
    assert [arrived[0].id for arrived in intake.waiting] == ["A4", "C5", "A5", "B5"]
    assert [arrived[0].id for arrived in intake.ready(4)] == ["A4"]
    assert [arrived[0].id for arrived in intake.ready(5)] == ["C5", "A5", "B5"]
    assert intake.due is None


def test_an_event_without_an_end_ends_where_it_starts() -> None:
    intake = _intake([])
    assert intake.accept(Event("x", (), (), 7, None), 0) == 7
