"""Sinks write a batch once, whatever happens around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F
from tests.pipeline.traces import trace, write_files

from likewise.delivery import Ledger
from likewise.errors import BuildError, DeliveryError
from likewise.pipeline import detect, match, read_events
from likewise.pipeline.streaming.sinks import ConsoleSink, FileSink, WebhookSink

pytestmark = pytest.mark.spark


@pytest.fixture
def rows(spark: Any) -> Any:
    return spark.createDataFrame([(f"e{number}", "s") for number in range(5)], "event string, subscription string")


def test_a_batch_written_again_replaces_itself(spark: Any, rows: Any, tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "out"), format="json")
    sink(rows.limit(2), 0)
    sink(rows, 0)
    sink(rows, 1)
    assert spark.read.json(str(tmp_path / "out")).count() == 10


def test_a_webhook_gets_every_row_once_in_keyed_parts(rows: Any, webhook: Any, tmp_path: Path) -> None:
    """A receiver that is down for a moment is asked again; a batch that is out is not sent again."""
    webhook.refusals = 1
    sink = WebhookSink(webhook.url, ledger=str(tmp_path / "ledger"), size=3)
    sink(rows, 7)
    sink(rows, 7)
    assert [key for key, _ in webhook.posts] == ["7-0", "7-1"]
    assert [row["event"] for _, part in webhook.posts for row in part] == [f"e{number}" for number in range(5)]


def test_a_webhook_that_stays_away_fails_the_batch(rows: Any, webhook: Any, tmp_path: Path) -> None:
    webhook.refusals = 9
    sink = WebhookSink(webhook.url, ledger=str(tmp_path / "ledger"), patience=0.5)
    with pytest.raises(DeliveryError, match="503"):
        sink(rows, 0)
    assert not Ledger(tmp_path / "ledger").has(0)


def test_a_batch_that_was_cut_off_is_sent_again_under_the_same_keys(rows: Any, webhook: Any, tmp_path: Path) -> None:
    """At least once: the parts that were out come twice, with the same key and the same content."""
    ledger = str(tmp_path / "ledger")
    webhook.takes = 1
    with pytest.raises(DeliveryError, match="4-1"):
        WebhookSink(webhook.url, ledger=ledger, size=3, patience=0)(rows, 4)
    webhook.takes = None
    WebhookSink(webhook.url, ledger=ledger, size=3)(rows, 4)
    assert [key for key, _ in webhook.posts] == ["4-0", "4-0", "4-1"]
    assert webhook.posts[0] == webhook.posts[1]


def test_a_webhook_that_comes_back_is_waited_for(rows: Any, webhook: Any, tmp_path: Path) -> None:
    webhook.refusals = 3
    WebhookSink(webhook.url, ledger=str(tmp_path / "ledger"), patience=30)(rows, 0)
    assert [key for key, _ in webhook.posts] == ["0-0"]


def test_a_webhook_needs_an_address() -> None:
    with pytest.raises(BuildError, match="not the address of a webhook"):
        WebhookSink("localhost:8000", ledger="x")


def test_the_console_shows_json_lines(rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleSink(limit=2)(rows, 3)
    assert [json.loads(line)["batch"] for line in capsys.readouterr().out.splitlines()] == [3, 3]


def test_files_are_parquet_or_json() -> None:
    with pytest.raises(BuildError, match="cannot be"):
        FileSink("x", format="xml")


@pytest.mark.parametrize("kind", ["json", "orc", "csv", "table", "memory"])
@pytest.mark.parametrize("what", ["matches", "detections"])
def test_any_sink_of_spark_takes_matches_and_detections(spark: Any, tmp_path: Path, what: str, kind: str) -> None:
    """CSV has only flat columns, so lists are written as JSON."""
    write_files(tmp_path / "in", trace(12), size=12)

    def found(*, stream: bool) -> Any:
        events = read_events(spark, tmp_path / "in", format="jsonl", stream=stream)
        if what == "matches":
            return match(events, "s: {type = a}").withColumn("mapping", F.to_json("mapping"))
        pair = "p: {type = a} as x then {type = b} as y within 30 seconds"
        return detect(events, pair, buckets=1).withColumn("events", F.to_json("events"))

    out, name = str(tmp_path / "out"), f"{what}_{kind}"
    writer = found(stream=True).writeStream.option("checkpointLocation", str(tmp_path / "state"))
    writer = writer.trigger(availableNow=True)
    if kind == "table":
        query = writer.option("path", out).toTable(name)
    elif kind == "memory":
        query = writer.format("memory").queryName(name).start()
    else:
        query = writer.format(kind).option("path", out).start()
    query.awaitTermination()
    wanted = found(stream=False)
    written = spark.table(name) if kind in ("table", "memory") else spark.read.schema(wanted.schema).load(out, kind)
    try:
        assert sorted(map(str, written.collect())) == sorted(map(str, wanted.collect())) != []
    finally:
        if kind == "table":
            spark.sql(f"drop table {name}")
