"""The house rules that tools do not check."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

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
        "import sys, likewise.cli._app as app\n"
        "app.build()\n"
        "heavy = [m for m in ('numba', 'pyspark', 'scipy', 'pandas', 'altair', 'rdflib') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
