"""`likewise bench` finds and loads every benchmark of the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.cli.commands.trying.bench import _load
from likewise.errors import LikewiseError

BENCH = Path(__file__).parents[2] / "bench"
NAMES = sorted(path.stem for path in BENCH.glob("[!_]*.py"))


def test_list_names_them_all() -> None:
    done = CliRunner().invoke(build(), ["bench", "list", "--json"])
    assert json.loads(done.stdout) == NAMES
    assert {"events", "exact", "space", "matching", "composite", "spark"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_loads(name: str) -> None:
    assert callable(_load(BENCH / f"{name}.py"))


def test_an_unknown_one_is_refused_with_the_names() -> None:
    done = CliRunner().invoke(build(), ["bench", "speed"])
    assert isinstance(done.exception, LikewiseError)
    assert "composite" in str(done.exception)


@pytest.mark.parametrize(("note", "code"), [("skipped: no space", 0), ("failed: it broke", 1)])
def test_a_part_that_failed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: str, code: int
) -> None:
    row = {"what": "part", "value": None, "unit": "", "note": note}
    (tmp_path / "one.py").write_text(f"def run(*, quick=False):\n    return [{row!r}]\n")
    monkeypatch.setenv("LIKEWISE_BENCH", str(tmp_path))
    assert CliRunner().invoke(build(), ["bench", "one"]).exit_code == code
