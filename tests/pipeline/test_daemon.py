"""What the daemon does before it forks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.pipeline.daemon import rehearse, unpacked

pytest.importorskip("pyspark")


def installed() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def test_archives_of_the_installed_pyspark_are_left_out() -> None:
    lib, site = installed() / "python" / "lib", str(installed().parent)
    path = [str(lib / "pyspark.zip"), str(lib / "py4j-src.zip"), "/job.zip", "/job", site]
    assert unpacked(path) == ["/job.zip", "/job", site]


def test_archives_of_another_pyspark_stay(tmp_path: Path) -> None:
    """A cluster's own version may be another one than that beside it."""
    path = [str(tmp_path / "python" / "lib" / "pyspark.zip"), str(installed().parent)]
    assert unpacked(path) == path


def test_archives_stay_where_nothing_is_installed(tmp_path: Path) -> None:
    path = [str(installed() / "python" / "lib" / "pyspark.zip"), str(tmp_path)]
    assert unpacked(path) == path


def test_the_rehearsal_detects_every_pair() -> None:
    # 64 times a and b in turn: every a with the b after it.
    assert rehearse() == 64


def test_workers_find_what_they_need_loaded() -> None:
    needed = [
        "pandas",
        "pyspark.worker",
        "numba",
        "likewise.pipeline.detection.stream",
        "likewise.pipeline.events.scan",
    ]
    code = f"""
import sys
from likewise.pipeline.daemon import preload
preload()
print([name for name in {needed} if name not in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
