"""History, explanations, consumers, formats, tokens and webhooks of a running broker."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect as websocket

from likewise.broker import BrokerSettings, HookPolicy, Quotas, RemoteError
from likewise.broker.operate import tracing

from .conftest import Running, running

PARKING = "parking: {type = parking, slots > 0}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, space: str) -> Iterator[Running]:
    """One broker for all tests of this module; each test has its own namespace."""
    settings = BrokerSettings(
        folder=tmp_path_factory.mktemp("shared"),
        spaces=(space,),
        live_clock=False,
        page=False,
        private_webhooks=True,
        webhooks=HookPolicy(attempts=3, first_pause=0.02, timeout=1.0, pause_after=2, pause=0.5, poll=0.05),
        quotas=Quotas(body_bytes=20_000, subscriptions=5),
    )
    with running(settings) as found:
        yield found


@pytest.fixture
def client(shared: Running, request: pytest.FixtureRequest) -> Any:
    name = "t" + hashlib.blake2b(request.node.name.encode(), digest_size=6).hexdigest()
    return shared.client(namespace=name)


def event(**attributes: Any) -> dict[str, Any]:
    return {"attributes": attributes}


def test_history_has_pages_and_filters(shared, client):
    client.subscribe(PARKING)
    client.publish([{"id": f"e{n}", **event(type="parking", slots=n)} for n in range(5)])
    shared.settle()
    first = client.list_events(limit=3)
    rest = client.list_events(after=first["next"], limit=3)
    assert [event["id"] for event in (*first["events"], *rest["events"])] == ["e0", "e1", "e2", "e3", "e4"]
    assert rest["next"] is None
    found = client.list_notifications(subscription=["parking"], newest=True, limit=2)
    assert [notification["events"][0]["id"] for notification in found["notifications"]] == ["e4", "e3"]
    older = client.list_notifications(newest=True, before=found["next"])
    assert [notification["events"][0]["id"] for notification in older["notifications"]] == ["e2", "e1"]
    assert client.list_notifications(kind="detection")["notifications"] == []


def test_every_match_and_every_miss_has_its_reason(shared, client):
    client.subscribe("usage: {type~ = energy consumption~, floor = 2}")
    client.publish([{"id": "in", **event(type="electricity usage", floor=2)}, {"id": "out", **event(type="window")}])
    shared.settle()
    [found] = client.list_notifications()["notifications"]
    reason = client.explain(found["id"])
    assert reason["matched"]
    assert [step["predicate"] for step in reason["steps"]] == ["type~ = energy consumption~", "floor = 2"]
    missed = client.why("out", "usage")
    assert not missed["matched"]
    assert missed["why_not"] == "floor = 2 is not answered"
    near = client.near_misses("usage")
    assert (near["events"], near["found"]) == (2, 1)


def test_a_detection_is_explained_role_by_role(shared, client):
    client.subscribe("both: {type = open} as o then {type = close} as c within 1 hour")
    client.publish([{"id": "a", "time": 0, **event(type="open")}, {"id": "b", "time": 5, **event(type="close")}])
    shared.settle()
    [found] = client.list_notifications()["notifications"]
    assert found["roles"] == {"o": ["a"], "c": ["b"]}
    assert [step["role"] for step in client.explain(found["id"])["steps"]] == ["o", "c"]


def test_a_trial_shows_what_would_have_been_found_and_stores_nothing(shared, client):
    client.publish([{"id": f"e{n}", **event(type="parking", slots=n)} for n in range(4)])
    found = client.trial("{type = parking, slots > 1}")
    assert (found["events"], found["found"]) == (4, 2)
    assert "matches" in found["hits"][0]["explanation"]
    pattern = client.trial("{slots = 1} then {slots = 3} within 1 hour")
    assert [[event["id"] for event in hit["events"]] for hit in pattern["hits"]] == [["e1", "e3"]]
    assert client.list_subscriptions()["subscriptions"] == []


def test_a_consumer_pulls_until_it_acknowledges(shared, client):
    client.subscribe(PARKING)
    assert client.pull("worker")["notifications"] == []
    client.publish([event(type="parking", slots=n) for n in (1, 2, 3)])
    shared.settle()
    first = client.pull("worker", limit=2, wait=10)
    again = client.pull("worker", limit=2, wait=10)
    assert first == again
    assert [notification["events"][0]["attributes"]["slots"] for notification in first["notifications"]] == [1, 2]
    client.acknowledge("worker", first["cursor"])
    [last] = client.pull("worker", wait=10)["notifications"]
    assert last["events"][0]["attributes"]["slots"] == 3
    assert client.acknowledge("worker", "0")["cursor"] == first["cursor"]


def test_a_paused_subscription_is_silent(shared, client):
    client.subscribe(PARKING)
    client.change_subscription("parking", paused=True)
    client.publish([event(type="parking", slots=1)])
    client.change_subscription("parking", paused=False, tags=["city"])
    client.publish([event(type="parking", slots=2)])
    shared.settle()
    found = client.list_notifications()["notifications"]
    assert [notification["events"][0]["attributes"]["slots"] for notification in found] == [2]
    assert [subscription["name"] for subscription in client.list_subscriptions(tag="city")["subscriptions"]] == [
        "parking"
    ]


def test_a_refused_replacement_leaves_the_old_one(shared, client):
    client.subscribe(PARKING)
    with pytest.raises(RemoteError):
        client.replace_subscription("parking", "{type = parking} threshold 7")
    client.replace_subscription("parking", "{type = garage}")
    client.publish([event(type="garage"), event(type="parking", slots=2)])
    shared.settle()
    assert len(client.list_notifications()["notifications"]) == 1


def test_flat_records_become_events_by_a_saved_mapping(shared, client):
    client.save_mapping("sensor", {"id": ["nr", "no"], "time": ["ts", "at"], "attributes": {"t": "temperature"}})
    client.publish([b'{"no": 7, "at": "2026-01-01T10:00:00Z", "t": 21.5, "x": 1}'], mapping="sensor")
    [found] = client.list_events()["events"]
    assert (found["id"], found["time"], found["attributes"]) == ("7", "2026-01-01T10:00:00Z", {"temperature": 21.5})


def headers_of(shared: Running, client: Any) -> dict[str, str]:
    return {name: client._http.headers[name] for name in ("authorization", "likewise-namespace")}


def test_cloudevents_in_all_three_modes(shared, client):
    from cloudevents.core.bindings.http import to_binary_event, to_structured_event
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    def cloud(number: int) -> CloudEvent:
        attributes = {"id": f"c{number}", "source": "/car", "type": "parked", "specversion": "1.0"}
        return CloudEvent(attributes | {"datacontenttype": "application/json"}, {"slot": number})

    messages = [to_binary_event(cloud(1)), to_structured_event(cloud(2))]
    for message in messages:
        headers = headers_of(shared, client) | dict(message.headers)
        answer = httpx.post(f"{shared.url}/v1/events", headers=headers, content=message.body)
        assert answer.json()["accepted"] == 1, answer.text
    batch = b"[" + b",".join(JSONFormat().write(cloud(number)) for number in (3, 4)) + b"]"
    headers = headers_of(shared, client) | {"content-type": "application/cloudevents-batch+json"}
    assert httpx.post(f"{shared.url}/v1/events", headers=headers, content=batch).json()["accepted"] == 2
    found = client.list_events()["events"]
    assert [(event["id"], event["attributes"]["slot"]) for event in found] == [(f"c{n}", n) for n in (1, 2, 3, 4)]


def test_lines_of_any_length_are_taken_as_a_stream(shared, client):
    lines = b"".join(json.dumps(event(number=n, text="x" * 50)).encode() + b"\n" for n in range(20_000))
    headers = headers_of(shared, client) | {"content-type": "application/x-ndjson"}
    answer = httpx.post(f"{shared.url}/v1/events", headers=headers, content=lines, timeout=60).json()
    assert answer["accepted"] == 20_000
    assert answer["last"] > answer["first"]
    too_large = httpx.post(
        f"{shared.url}/v1/events", headers=headers | {"content-type": "application/json"}, content=b"[" + lines
    )
    assert too_large.status_code == 413
    assert too_large.json()["type"] == "urn:likewise:problem:too-large"


def test_a_websocket_delivers_too(shared, client):
    client.subscribe(PARKING)
    headers = headers_of(shared, client)
    address = shared.url.replace("http", "ws") + "/v1/ws?after=0"
    with websocket(address, additional_headers=headers) as socket:
        client.publish([event(type="parking", slots=1)])
        assert json.loads(socket.recv(timeout=30))["subscription"] == "parking"


def test_limits_are_refused_and_nothing_is_stored(shared, client):
    text = "\n".join(f"s{n}: {{a = {n}}}" for n in range(6))
    with pytest.raises(RemoteError, match="at most 5 subscriptions") as refused:
        client.subscribe(text)
    assert refused.value.status == 429
    assert client.list_subscriptions()["subscriptions"] == []


# tokens and namespaces


def test_namespaces_do_not_see_each_other(shared):
    admin = shared.client()
    north = shared.client(admin.create_token("n", ["publish", "subscribe"], namespace="north")["token"])
    south = shared.client(admin.create_token("s", ["subscribe"], namespace="south")["token"])
    north.subscribe(PARKING)
    north.publish([{"id": "secret", **event(type="parking", slots=1)}])
    shared.settle()
    assert south.list_events()["events"] == south.list_notifications()["notifications"] == []
    [notice] = north.list_notifications()["notifications"]
    for call in (
        lambda: south.get_event("secret"),
        lambda: south.get_notification(notice["id"]),
        lambda: south.explain(notice["id"]),
        lambda: south.get_subscription("parking"),
    ):
        with pytest.raises(RemoteError) as refused:
            call()
        assert refused.value.status == 404
    with pytest.raises(RemoteError, match="role 'publish'"):
        south.publish([event(a=1)])
    with pytest.raises(RemoteError, match="another namespace"):
        shared.client(south._http.headers["authorization"].split()[1], namespace="north").list_events()
    with pytest.raises(RemoteError, match="role 'admin'"):
        south.create_token("x", ["admin"])


def test_tokens_are_rotated_revoked_and_hashed(shared):
    admin = shared.client(namespace="keys")
    made = admin.create_token("device", ["publish"])
    old = shared.client(made["token"])
    fresh = shared.client(admin.rotate_token(made["id"], grace=60)["token"])
    old.publish([event(a=1)])
    fresh.publish([event(a=2)])
    admin.rotate_token(made["id"], grace=0)
    with pytest.raises(RemoteError, match="not valid"):
        old.publish([event(a=3)])
    admin.revoke_token(made["id"])
    with pytest.raises(RemoteError):
        fresh.publish([event(a=4)])
    acts = [entry["action"] for entry in admin.list_audit()["entries"]]
    assert acts == ["revoke token", "rotate token", "rotate token", "create token"]
    secret = made["token"].split("_", 2)[2].encode()
    assert all(secret not in path.read_bytes() for path in shared.broker.settings.folder.glob("broker.sqlite3*"))


def test_an_open_broker_refuses_other_sites(settings):
    with running(replace(settings, open=True)) as found, httpx.Client(base_url=found.url) as browser:
        assert browser.get("/v1/info").status_code == 200
        assert browser.get("/v1/info", headers={"origin": "https://evil.example"}).status_code == 403
        assert browser.get("/v1/info", headers={"host": "evil.example"}).status_code == 403


# webhooks


class Receiver(ThreadingHTTPServer):
    """A webhook receiver that records requests and answers with the given statuses."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.hang = 0.0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                time.sleep(receiver.hang)
                status = receiver.answers.pop(0) if receiver.answers else 204
                if status < 300:
                    receiver.got.append((dict(self.headers.items()), body))
                self.send_response(status)
                if status == 302:
                    self.send_header("location", f"http://127.0.0.1:{receiver.server_port}/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def wait(self, count: int) -> list[Any]:
        deadline = time.monotonic() + 60
        while len(self.got) < count:
            assert time.monotonic() < deadline, f"{len(self.got)} of {count} came"
            time.sleep(0.02)
        return [json.loads(body)["data"]["events"][0]["attributes"]["slots"] for _, body in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.shutdown()
    made.server_close()


def test_a_webhook_is_signed_in_order_and_retried(shared, client, receiver):
    receiver.answers = [503, 500]
    [made] = client.subscribe(PARKING, webhook=receiver.url)["subscriptions"]
    client.publish([event(type="parking", slots=n) for n in (1, 2, 3)])
    assert receiver.wait(3) == [1, 2, 3]
    headers, body = receiver.got[0]
    signed = f"{headers['Webhook-Id']}.{headers['Webhook-Timestamp']}.".encode() + body
    key = base64.b64decode(made["secret"].removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    assert headers["Webhook-Signature"] == f"v1,{expected}"


def test_publishing_matching_and_delivering_are_spans(shared, client, receiver, monkeypatch):
    """A recorder takes the place of the SDK's tracer."""
    seen: list[tuple[str, Any]] = []

    class Recorder:
        @contextlib.contextmanager
        def start_as_current_span(self, name: str, attributes: Any) -> Iterator[None]:
            yield
            seen.append((name, attributes))

    monkeypatch.setattr(tracing, "tracer", Recorder())
    client.subscribe(PARKING, webhook=receiver.url)
    client.publish([event(type="parking", slots=1)])
    receiver.wait(1)
    deadline = time.monotonic() + 60
    while {name for name, _ in seen} < {"publish", "match", "deliver"} and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [attributes["likewise.events"] for name, attributes in seen if name == "publish"] == [1]
    assert {name for name, _ in seen} == {"publish", "match", "deliver"}


def test_a_sink_of_the_cloudevents_api_gets_what_its_filter_finds(shared, client, receiver):
    made = client.subscribe_sink("{type~ = parking~}", receiver.url)
    assert made["secret"]
    client.publish([event(type="car park", slots=5), event(type="weather", slots=6)])
    assert receiver.wait(1) == [5]
    assert receiver.got[0][0]["Content-Type"].startswith("application/cloudevents+json")
    assert [sink["id"] for sink in client.list_sinks()] == [made["id"]]
    changed = client.replace_sink(made["id"], "{type = weather}", receiver.url)
    assert changed == client.get_sink(made["id"])
    assert changed["filters"] == [{"likewise": f"{made['id']}: {{type = weather}}"}]
    body = {"filters": [{"sql": "type = 'x'"}], "sink": receiver.url}
    refused = client._http.post("/v1/cloudevents/subscriptions", json=body)
    assert (refused.status_code, "likewise" in refused.json()["hint"]) == (422, True)
    client.unsubscribe_sink(made["id"])
    assert client.list_sinks() == []


def test_what_a_webhook_refuses_is_a_dead_letter_that_can_be_sent_again(shared, client, receiver):
    receiver.answers = [410]
    client.subscribe(PARKING, webhook=receiver.url)
    client.publish([event(type="parking", slots=n) for n in (1, 2)])
    assert receiver.wait(1) == [2]
    [letter] = client.list_dead_letters()["letters"]
    assert (letter["source"], letter["reason"]) == ("webhook parking", "the receiver answered 410")
    client.retry_dead_letter(letter["id"])
    assert receiver.wait(2) == [2, 1]
    assert client.list_dead_letters()["letters"] == []


def test_a_hanging_webhook_holds_up_nobody_else(shared, client, receiver):
    receiver.hang = 30
    client.subscribe(PARKING, webhook=receiver.url)
    client.publish([event(type="parking", slots=1)])
    found = next(client.stream(after="0", timeout=60))
    assert found.subscription == "parking"


def test_redirects_and_private_addresses_are_not_followed(shared, client, receiver, settings):
    receiver.answers = [302]
    client.subscribe(PARKING, webhook=receiver.url)
    client.publish([event(type="parking", slots=1), event(type="parking", slots=2)])
    assert receiver.wait(1) == [2]
    with running(settings) as strict:
        guarded = strict.client()
        with pytest.raises(RemoteError, match="not a public address"):
            guarded.subscribe(PARKING, webhook=receiver.url)


def test_a_name_that_resolves_to_a_private_address_is_refused(monkeypatch):
    import asyncio

    import httpcore

    from likewise.broker.delivery.webhooks import GuardedBackend

    async def connect() -> None:
        loop = asyncio.get_running_loop()

        async def resolve(*_: Any, **__: Any) -> list[Any]:
            return [(2, 1, 6, "", ("127.0.0.1", 80))]

        monkeypatch.setattr(loop, "getaddrinfo", resolve, raising=False)
        await GuardedBackend(private=False).connect_tcp("rebound.example", 80)

    with pytest.raises(httpcore.ConnectError, match="not a public address"):
        asyncio.run(connect())
