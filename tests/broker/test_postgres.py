"""The same broker over PostgreSQL, which is started, stopped and started again."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from likewise.broker import Broker, BrokerClient, RemoteError
from likewise.errors import BuildError

from .conftest import running

_FOUND = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
BIN = Path(_FOUND[-1]) if _FOUND else None


class Postgres:
    """A PostgreSQL server in a folder; it refuses to run as root, so it runs as another user then."""

    def __init__(self, folder: Path) -> None:
        assert BIN is not None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        folder.mkdir()
        self._prefix: list[str] = []
        if os.getuid() == 0:
            self._prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(folder, "postgres", "postgres")
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "likewise", "-N")

    @property
    def url(self) -> str:
        return f"postgresql://likewise@127.0.0.1:{self.port}/postgres"

    def _run(self, *words: str) -> None:
        command = [*self._prefix, str(BIN / words[0]), *words[1:]]  # type: ignore[operator]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=self.folder)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if BIN is None or shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL is not installed")
    import tempfile

    parent = Path(tempfile.mkdtemp(prefix="likewise-pg-"))
    parent.chmod(0o755)
    try:
        made = Postgres(parent / "server")
        made.start()
    except (subprocess.CalledProcessError, LookupError) as error:
        shutil.rmtree(parent, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot run here: {error}")
    yield made
    made.stop()
    shutil.rmtree(parent, ignore_errors=True)


def test_postgres_holds_the_log_and_comes_back(settings, postgres):
    settings = replace(settings, database=postgres.url)
    with running(settings) as served:
        client = served.client()
        client.subscribe("all: {number >= 0}")
        client.publish([{"attributes": {"number": 1}}])
        with pytest.raises(BuildError, match="another broker is using"):
            Broker(settings).database.open()
        postgres.stop()
        with pytest.raises(RemoteError) as refused:
            client.publish([{"attributes": {"number": 2}}], key="two")
        assert refused.value.status == 503
        postgres.start()
        _publish_until_stored(client)
        served.settle()
        assert served.broker.checks()["storage"] == "ok"
        found = client.list_notifications()["notifications"]
        assert [notification["events"][0]["attributes"]["number"] for notification in found] == [1, 2]
    with running(settings) as served:
        client = served.client()
        client.publish([{"attributes": {"number": 3}}])
        served.settle()
        assert len(client.list_notifications()["notifications"]) == 3


def _publish_until_stored(client: BrokerClient) -> None:
    for _ in range(300):
        with contextlib.suppress(RemoteError):
            client.publish([{"attributes": {"number": 2}}], key="two")
            return
        time.sleep(0.1)
    raise AssertionError("the broker did not recover")
