"""Compiled kernels are kept in a folder that belongs to the present sources."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher
from rich.console import Console

from likewise import _kernel_cache
from likewise._kernel_cache import fingerprint, keep_kernels
from likewise.cli.app import run


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a kernel that calls another file; the environment is restored afterwards."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr("numba.config.CACHE_DIR", "", raising=False)
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "kernel.py").write_text("@njit\ndef f(): return g()\n")
    (folder / "part.py").write_text("@njit\ndef g(): return 1\n")
    (folder / "other.py").write_text("x = 1\n")
    return folder


def chosen(package: Path) -> Path:
    keep_kernels(package)
    return Path(os.environ["NUMBA_CACHE_DIR"])


def test_beside_the_source_if_possible(package: Path) -> None:
    assert chosen(package) == package / "__pycache__" / f"likewise-kernels-{fingerprint(package)}"


def test_a_change_in_any_compiled_file_is_a_new_folder(package: Path) -> None:
    before = chosen(package)
    (package / "part.py").write_text("@njit\ndef g(): return 2\n")
    assert chosen(package) != before


def test_a_change_elsewhere_keeps_the_folder(package: Path) -> None:
    before = chosen(package)
    (package / "other.py").write_text("x = 2\n")
    assert chosen(package) == before


def test_every_compiled_function_stands_in_a_file_of_the_hash() -> None:
    """Also those whose decorator is our own; one that is not seen would run old machine code after an update."""
    import likewise.composite  # noqa: F401 - its kernels use decorators of their own

    modules = [module for name, module in sys.modules.items() if name.startswith("likewise.")]
    compiled = {
        Path(one.py_func.__code__.co_filename)
        for module in modules
        for one in vars(module).values()
        if isinstance(one, Dispatcher)
    }
    assert {"kernel.py", "store.py", "decision.py"} <= {path.name for path in compiled}
    assert [path for path in compiled if b"njit" not in path.read_bytes()] == []


def test_the_folder_that_a_user_names_holds_ours(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(package / "mine"))
    folder = chosen(package)
    assert folder.parent == package / "mine"
    assert chosen(package) == folder, "a child process finds the same"


def test_few_old_folders_stay(package: Path) -> None:
    for number in range(6):
        (package / "kernel.py").write_text(f"@njit\ndef f(): return {number}\n")
        chosen(package).mkdir(parents=True)
    assert len(list((package / "__pycache__").iterdir())) == 4


@pytest.fixture
def nowhere(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package and a home that cannot be written to; root may write anywhere, so it is only declared so."""
    monkeypatch.setattr(_kernel_cache, "_writable", lambda _: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"likewise-{os.getuid()}"


def test_a_folder_of_this_user_alone(package: Path, nowhere: Path) -> None:
    assert chosen(package).parent == nowhere
    assert nowhere.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_not_trusted(package: Path, nowhere: Path) -> None:
    nowhere.mkdir()
    nowhere.chmod(0o777)
    keep_kernels(package)
    assert os.environ["NUMBA_CACHE_DIR"] == ""


@pytest.mark.parametrize("kept", [False, True])
def test_a_person_is_told_that_the_first_run_compiles(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path if kept else tmp_path / "none"))
    monkeypatch.setattr("likewise.cli.app.errors", Console(stderr=True, force_terminal=True))
    assert run(["match", str(tmp_path / "none.jsonl"), str(tmp_path / "none.lw")]) == 2
    assert ("first run" in capsys.readouterr().err) == (not kept)
