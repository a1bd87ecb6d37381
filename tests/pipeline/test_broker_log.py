"""The log of a broker as a source: Spark reads what a broker has stored, in batch and as a stream."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from likewise.errors import BuildError, InputError
from likewise.pipeline import dead_letters, read_events
from likewise.pipeline.events import broker_log
from likewise.pipeline.events.broker_log import LogTable

pytest.importorskip("fastapi")
pytestmark = pytest.mark.spark


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """As a broker makes it: events of two namespaces, a change of subscriptions and a tick."""
    from sqlalchemy import create_engine

    from likewise.broker.store import schema

    path = tmp_path / "broker.sqlite3"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        schema.migrate(connection)
    engine.dispose()
    add(path, [("default", 0, 1), ("default", 1, 0), ("other", 0, 2), ("default", 0, 3), ("default", 2, 0)])
    return path


def add(path: Path, records: list[tuple[str, int, int]]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        [(last,)] = connection.execute("SELECT coalesce(max(position), 0) FROM records")
        for position, (namespace, kind, number) in enumerate(records, last + 1):
            body = b'{"id": "e%d", "time": %d, "attributes": {"number": %d}}' % (number, number, number)
            row = (position, 1, namespace, kind, f"e{number}", number, 1_000_000 * number, "test", body)
            connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()


def test_a_batch_reads_the_events_of_a_namespace(spark: Any, database: Path) -> None:
    frame = read_events(spark, database)
    assert sorted(row["id"] for row in frame.collect()) == ["e1", "e3"]
    assert dead_letters(frame).count() == 0
    other = read_events(spark, database, options={"namespace": "other"})
    assert [row["id"] for row in other.collect()] == ["e2"]


def test_a_stream_goes_on_where_it_was(spark: Any, database: Path, tmp_path: Path, checkpoint: str) -> None:
    frame, target = read_events(spark, database, stream=True).select("id"), str(tmp_path / "seen")

    def seen() -> list[str]:
        writer = frame.writeStream.format("json").option("path", target).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(row["id"] for row in spark.read.schema("id string").json(target).collect())

    assert seen() == ["e1", "e3"]
    add(database, [("default", 0, 4)])
    assert seen() == ["e1", "e3", "e4"]


def test_ranges_cover_all_positions_once() -> None:
    found = broker_log._ranges(7, 7 + 2 * broker_log._PART + 5)
    assert [part.up_to - part.after for part in found] == [broker_log._PART, broker_log._PART, 5]
    assert (found[0].after, [part.after for part in found[1:]]) == (7, [part.up_to for part in found[:-1]])


def test_pages_of_the_table_are_whole(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_log, "_ROWS", 2)
    add(database, [("default", 0, number) for number in range(4, 9)])
    table = LogTable(str(database), "default")
    found = [received for rows in table.bodies(0, table.last()) for _, received in rows]
    assert found == [1_000_000 * number for number in (1, 3, 4, 5, 6, 7, 8)]


def test_what_is_no_log_is_refused(spark: Any, tmp_path: Path, database: Path) -> None:
    with pytest.raises(InputError, match="no broker's database"):
        read_events(spark, tmp_path / "nothing.sqlite3")
    (tmp_path / "text.sqlite3").write_text("this is no database, whatever it is called " * 100)
    with pytest.raises(InputError, match="not a broker's database"):
        read_events(spark, tmp_path / "text.sqlite3")
    with pytest.raises(BuildError, match="takes no colour"):
        read_events(spark, database, options={"colour": "red"})
