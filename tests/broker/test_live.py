"""One event in a running broker: published, stored, matched, delivered."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from likewise.broker import BrokerClient, RemoteError

PARKING = "parking: {type = parking, slots > 0}"


def event(**attributes: Any) -> dict[str, Any]:
    return {"attributes": attributes}


def collect(client: BrokerClient, count: int, *names: str, after: str | None = None) -> list[Any]:
    found = []
    for arrival in client.stream(*names, after=after, timeout=100):
        found.append(arrival)
        if len(found) == count:
            break
    return found


def test_a_published_event_reaches_the_subscriber(served, client):
    client.subscribe(PARKING)
    found: list[Any] = []
    listener = threading.Thread(target=lambda: found.extend(collect(served.client(), 1, "parking", after="0")))
    listener.start()
    receipt = client.publish([event(type="parking", slots=3), event(type="parking", slots=0)])
    listener.join(timeout=100)
    assert receipt["accepted"] == 2
    assert [(arrival.subscription, arrival.score, arrival.event["attributes"]) for arrival in found] == [
        ("parking", 1.0, {"type": "parking", "slots": 3})
    ]


def test_words_that_mean_the_same_match_with_a_score_below_one(served, client):
    client.subscribe("usage: {type~ = energy consumption~}")
    client.publish([event(type="electricity usage")])
    [found] = collect(client, 1, after="0")
    assert 0 < found.score < 1


def test_a_stream_resumes_after_the_last_id(served, client):
    client.subscribe(PARKING)
    client.publish([event(type="parking", slots=number) for number in range(1, 6)])
    first = collect(client, 2, after="0")
    rest = collect(client, 3, after=first[-1].id)
    assert [arrival.event["attributes"]["slots"] for arrival in (*first, *rest)] == [1, 2, 3, 4, 5]


def test_a_subscription_that_cannot_be_read_is_a_problem_with_a_caret(client):
    with pytest.raises(RemoteError) as refused:
        client.subscribe("parking: {type~ = }")
    problem = refused.value.problem
    assert (problem["status"], problem["line"], problem["column"]) == (400, 1, 19)
    assert problem["caret"] == " " * 18 + "^"
    assert "expected" in str(refused.value)


def test_a_taken_name_is_a_conflict(client):
    client.subscribe(PARKING)
    with pytest.raises(RemoteError, match="already a subscription 'parking'"):
        client.subscribe(PARKING)


def test_one_bad_event_of_a_batch_does_not_lose_the_others(client):
    receipt = client.publish([event(type="parking"), {"attributes": {}}, b"{", event(type="garage")])
    assert receipt["accepted"] == 2
    assert [flaw["index"] for flaw in receipt["rejected"]] == [1, 2]
    assert "no attributes" in receipt["rejected"][0]["reason"]


def test_without_a_token_nothing_is_given_away(served):
    with httpx.Client(base_url=served.url) as stranger:
        for path in ("/v1/subscriptions", "/v1/info", "/metrics", "/v1/stream"):
            answer = stranger.get(path)
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"
            assert "WWW-Authenticate" in answer.headers
        assert stranger.post("/v1/events", json=event(type="parking")).status_code == 401
        assert stranger.get("/health/ready").status_code == 200
    assert served.broker.log.position == 0


def test_the_same_key_stores_once(served, client):
    first = client.publish([event(type="parking")], key="one")
    again = client.publish([event(type="parking")], key="one")
    assert first == again
    assert served.broker.log.position == 1
    with pytest.raises(RemoteError, match="another body"):
        client.publish([event(type="garage")], key="one")


def test_a_restart_continues_where_it_was(settings):
    from .conftest import running

    with running(settings) as first:
        client = first.client()
        client.subscribe(PARKING + "\nboth: {type = open} then {type = close} within 1 hour")
        client.publish([{"time": 0, **event(type="parking", slots=1)}, {"time": 1, **event(type="open")}])
    with running(settings) as second:
        two = second.client()
        two.publish([{"time": 2, **event(type="parking", slots=2)}, {"time": 3, **event(type="close")}])
        found = collect(two, 3, after="0")
    assert [(arrival.subscription, len(arrival.events)) for arrival in found] == [
        ("parking", 1),
        ("parking", 1),
        ("both", 2),
    ]
