"""MQTT as a Spark source: `spark.readStream.format("likewise-mqtt")`.

The driver holds one connection with a persistent session (QoS 1), writes every message to a spool and acknowledges it
only when it is on disk, so that Spark can read the messages of an unfinished batch again. No message is lost if the
driver is killed, at a power cut, or while the query is down. If the driver is killed between spool and acknowledgement,
the broker sends the message again, with the same event id.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from likewise.delivery import Address, Message, MqttConnection, Spool, mqtt_client
from likewise.errors import BuildError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "likewise-mqtt"
SCHEMA = "topic string, payload binary, received timestamp_ltz"
_ARROW = pa.schema([("topic", pa.string()), ("payload", pa.binary()), ("received", pa.timestamp("us", tz="UTC"))])
_PART = 5_000
"""Messages in one partition, at most."""
_QUIET, _SETTLED = 1.0, 30.0
"""Seconds without a message after which a broker has sent its stored messages, and the longest wait for that."""


def read_mqtt(
    spark: SparkSession, broker: str, *, topics: Sequence[str], spool: str, client: str = "likewise", qos: int = 1
) -> DataFrame:
    """Messages of a broker as a stream, with the columns `record`, `source` and `received` of `decode_records`."""
    from pyspark.sql import functions as F

    Address.parse(broker)
    if not topics:
        raise BuildError("no topic to listen to", hint="give one, such as sensors/#")
    spark.dataSource.register(MqttSource)
    options = {"broker": broker, "topics": "\n".join(topics), "spool": spool, "client": client, "qos": str(qos)}
    rows = spark.readStream.format(FORMAT).options(**options).load()
    return rows.select(F.col("payload").alias("record"), F.col("topic").alias("source"), "received")


class MqttSource(DataSource):
    """Options: `broker`, `topics` (one a line), `spool` (a folder), `client` (its session's name), `qos`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> MqttReader:  # noqa: ARG002 - Spark's signature
        return MqttReader(self.options)


class MessagePartition(InputPartition):
    """Some messages; they are sent with the partition, so that workers need no access to the spool."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(None)
        self.messages = messages


class MqttReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads messages by number: an offset is the number of messages before it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        for needed in ("broker", "topics", "spool"):
            if not options.get(needed):
                raise BuildError(f"the MQTT source needs the option {needed}")
        self._options = dict(options.items())
        self._spool: Spool | None = None
        self._client: Any = None
        self._acknowledger: Acknowledger | None = None
        self._last: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy goes to every worker, which only unpacks partitions.
        return {"_options": self._options, "_spool": None, "_client": None, "_acknowledger": None, "_last": None}

    def initialOffset(self) -> dict[str, int]:
        """A new query begins with the messages in the spool."""
        return {"count": 0}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: ARG002 - Spark's signature
        """The number of messages so far; the first call connects."""
        spool = self._listen(start["count"])
        most = int(self._options.get("most", 0))
        # Messages that are not yet on disk may be sent again, and then have the same number.
        count = spool.durable if self._last is None else max(self._last, start["count"])
        return {"count": min(count, start["count"] + most) if most else count}

    def prepareForTriggerAvailableNow(self) -> None:
        """Read the messages that the broker has stored, and no more: it does not report when these are all."""
        spool, before, end = self._listen(0), -1, time.monotonic() + _SETTLED
        while spool.durable != before and time.monotonic() < end:
            before = spool.durable
            time.sleep(_QUIET)
        self._last = spool.durable

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[MessagePartition]:
        """The messages of a batch, the same on every call."""
        messages = list(self._open().read(start["count"], end["count"]))
        return [MessagePartition(messages[at : at + _PART]) for at in range(0, len(messages), _PART)]

    def read(self, partition: MessagePartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # its own kind of partition
        """The messages of one partition, as Arrow columns."""
        columns = list(zip(*partition.messages, strict=True))
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)

    def commit(self, end: dict[str, int]) -> None:
        """Delete processed messages from the spool."""
        self._open().forget(end["count"])

    def stop(self) -> None:
        """Disconnect; the session stays, so the broker stores messages from now on."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None
        if self._acknowledger is not None:
            self._acknowledger.stop()
            self._acknowledger = None
        if self._spool is not None:
            self._spool.close()

    def _open(self) -> Spool:
        if self._spool is None:
            self._spool = Spool(self._options["spool"])
        return self._spool

    def _listen(self, count: int) -> Spool:
        spool = self._open()
        spool.skip_to(count)
        if self._client is None:
            self._acknowledger = Acknowledger(spool)
            try:
                self._client = connect(self._options, self._acknowledger)
            except BaseException:  # also on Ctrl-C, stop its thread
                self._acknowledger.stop()
                self._acknowledger = None
                raise
        return spool


class Acknowledger:
    """Stores messages in a spool and acknowledges them once they are on disk; one sync serves many messages."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._waiting: list[Callable[[], None]] = []
        self._some = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="likewise-spool")
        self._thread.start()

    def keep(self, message: Message, acknowledge: Callable[[], None]) -> None:
        """Store a message; `acknowledge` is called once it is on disk."""
        self._spool.append(message)
        with self._some:
            self._waiting.append(acknowledge)
            self._some.notify()

    def stop(self) -> None:
        """Acknowledge all stored messages, then end."""
        with self._some:
            self._over = True
            self._some.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._some:
                self._some.wait_for(lambda: self._waiting or self._over)
                mine, self._waiting = self._waiting, []
                if not mine:
                    return
            self._spool.sync()
            for acknowledge in mine:
                acknowledge()


def connect(options: Mapping[str, str], acknowledger: Acknowledger) -> Any:
    """A client that spools every message of the topics, in a thread of its own; back when it is subscribed."""
    client = mqtt_client(options["broker"], client=options.get("client", "likewise"), persistent=True)
    topics = [(topic, int(options.get("qos", "1"))) for topic in options["topics"].split("\n")]
    connection = MqttConnection(client, topics)

    def keep(ours: Any, _: Any, message: Any) -> None:
        kept = (message.topic, bytes(message.payload), time.time_ns() // 1000)
        acknowledger.keep(kept, partial(ours.ack, message.mid, message.qos))

    client.on_message = keep
    connection.wait(options["broker"])
    return client
