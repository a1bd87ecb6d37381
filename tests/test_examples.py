"""Every numbered example runs, and the Python in the README too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, shelf: Path, tmp_path: Path) -> None:
    done = _run([str(path)], shelf, tmp_path)
    if done.returncode == 77:  # the example says what it lacks
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_python_in_the_readme_runs(shelf: Path, tmp_path: Path) -> None:
    """Blocks run in order in one process, as a reader would paste them, and say what the README shows."""
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.S | re.M)
    shown = re.findall(r"^```text\n(.*?)^```", readme, flags=re.S | re.M)
    assert blocks
    done = _run(["-c", "\n".join(blocks)], shelf, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "\n".join(shown).strip()


def _run(arguments: list[str], shelf: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"LIKEWISE_SPACES": str(shelf)},
    )
