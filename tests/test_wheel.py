"""The wheel: built as a release would be, and tried from an empty folder without the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EVENT = '{"id": "e1", "attributes": {"device": "elevator"}}\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but what the wheel installs."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(place), str(ROOT)], capture_output=True, text=True, check=False
    )
    if "hatchling" in built.stderr and "No matching distribution" in built.stderr:
        pytest.skip("no build backend to be had: there is no package index")
    assert built.returncode == 0, built.stderr
    [wheel] = place.glob("*.whl")
    target = place / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def test_every_data_file_is_in_it(site: Path) -> None:
    def files(package: Path) -> set[str]:
        plain = (path for path in package.rglob("*") if path.is_file())
        return {str(path.relative_to(package)) for path in plain if path.suffix not in (".pyc", ".nbi", ".nbc")}

    assert files(site / "likewise") == files(ROOT / "src" / "likewise")


def test_the_command_matches_by_meaning(site: Path, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENT)
    (tmp_path / "wishes.lw").write_text("s: {device~ = lift~}\n")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "likewise", "match", "events.jsonl", "wishes.lw"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "s matches e1 with" in done.stdout
    assert '"device: elevator" answers device~ = lift~' in done.stdout
