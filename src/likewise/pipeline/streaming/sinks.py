"""Where the rows of a micro-batch go: files, the console, an MQTT broker, a webhook.

A sink is called with a batch and its number and may be called again with the same after a crash. Files are
exactly once: a batch has a folder of its own, which is written anew. Messages are remembered in a ledger once
the whole batch is out, so only a batch that was cut off in the middle is sent twice, under the same keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa

from likewise.delivery import Ledger, MqttPublisher, Webhook, client_name
from likewise.errors import BuildError, DeliveryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_encode = msgspec.json.Encoder().encode


class Sink(Protocol):
    """Takes the rows of one micro-batch."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write them; doing it again changes nothing, or repeats the same keys."""
        ...


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


@dataclass(frozen=True, slots=True)
class MqttSink:
    """One message for each row, QoS 1, on the topic with `{column}` filled in from the row.

    `{subscription}` is the pattern's name too. A broker that goes away is waited for, `patience` seconds long.
    """

    broker: str
    ledger: str
    topic: str = "likewise/{subscription}"
    client: str | None = None
    patience: float = 60.0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        ledger = Ledger(self.ledger)
        if ledger.has(batch):
            return
        client = self.client or client_name(self.ledger)
        with MqttPublisher(self.broker, client=client, patience=self.patience) as outgoing:
            for at, row in enumerate(in_order(rows)):
                outgoing.send(self._topic(row), _encode({"key": f"{batch}-{at}", **row}))
        ledger.add(batch)

    def _topic(self, row: dict[str, Any]) -> str:
        try:
            topic = self.topic.format_map({"subscription": row.get("pattern"), **row})
        except KeyError as error:
            raise DeliveryError(f"rows have no {error} for the topic {self.topic}", hint=f"{', '.join(row)}") from None
        # What stands for other topics cannot be in the name of one.
        return topic.replace("+", "_").replace("#", "_")


@dataclass(frozen=True, slots=True)
class WebhookSink:
    """POSTs the rows as JSON arrays; `Idempotency-Key` names batch and part, so a receiver can drop repeats.

    A receiver that does not answer, or answers 429 or 5xx, is tried again for `patience` seconds.
    """

    url: str
    ledger: str
    size: int = 1000
    patience: float = 60.0
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._hook()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        ledger = Ledger(self.ledger)
        if ledger.has(batch):
            return
        hook = self._hook()
        for part, chunk in enumerate(_chunks(in_order(rows), self.size)):
            hook.post(_encode(chunk), key=f"{batch}-{part}")
        ledger.add(batch)

    def _hook(self) -> Webhook:
        return Webhook(self.url, self.patience, self.headers)


def in_order(rows: DataFrame) -> list[dict[str, Any]]:
    """Rows in an order that depends on nothing but themselves, so that a repeat gives the same keys.

    Sorted here and not by Spark, which would work out the batch twice to do it, and count its events twice.
    """
    return sorted(records(rows), key=_encode)


def records(rows: DataFrame) -> Iterator[dict[str, Any]]:
    """Rows as dicts, times as ISO text."""
    table: pa.Table = rows.toArrow()
    for batch in table.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def _chunks(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk
