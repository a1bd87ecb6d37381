"""What is missing is error before Spark is started."""

from __future__ import annotations

import socket
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
