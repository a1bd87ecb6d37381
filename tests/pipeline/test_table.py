"""The table of subscriptions: read again, pinned to batches, never worse than the last good one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import BuildError, LikewiseError
from likewise.pipeline.streaming.subscriptions import SubscriptionTable, pattern_versions, read_table
from likewise.recipe import Recipe


def names(table: SubscriptionTable, batch: int | None) -> list[str]:
    return [subscription.name for subscription in table.recipe(batch).subscriptions]


def test_a_batch_keeps_what_it_was_given(tmp_path: Path) -> None:
    """Asked again, by any worker, a batch has the subscriptions that it had; the next has the new ones."""
    file = tmp_path / "s.lw"
    file.write_text("one: {a = b}")
    table = SubscriptionTable(str(file), str(tmp_path / "pins"))
    assert names(table, 0) == ["one"]
    file.write_text("two: {a = b}")
    assert names(SubscriptionTable(str(file), str(tmp_path / "pins")), 0) == ["one"]
    assert names(table, 1) == ["two"]
    assert names(table, None) == ["two"]


def test_a_broken_table_leaves_the_last_good_one(tmp_path: Path) -> None:
    file = tmp_path / "s.lw"
    file.write_text("one: {a = b}")
    table = SubscriptionTable(str(file), str(tmp_path / "pins"))
    names(table, 0)
    for broken in ("one: {a = ", "one: lost then found within 1 minute", ""):
        file.write_text(broken)
        assert names(table, 1 + len(broken)) == ["one"]
        assert (tmp_path / "pins" / "error.txt").exists()
        assert [subscription.name for subscription in table.current().subscriptions] == ["one"]
    file.unlink()
    assert names(table, 90) == ["one"]
    file.write_text("# nothing any more")
    assert names(table, 91) == []
    file.write_text("two: {a = b}")
    assert names(table, 100) == ["two"]
    assert not (tmp_path / "pins" / "error.txt").exists()


def test_a_table_that_was_never_good_is_an_error(tmp_path: Path) -> None:
    table = SubscriptionTable(str(tmp_path / "missing.lw"), str(tmp_path / "pins"))
    with pytest.raises(LikewiseError, match="cannot be read"):
        table.recipe(0)


def test_a_folder_holds_text_json_lines_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.lw").write_text("a: {x = 1}\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"name": "b", "subscription": "{x = 2}"}) + "\n")
    pq.write_table(pa.table({"name": ["c"], "subscription": ["{x = 3}"]}), tmp_path / "c.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert [subscription.name for subscription in Recipe.of(read_table(tmp_path)).subscriptions] == ["a", "b", "c"]
    (tmp_path / "d.jsonl").write_text('{"text": "no"}\n')
    with pytest.raises(BuildError, match="without a subscription"):
        read_table(tmp_path)


def test_a_pattern_has_a_new_version_only_if_it_or_what_it_names_changed() -> None:
    base = "a: {x = 1}\nb: {x = 2}\np: a then b within 1 minute\nq: {x = 3} as u then {x = 4} as v within 1 minute"
    before = pattern_versions(Recipe.of(base))
    assert pattern_versions(Recipe.of(base)) == before
    after = pattern_versions(Recipe.of(base.replace("x = 2", "x = 5")))
    assert after["p"] != before["p"]
    assert after["q"] == before["q"]
