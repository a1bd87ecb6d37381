"""What users get for their own tests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from likewise.engine import Notification
from likewise.events import Event
from likewise.testing import InMemoryBroker, ManualClock, tiny_space


def test_the_tiny_space_knows_what_buildings_measure(tmp_path: Path) -> None:
    heard: list[Notification] = []
    broker = InMemoryBroker(spaces=[tiny_space(tmp_path)])
    broker.subscribe("usage: {type~ = energy consumption~, device = laptop}", heard.append)
    assert broker.publish({"type": "energy usage", "device": "laptop"}, {"type": "temperature"}) == 1
    assert heard[0].event.attributes["device"] == ["laptop"]


def test_each_subscriber_hears_its_own_until_it_leaves() -> None:
    ours: list[str] = []
    theirs: list[str] = []
    broker = InMemoryBroker()
    broker.subscribe("hot: {temperature > 30}", lambda told: ours.append(told.event.id))
    broker.subscribe("cold: {temperature < 10}", lambda told: theirs.append(told.event.id))
    broker.publish(Event.of({"temperature": 35}, id="a"), Event.of({"temperature": 5}, id="b"))
    broker.unsubscribe("hot")
    assert broker.publish(Event.of({"temperature": 36}, id="c")) == 0
    assert (ours, theirs) == (["a"], ["b"])


def test_silence_is_heard_when_time_goes_on() -> None:
    clock = ManualClock()
    heard: list[Notification] = []
    broker = InMemoryBroker(clock=clock)
    broker.subscribe("silence: not {type = heartbeat} for 30 minutes", heard.append)
    broker.publish({"type": "heartbeat"})
    assert broker.advance(clock.advance(timedelta(minutes=29))) == 0
    assert broker.advance(clock.advance(timedelta(minutes=2))) == 1
    assert heard[0].subscription == "silence"
