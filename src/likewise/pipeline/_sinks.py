"""Where the rows of a micro-batch go: files, the console, an MQTT broker, a webhook.

A sink is called with a batch and its number and may be called again with the same after a crash. Files are
exactly once: a batch has a folder of its own, which is written anew. Messages are remembered in a ledger once
the whole batch is out, so only a batch that was cut off in the middle is sent twice, under the same keys.
"""

from __future__ import annotations

import itertools
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa

from likewise.errors import BuildError, LikewiseError, MissingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_encode = msgspec.json.Encoder().encode


class Sink(Protocol):
    """Takes the rows of one micro-batch."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write them; doing it again changes nothing, or repeats the same keys."""
        ...


class DeliveryError(LikewiseError):
    """A receiver that did not take its messages; the batch stays undone and is tried again at restart."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """Parquet or JSON files, a folder `batch=N` for each micro-batch: exactly once."""

    path: str
    format: str = "parquet"

    def __post_init__(self) -> None:
        if self.format not in ("parquet", "json"):
            raise BuildError(f"files cannot be {self.format!r}", hint="parquet or json")

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").format(self.format).save(f"{self.path.rstrip('/')}/batch={batch}")


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """The first rows of every batch on standard output, as JSON lines."""

    limit: int = 20

    def __call__(self, rows: DataFrame, batch: int) -> None:
        for row in records(rows.limit(self.limit)):
            print(_encode({"batch": batch, **row}).decode(), flush=True)


class Ledger:
    """Remembers in a file which batch was delivered last; batches come in order."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def has(self, batch: int) -> bool:
        """Whether this batch is out already."""
        try:
            return batch <= int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return False

    def add(self, batch: int) -> None:
        """Note a batch; the file is replaced whole, so a crash leaves the old note or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(str(batch))
        part.replace(self._path)


@dataclass(frozen=True, slots=True)
class MqttSink:
    """One message for each row, QoS 1, on the topic with `{column}` filled in from the row."""

    broker: str
    ledger: str
    topic: str = "likewise/{subscription}"
    client: str = "likewise-out"

    def __call__(self, rows: DataFrame, batch: int) -> None:
        ledger = Ledger(self.ledger)
        if ledger.has(batch):
            return
        client = self._connect()
        try:
            sent = [
                client.publish(self.topic.format_map(row), _encode({"key": f"{batch}-{at}", **row}), qos=1)
                for at, row in enumerate(records(ordered(rows)))
            ]
            for message in sent:
                message.wait_for_publish(timeout=30)
                if not message.is_published():
                    raise DeliveryError(f"{self.broker} did not confirm batch {batch}", hint="is the broker well?")
        finally:
            client.disconnect()
            client.loop_stop()
        ledger.add(batch)

    def _connect(self) -> Any:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        from likewise.pipeline._mqtt_source import Address

        address = Address.parse(self.broker)
        client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=self.client)
        client.max_queued_messages_set(0)
        client.max_inflight_messages_set(1000)
        if address.user is not None:
            client.username_pw_set(address.user, address.password)
        if address.tls:
            client.tls_set()
        try:
            client.connect(address.host, address.port)
        except OSError as error:
            raise MissingError(f"no MQTT broker answers at {self.broker}: {error}", hint="is it running?") from error
        client.loop_start()
        return client


@dataclass(frozen=True, slots=True)
class WebhookSink:
    """POSTs the rows as JSON arrays; `Idempotency-Key` names batch and part, so a receiver can drop repeats."""

    url: str
    ledger: str
    size: int = 1000
    tries: int = 5
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        ledger = Ledger(self.ledger)
        if ledger.has(batch):
            return
        for part, chunk in enumerate(_chunks(records(ordered(rows)), self.size)):
            self._post(_encode(chunk), key=f"{batch}-{part}")
        ledger.add(batch)

    def _post(self, body: bytes, *, key: str) -> None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, **self.headers}
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        for tried in itertools.count(1):
            try:
                with urllib.request.urlopen(request, timeout=30):
                    return
            except urllib.error.URLError as error:
                # A receiver that refuses what it was sent will refuse it again; one that is down may come back.
                refused = isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
                if refused or tried >= self.tries:
                    raise DeliveryError(f"{self.url} did not take part {key}: {error}") from error
                time.sleep(min(2.0**tried / 10, 10.0))


def ordered(rows: DataFrame) -> DataFrame:
    """Rows in an order that depends on nothing but themselves, so that a repeat gives the same keys."""
    return rows.orderBy(*(name for name, kind in rows.dtypes if not kind.startswith("map")))


def records(rows: DataFrame) -> Iterator[dict[str, Any]]:
    """Rows as dicts, times as ISO text."""
    table: pa.Table = rows.toArrow()
    for batch in table.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def _chunks(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk
