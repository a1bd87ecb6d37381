"""The house rules that tools do not check."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import likewise

PACKAGES = sorted(
    [
        "likewise",
        *(
            f"likewise.{info.name}"
            for info in pkgutil.iter_modules(likewise.__path__)
            if info.name not in {"__main__", "cli"}
        ),
    ]
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_resolves(name: str) -> None:
    package = import_module(name)
    public = getattr(package, "__all__", [])
    for item in public:
        assert hasattr(package, item), f"{name}.{item}"


def test_the_core_imports_without_spark_and_extras() -> None:
    """A user without the extras can import the engine."""
    code = (
        "import sys\n"
        "for name in ('pyspark', 'pandas', 'onnxruntime', 'tokenizers', 'altair', 'gensim', 'typer', 'rich'):\n"
        "    sys.modules[name] = None\n"
        "import likewise, likewise.engine, likewise.testing\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command_starts_without_heavy_parts() -> None:
    """`likewise --help` must answer at once: no numba, pyspark or scipy on its way."""
    code = (
        "import sys, likewise.cli.app as app\n"
        "app.build()\n"
        "heavy = [m for m in ('numba', 'pyspark', 'scipy', 'pandas', 'altair', 'rdflib') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SOURCE = Path(likewise.__file__).parent


def test_no_class_name_stands_twice() -> None:
    """A name tells which class is meant, wherever it is read."""
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_packages_meet_at_their_facades() -> None:
    """Nobody imports another package's inner modules.

    `evaluation` has one public module per experiment; the command and the experiments may use an adapter's modules.
    """
    public = {"likewise.semantics.nearest"}
    adapters = {"broker", "overlay", "pipeline"}
    reached = []
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("likewise."):
                _, package, *inner = (node.module or "").split(".")
                facade = SOURCE.joinpath(package, *inner).is_dir()
                on_top = own in ("cli", "evaluation") and package in adapters
                allowed = facade or on_top or node.module in public or package in (own, "evaluation")
                if inner and not allowed:
                    reached.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.module}")
    assert reached == []


def test_no_room_is_crowded() -> None:
    """A reader finds a module by looking: at most fifteen in one folder."""
    folders = [SOURCE, *(folder for folder in SOURCE.rglob("*") if folder.is_dir())]
    assert [str(folder.relative_to(SOURCE)) for folder in folders if len(list(folder.glob("*.py"))) > 15] == []


def test_the_big_packages_have_few_modules() -> None:
    """A line of code has a room that a stranger can guess: 120 modules for the four packages that all else rests on."""
    big = ("composite", "matching", "pipeline", "semantics")
    count = {name: sum(path.name != "__init__.py" for path in (SOURCE / name).rglob("*.py")) for name in big}
    assert sum(count.values()) <= 120, count


def test_the_paths_in_the_map_are_there() -> None:
    """docs/architecture.md names modules and rooms by their paths."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text)
    rooms = {folder.name for folder in SOURCE.rglob("*") if folder.is_dir()}
    missing = [one for one in named if not (SOURCE / one).exists() and one.strip("/") not in rooms]
    assert len(named) > 20
    assert [one for one in missing if not one.startswith("tests/")] == []
