"""Where compiled kernels go if the usual places cannot be written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from likewise import _kernel_cache
from likewise._kernel_cache import keep_kernels


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package and a home that cannot be written to; root may write anywhere, so it is only said to be so."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(_kernel_cache, "_writable", lambda _: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"likewise-kernels-{os.getuid()}"


def test_a_folder_of_this_user_alone(nowhere: Path) -> None:
    keep_kernels(Path("/package"))
    assert os.environ.pop("NUMBA_CACHE_DIR") == str(nowhere)
    assert nowhere.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_not_trusted(nowhere: Path) -> None:
    nowhere.mkdir()
    nowhere.chmod(0o777)
    keep_kernels(Path("/package"))
    assert "NUMBA_CACHE_DIR" not in os.environ


def test_what_the_user_named_stays(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/mine")
    keep_kernels(Path("/package"))
    assert os.environ["NUMBA_CACHE_DIR"] == "/mine"
    assert not nowhere.exists()


def test_beside_the_source_if_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    keep_kernels(tmp_path / "not" / "yet")
    assert "NUMBA_CACHE_DIR" not in os.environ
