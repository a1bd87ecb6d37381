"""MQTT in and out, against a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from tests.pipeline.conftest import free_port, running_mosquitto

from likewise.delivery import Address, MqttPublisher, Spool
from likewise.errors import BuildError, DeliveryError, LikewiseError, MissingError
from likewise.pipeline.events.read import decode_records
from likewise.pipeline.streaming.mqtt_source import Acknowledger, MqttReader, read_mqtt
from likewise.pipeline.streaming.sinks import MqttSink

pytestmark = pytest.mark.spark


@contextmanager
def client_of(broker: str, *, name: str = "") -> Iterator[mqtt.Client]:
    address = Address.parse(broker)
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name)
    client.connect(address.host, address.port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


def publish(broker: str, topic: str, *payloads: bytes) -> None:
    with client_of(broker) as client:
        for payload in payloads:
            client.publish(topic, payload, qos=1).wait_for_publish(timeout=10)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen")


def count_of(reader: MqttReader, start: int = 0) -> int:
    return reader.latestOffset({"count": start})["count"]


def messages(reader: MqttReader, start: int, end: int) -> list[bytes]:
    parts = reader.partitions({"count": start}, {"count": end})
    return [row["payload"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_messages_wait_while_nobody_listens_and_can_be_asked_for_again(mosquitto: str, tmp_path: Path) -> None:
    """The session keeps what is sent between two runs; the spool gives an unfinished batch once more."""
    options = {"broker": mosquitto, "topics": "wait/#", "spool": str(tmp_path), "client": "waiting"}
    reader = MqttReader(options)
    assert count_of(reader) == 0
    wait_until(reader._client.is_connected)
    publish(mosquitto, "wait/a", b"1", b"2")
    wait_until(lambda: count_of(reader) == 2)
    reader.stop()
    publish(mosquitto, "wait/b", b"3")

    again = MqttReader(options)
    wait_until(lambda: count_of(again) == 3)
    assert messages(again, 1, 3) == [b"2", b"3"]
    assert messages(again, 1, 3) == [b"2", b"3"]
    again.stop()


def test_what_is_there_now_is_what_the_broker_has_kept(mosquitto: str, tmp_path: Path) -> None:
    """For `--once`: all that waited, though it comes only after a moment, and nothing that is sent later."""
    options = {"broker": mosquitto, "topics": "now/#", "spool": str(tmp_path), "client": "now"}
    reader = MqttReader(options)
    assert count_of(reader) == 0
    reader.stop()
    publish(mosquitto, "now/a", b"1", b"2", b"3")
    again = MqttReader(options)
    again.prepareForTriggerAvailableNow()
    assert count_of(again) == 3
    publish(mosquitto, "now/a", b"4")
    wait_until(lambda: again._open().durable == 4)
    assert count_of(again) == 3
    assert messages(again, 0, 3) == [b"1", b"2", b"3"]
    again.stop()


def test_nothing_is_acknowledged_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many messages that wait share one wait for the disk, and Spark is told of none before."""
    spool = Spool(tmp_path)
    acknowledged: list[tuple[int, int]] = []
    held = threading.Event()
    sync = Spool.sync

    def slow(self: Spool) -> int:
        held.wait(10)
        return sync(self)

    monkeypatch.setattr(Spool, "sync", slow)
    acknowledger = Acknowledger(spool)
    for number in range(5):
        acknowledger.keep(("t", b"x", number), lambda number=number: acknowledged.append((number, spool.durable)))
    assert (acknowledged, spool.durable) == ([], 0)
    held.set()
    acknowledger.stop()
    assert [number for number, _ in acknowledged] == list(range(5))
    assert all(number < durable for number, durable in acknowledged)
    spool.close()


def test_a_stream_reads_events_from_a_broker(spark: Any, mosquitto: str, tmp_path: Path, checkpoint: str) -> None:
    """Events and poison both arrive, through Spark's own source interface."""
    records = read_mqtt(spark, mosquitto, topics=["city/#"], spool=str(tmp_path / "spool"), client="stream")
    events = decode_records(records)
    query = events.writeStream.format("memory").queryName("from_mqtt").option("checkpointLocation", checkpoint).start()
    try:
        # Subscribed only once the query runs: repeat until the first one is there.
        for _ in range(100):
            if spark.table("from_mqtt").count():
                break
            publish(mosquitto, "city/x", b'{"id": "e1", "attributes": {"a": 1}}', b"poison")
            query.processAllAvailable()
        rows = spark.table("from_mqtt").collect()
    finally:
        query.stop()
    assert "e1" in {row["id"] for row in rows}
    assert {row["flaw"]["source"] for row in rows if row["flaw"]} == {"city/x"}


def test_rows_go_out_to_their_topics_once(spark: Any, mosquitto: str, tmp_path: Path) -> None:
    """A batch that comes again after a crash is not sent again."""
    sink = MqttSink(mosquitto, ledger=str(tmp_path / "ledger"), topic="out/{subscription}")
    rows = spark.createDataFrame([("e1", "parking"), ("e2", "bus")], "event string, subscription string")
    heard: list[tuple[str, bytes]] = []
    with client_of(mosquitto) as client:
        joined: list[int] = []
        client.on_message = lambda _c, _u, message: heard.append((message.topic, message.payload))
        client.on_subscribe = lambda *_: joined.append(1)
        client.subscribe("out/#", qos=1)
        wait_until(lambda: bool(joined))
        sink(rows, 0)
        sink(rows, 0)
        sink(rows.limit(1), 1)
        wait_until(lambda: len(heard) >= 3)
    assert heard == [
        ("out/parking", b'{"key":"0-0","event":"e1","subscription":"parking"}'),
        ("out/bus", b'{"key":"0-1","event":"e2","subscription":"bus"}'),
        ("out/parking", b'{"key":"1-0","event":"e1","subscription":"parking"}'),
    ]


@pytest.mark.parametrize("broker", ["http://x", "mqtt://"])
def test_an_address_must_be_one(broker: str) -> None:
    with pytest.raises(BuildError, match="no address"):
        Address.parse(broker)


def test_a_broker_that_is_not_there_is_named(tmp_path: Path) -> None:
    reader = MqttReader({"broker": "127.0.0.1:1", "topics": "a", "spool": str(tmp_path)})
    with pytest.raises(MissingError, match=r"127\.0\.0\.1:1"):
        count_of(reader)


def test_a_broker_that_restarts_is_joined_again(tmp_path: Path) -> None:
    """What is sent after it came back arrives, though it has forgotten us."""
    port = free_port()
    broker = f"mqtt://127.0.0.1:{port}"
    with running_mosquitto(tmp_path, port):
        reader = MqttReader({"broker": broker, "topics": "again/#", "spool": str(tmp_path / "spool")})
        assert count_of(reader) == 0
        publish(broker, "again/a", b"1")
        wait_until(lambda: count_of(reader) == 1)
    wait_until(lambda: not reader._client.is_connected())
    with running_mosquitto(tmp_path, port):
        for _ in range(300):
            publish(broker, "again/a", b"2")
            if count_of(reader) > 1:
                break
            time.sleep(0.1)
        assert messages(reader, 0, 2) == [b"1", b"2"]
        reader.stop()


def test_who_is_not_let_in_is_told_so(tmp_path: Path) -> None:
    """It would otherwise wait for messages for ever."""
    port = free_port()
    with running_mosquitto(tmp_path, port, anonymous=False):
        reader = MqttReader({"broker": f"127.0.0.1:{port}", "topics": "a", "spool": str(tmp_path / "spool")})
        with pytest.raises(LikewiseError, match="refused: Not authorized"):
            count_of(reader)


def test_messages_out_wait_for_a_broker_that_restarts(tmp_path: Path) -> None:
    """Sent while it is away, they are out when it is back."""
    port = free_port()
    broker = f"mqtt://127.0.0.1:{port}"
    with running_mosquitto(tmp_path, port):
        outgoing = MqttPublisher(broker, client="out", patience=30)
        outgoing.__enter__()
    wait_until(lambda: not outgoing._client.is_connected())
    outgoing.send("retained", b"1")
    with running_mosquitto(tmp_path, port):
        outgoing.__exit__(None)
    assert outgoing._confirmed == 1


def test_messages_that_nobody_confirms_are_an_error(tmp_path: Path) -> None:
    port = free_port()
    with running_mosquitto(tmp_path, port):
        outgoing = MqttPublisher(f"127.0.0.1:{port}", client="out", patience=0.3)
        outgoing.__enter__()
    wait_until(lambda: not outgoing._client.is_connected())
    outgoing.send("x", b"1")
    with pytest.raises(DeliveryError, match="did not confirm 1 messages"):
        outgoing.__exit__(None)
