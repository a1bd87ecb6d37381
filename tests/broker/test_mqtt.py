"""MQTT in and out through a real Mosquitto, which is started, stopped and restarted here."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from likewise.broker import MqttSettings
from likewise.broker.delivery.mqtt import TopicTemplate
from likewise.errors import BuildError

from .conftest import running

paho = pytest.importorskip("paho.mqtt.client")
MOSQUITTO = shutil.which("mosquitto") or ("/usr/sbin/mosquitto" if Path("/usr/sbin/mosquitto").exists() else None)


class Mosquitto:
    """A broker on a free port that keeps its sessions in a folder."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._file = folder / "mosquitto.conf"
        self._file.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nautosave_interval 1\nuser root\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("mosquitto did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)
            self._process = None


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed")
    made = Mosquitto(tmp_path)
    made.start()
    yield made
    made.stop()


class Device:
    """A client that publishes and records received messages, also those sent while it was disconnected."""

    _numbers = itertools.count()

    def __init__(self, port: int, topic: str) -> None:
        from paho.mqtt.enums import CallbackAPIVersion

        self.received: list[tuple[str, Any, bool]] = []
        self.subscribed = False
        name = f"device-{next(self._numbers)}"
        self.client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
        self.client.on_message = lambda _, __, message: self.received.append(
            (message.topic, json.loads(message.payload), message.retain)
        )
        self.client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self.client.on_subscribe = self._on_subscribe
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def _on_subscribe(self, *_: Any) -> None:
        self.subscribed = True

    def send(self, topic: str, payload: str, *, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(20)

    def wait(self, count: int) -> list[tuple[str, Any, bool]]:
        deadline = time.monotonic() + 60
        while len(self.received) < count:
            assert time.monotonic() < deadline, self.received
            time.sleep(0.02)
        return self.received

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def test_messages_become_events_and_notifications_become_messages(settings, mosquitto):
    bridge = MqttSettings(
        url=mosquitto.url, topics=("sensors/{room}/{type}",), output="found/{subscription}", retain=True
    )
    with running(replace(settings, mqtt=bridge)) as served:
        client = served.client()
        client.subscribe("warm: {type = temperature, value > 20}")
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        device = Device(mosquitto.port, "found/#")
        device.send("sensors/r1/temperature", "21.5")
        device.send("sensors/r1/temperature", "not a number")
        device.send("sensors/r2/temperature", '{"value": 19}')
        device.send("sensors/r2/temperature", '{"attributes": {"value": 22, "unit": "celsius"}}')
        found = device.wait(2)
        assert [(topic, body["events"][0]["attributes"]) for topic, body, _ in found] == [
            ("found/warm", {"room": "r1", "type": "temperature", "value": 21.5}),
            ("found/warm", {"room": "r2", "type": "temperature", "value": 22, "unit": "celsius"}),
        ]
        device.close()
        later = Device(mosquitto.port, "found/#")
        assert later.wait(1)[0][2], "the last notification is retained"
        later.close()
        assert len(client.list_events()["events"]) == 4


def test_the_same_feed_through_curl_mqtt_and_the_client(settings, mosquitto):
    """Each client publishes, and receives what the others published."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    bridge = MqttSettings(url=mosquitto.url, topics=("cars/{type}",), output="found/{subscription}")
    with running(replace(settings, mqtt=bridge)) as served:
        client = served.client()
        client.subscribe("parked: {type~ = parking~, slots > 0}")
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        device = Device(mosquitto.port, "found/#")
        _until(lambda: device.subscribed)
        curl = ["curl", "-s", "-N", "-H", f"Authorization: Bearer {served.token}"]
        stream = subprocess.Popen([*curl, f"{served.url}/v1/stream?after=0"], stdout=subprocess.PIPE, text=True)
        body = json.dumps({"attributes": {"type": "car park", "slots": 1}})
        subprocess.run(
            [*curl, f"{served.url}/v1/events", "-H", "Content-Type: application/json", "-d", body],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        device.send("cars/car park", '{"slots": 2}')
        client.publish([{"attributes": {"type": "car park", "slots": 3}}])
        by_mqtt = {body["id"]: body for _, body, _ in device.wait(3)}
        by_client = {
            arrival.id: arrival for arrival, _ in zip(client.stream(after="0", timeout=60), range(3), strict=False)
        }
        by_curl: dict[str, Any] = {}
        assert stream.stdout is not None
        while len(by_curl) < 3:
            line = stream.stdout.readline()
            if line.startswith("data: "):
                found = json.loads(line[6:])
                by_curl[found["id"]] = found
        stream.terminate()
        stream.communicate(timeout=30)
        device.close()
    assert by_curl == by_mqtt
    assert {arrival.id: arrival.events for arrival in by_client.values()} == {
        arrival["id"]: arrival["events"] for arrival in by_curl.values()
    }
    assert {body["events"][0]["attributes"]["slots"] for body in by_curl.values()} == {1, 2, 3}


def test_a_restarted_mosquitto_loses_and_repeats_nothing(settings, mosquitto):
    bridge = MqttSettings(url=mosquitto.url, topics=("sensors/{type}",), output="found/{subscription}")
    with running(replace(settings, mqtt=bridge)) as served:
        served.client().subscribe("all: {value >= 0}")
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        device = Device(mosquitto.port, "found/#")
        device.send("sensors/a", "1", retain=True)
        device.wait(1)
        mosquitto.stop()
        _until(lambda: served.broker.checks()["mqtt"] != "ok")
        served.client().publish([{"attributes": {"value": 2}}])
        mosquitto.start()
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        device.wait(2)
        device.send("sensors/a", "3")
        device.wait(3)
        device.close()
        stored = [event["attributes"]["value"] for event in served.client().list_events()["events"]]
        assert served.broker.counts["mqtt_connections_lost"] == 1
    assert stored == [1, 2, 3], "the retained message came again and is not taken again"
    assert [body["events"][0]["attributes"]["value"] for _, body, _ in device.received] == [1, 2, 3]


def test_a_group_shares_its_messages(settings, mosquitto):
    bridge = MqttSettings(url=mosquitto.url, topics=("sensors/{type}",), group="brokers")
    with running(replace(settings, mqtt=bridge)) as served:
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        other = Device(mosquitto.port, "$share/brokers/sensors/+")
        _until(lambda: other.subscribed)
        for number in range(20):
            other.send("sensors/a", str(number))
        _until(lambda: served.broker.counts["mqtt_received"] + len(other.received) == 20)
        served.settle()
        here = {event["attributes"]["value"] for event in served.client().list_events()["events"]}
        other.close()
    assert here
    assert here.isdisjoint(body for _, body, _ in other.received)
    assert here.union(body for _, body, _ in other.received) == set(range(20))


def test_messages_wait_for_a_database_that_is_away(settings, mosquitto):
    bridge = MqttSettings(url=mosquitto.url, topics=("sensors/{type}",))
    with running(replace(settings, mqtt=bridge)) as served:
        _until(lambda: served.broker.checks()["mqtt"] == "ok")
        works = served.broker.log._insert_records

        def fails(*_: Any) -> None:
            raise OSError("the disk is away")

        served.broker.log._insert_records = fails
        device = Device(mosquitto.port, "nothing")
        device.send("sensors/a", "1")
        device.send("sensors/a", "2")
        _until(lambda: "away" in served.broker.checks()["storage"])
        served.broker.log._insert_records = works
        _until(lambda: served.broker.log.position == 2)
        device.close()
        assert served.broker.checks()["storage"] == "ok"
        assert [event["attributes"]["value"] for event in served.client().list_events()["events"]] == [1, 2]


def _until(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("text", ["sensors/x{room}", "#/a", "a/b#"])
def test_templates_that_mean_nothing_are_refused(text):
    with pytest.raises(BuildError):
        TopicTemplate(text)
