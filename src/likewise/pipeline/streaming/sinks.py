"""Sinks for the rows of a micro-batch: files, the console, an MQTT broker, a webhook.

A sink is called with a batch and its number, and after a crash again with the same batch. Files are exactly once: each
batch has its own folder, which is overwritten. Messages are at least once: a ledger stores the number of a batch that
was sent completely, so only an interrupted batch is sent twice, with the same keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa

from likewise.delivery import Ledger, MqttPublisher, Webhook, client_name
from likewise.errors import BuildError, DeliveryError
from likewise.pipeline.options import Span, seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_encode = msgspec.json.Encoder().encode


class Sink(Protocol):
    """Takes the rows of one micro-batch."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write them; a repeated call changes nothing, or sends the same keys."""
        ...


@dataclass(frozen=True, slots=True)
class FileSink:
    """Parquet or JSON files, a folder `batch=N` for each micro-batch: exactly once."""

    path: str | Path
    format: str = "parquet"

    def __post_init__(self) -> None:
        if self.format not in ("parquet", "json"):
            raise BuildError(f"files cannot be {self.format!r}", hint="parquet or json")

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").format(self.format).save(f"{str(self.path).rstrip('/')}/batch={batch}")


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

    `{subscription}` is the pattern's name too. If the broker is away, the sink waits for `patience` (seconds, or a
    duration) before it fails.
    """

    broker: str
    ledger: str | Path
    topic: str = "likewise/{subscription}"
    client: str | None = None
    patience: float | Span = 60.0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        ledger = Ledger(self.ledger)
        if ledger.has(batch):
            return
        client = self.client or client_name(str(self.ledger))
        with MqttPublisher(self.broker, client=client, patience=seconds(self.patience)) as outgoing:
            for at, row in enumerate(in_order(rows)):
                outgoing.send(self._topic(row), _encode({"key": f"{batch}-{at}", **row}))
        ledger.add(batch)

    def _topic(self, row: dict[str, Any]) -> str:
        try:
            topic = self.topic.format_map({"subscription": row.get("pattern"), **row})
        except KeyError as error:
            raise DeliveryError(f"rows have no {error} for the topic {self.topic}", hint=f"{', '.join(row)}") from None
        # Wildcards are not allowed in the name of a topic.
        return topic.replace("+", "_").replace("#", "_")


@dataclass(frozen=True, slots=True)
class WebhookSink:
    """POSTs the rows as JSON arrays; `Idempotency-Key` names batch and part, so a receiver can drop repeats.

    If a receiver does not answer, or answers 429 or 5xx, requests are retried for `patience` (seconds, or a duration).
    """

    url: str
    ledger: str | Path
    size: int = 1000
    patience: float | Span = 60.0
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
        return Webhook(self.url, seconds(self.patience), self.headers)


def in_order(rows: DataFrame) -> list[dict[str, Any]]:
    """Rows in an order that depends only on their content, so that a repeated batch has the same keys.

    They are sorted here because Spark would compute the batch twice for that, and count its events twice.
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
