"""What is missing is error before Spark is started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.errors import BuildError, MissingError
from likewise.pipeline.session import _await_connect_port, _check_java


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no Java in JAVA_HOME") as error:
        _check_java(str(tmp_path))
    assert "unset" in str(error.value.hint)


def test_without_any_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="Java 17"):
        _check_java(None)


def test_a_java_that_is_there_is_taken(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    _check_java(str(tmp_path))


def test_a_local_connect_server_needs_its_port() -> None:
    """Spark itself would fail with a Java trace."""
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BuildError, match=f"port {port}, which a local Spark Connect server needs, is in use"):
            _await_connect_port(port, patience=0)
    _await_connect_port(port, patience=0)


@pytest.mark.spark
def test_workers_of_a_plain_session_run_the_python_of_the_program(tmp_path: Path) -> None:
    """Without PYSPARK_PYTHON, Spark would run the `python3` of the path: here one without any package."""
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    program = """
from pyspark.sql import SparkSession
from likewise.pipeline import check, events_from_columns, match
from likewise.events import RecordMapping
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
table = spark.createDataFrame([("r1", 31.5)], "name string, temp double")
events = events_from_columns(table, RecordMapping(id="name", attributes=["temp"]))
print("found", [row.event_id for row in match(events, {"hot": "{temp > 30}"}).collect()], check(spark))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "found ['r1'] []" in run.stdout, run.stderr[-2000:]
