"""What all tests and doctests share: a test run leaves no files behind in the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
_BEFORE = pytest.StashKey[set[str]]()


def _untracked() -> set[str]:
    """The files and folders at the top of the repository that are neither tracked nor ignored by git."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return set()
    done = subprocess.run(["git", "status", "--porcelain", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = (entry.removeprefix("?? ") for entry in done.stdout.split("\0") if entry.startswith("?? "))
    return {name for name in names if "/" not in name.rstrip("/")}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember which files were there before."""
    session.config.stash[_BEFORE] = _untracked()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test wrote into the repository's top folder."""
    left = sorted(_untracked() - session.config.stash.get(_BEFORE, set()))
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if left:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"\nERROR: tests left files in {ROOT.name}: {', '.join(left)}", red=True)


@pytest.fixture(autouse=True)
def _doctests_write_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run doctests in a temporary folder, so that they may write files."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
