"""What the page on Spark offers to paste runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_script_to_paste_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the shared session, which it therefore must not stop."""
    script = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.S | re.M)[0]
    assert len(script.strip().splitlines()) <= 22
    monkeypatch.chdir(tmp_path)
    exec(script.replace("spark.stop()", ""), {})
    shown = capsys.readouterr().out
    assert "someone" in shown
    assert "burglary" in shown
    assert "this line is no event" in shown
