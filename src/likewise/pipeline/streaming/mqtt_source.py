"""MQTT as a Spark source: `spark.readStream.format("likewise-mqtt")`.

The driver holds one connection with a persistent session (QoS 1), writes every message to a spool and acknowledges it
only once it is on the disk, so that Spark can ask again for the messages of an unfinished batch. A message is lost
neither by a kill of the driver, nor by a power cut, nor while the query is down; the broker may send one twice if the
kill falls between spool and acknowledgement, with the same event id.
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
SCHEMA = "topic string, payload binary, received timestamp"
_ARROW = pa.schema([("topic", pa.string()), ("payload", pa.binary()), ("received", pa.timestamp("us", tz="UTC"))])
_PART = 5_000
"""Messages in one partition: more than this are read by several tasks."""
_QUIET, _SETTLED = 1.0, 30.0
"""Seconds without a message after which a broker has sent what it kept, and for how long that is waited for."""


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
    """Some messages; they travel with the partition, so that workers need not see the spool."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(None)
        self.messages = messages


class MqttReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Counts messages: an offset is how many came before."""

    def __init__(self, options: Mapping[str, str]) -> None:
        for needed in ("broker", "topics", "spool"):
            if not options.get(needed):
                raise BuildError(f"the MQTT source needs the option {needed}")
        self._options = dict(options.items())
        self._spool: Spool | None = None
        self._client: Any = None
        self._thanks: Thanks | None = None
        self._last: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy goes to every worker, which only unpacks partitions.
        return {"_options": self._options, "_spool": None, "_client": None, "_thanks": None, "_last": None}

    def initialOffset(self) -> dict[str, int]:
        """A new query begins with what the spool still holds."""
        return {"count": 0}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: ARG002 - Spark's signature
        """How many messages there are by now; listening begins with the first question."""
        spool = self._listen(start["count"])
        most = int(self._options.get("most", 0))
        # What is not yet on the disk may come again from the broker, under the same number.
        count = spool.durable if self._last is None else max(self._last, start["count"])
        return {"count": min(count, start["count"] + most) if most else count}

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what the broker has kept for us, and no more: it does not report when that is all."""
        spool, before, end = self._listen(0), -1, time.monotonic() + _SETTLED
        while spool.durable != before and time.monotonic() < end:
            before = spool.durable
            time.sleep(_QUIET)
        self._last = spool.durable

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[MessagePartition]:
        """The messages of a batch, the same whenever asked."""
        messages = list(self._open().read(start["count"], end["count"]))
        return [MessagePartition(messages[at : at + _PART]) for at in range(0, len(messages), _PART)]

    def read(self, partition: MessagePartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # its own kind of partition
        """The messages of one partition, as Arrow columns."""
        columns = list(zip(*partition.messages, strict=True))
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)

    def commit(self, end: dict[str, int]) -> None:
        """What was processed need not be kept."""
        self._open().forget(end["count"])

    def stop(self) -> None:
        """Leave the broker; the session stays, so what is sent from now on waits there."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None
        if self._thanks is not None:
            self._thanks.stop()
            self._thanks = None
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
            self._thanks = Thanks(spool)
            try:
                self._client = connect(self._options, self._thanks)
            except BaseException:  # whatever it was, its thread does not stay
                self._thanks.stop()
                self._thanks = None
                raise
        return spool


class Thanks:
    """Keeps messages in a spool and thanks for them once they are on the disk, many for one wait."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._waiting: list[Callable[[], None]] = []
        self._some = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="likewise-spool")
        self._thread.start()

    def keep(self, message: Message, thank: Callable[[], None]) -> None:
        """Take a message; `thank` is called when it is safe."""
        self._spool.append(message)
        with self._some:
            self._waiting.append(thank)
            self._some.notify()

    def stop(self) -> None:
        """Thank for what is there, then end."""
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
            for thank in mine:
                thank()


def connect(options: Mapping[str, str], thanks: Thanks) -> Any:
    """A client that spools every message of the topics, in a thread of its own; back when it is subscribed."""
    client = mqtt_client(options["broker"], client=options.get("client", "likewise"), persistent=True)
    topics = [(topic, int(options.get("qos", "1"))) for topic in options["topics"].split("\n")]
    connection = MqttConnection(client, topics)

    def keep(ours: Any, _: Any, message: Any) -> None:
        kept = (message.topic, bytes(message.payload), time.time_ns() // 1000)
        thanks.keep(kept, partial(ours.ack, message.mid, message.qos))

    client.on_message = keep
    connection.wait(options["broker"])
    return client
