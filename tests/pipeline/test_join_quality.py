"""Joins can be trusted: names of three trades, written before any score was seen, meet the kinds that they are of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from likewise.pipeline.joins.tables import join_tables
from likewise.semantics import measure

BENCH = Path(__file__).parents[2] / "bench"
BEST, PRECISION, RECALL = 0.85, 0.9, 0.7


TRADES = ("airport", "hospital", "groceries")
LEAST = 0.8
"""The share of best partners that are right in each trade; all three together reach the target."""


@pytest.mark.parametrize("strangers", [False, True])
def test_names_find_their_kinds(strangers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if every fifth kind is missing on the right, so that its names have no partner."""
    monkeypatch.syspath_prepend(BENCH)
    from _join_devices import judged, written_before

    evidence = measure("evidence")

    def join(names: Any, how: dict[str, Any]) -> list[tuple[str, str]]:
        left = pa.table({"name": names.names, "truth": names.truth})
        joined = join_tables(left, pa.table({"kind": names.kinds}), on=("name", "kind"), measure=evidence, **how)
        return list(zip(joined["kind"].to_pylist(), joined["truth"].to_pylist(), strict=True))

    lists = [written_before(trade, strangers=strangers) for trade in TRADES]
    assert all(len(names.names) >= 200 for names in lists)
    assert all(judged([names], join)["value"] >= LEAST for names in lists)
    found = judged(lists, join)
    assert found["value"] >= BEST
    assert found["precision"] >= PRECISION
    assert found["recall"] >= RECALL
    sys.modules.pop("_join_devices", None)
