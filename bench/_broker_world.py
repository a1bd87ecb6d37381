"""The setup of the broker benchmark: subscriptions, events with their expected matches, and a broker process."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

PUBLISHED = (
    "car park",
    "energy usage",
    "automobile",
    "temperature reading",
    "physician",
    "noise level",
    "rainfall",
    "road traffic",
    "notebook computer",
    "illumination",
)
"""Event types in the words of publishers."""
SUBSCRIBED = (
    "parking lot",
    "electricity consumption",
    "car",
    "heat",
    "doctor",
    "sound",
    "rain",
    "vehicles on the street",
    "laptop",
    "light",
)
"""The same types in the words of subscribers."""
PLACES = tuple(f"room {number}" for number in range(100))
Rows = list[dict[str, object]]


def subscriptions(count: int) -> str:
    """Approximate subscriptions, each for one type of event in one place."""
    return "\n".join(
        f"s{number}: {{type~ = {SUBSCRIBED[number % 10]}~, place = {PLACES[number // 10 % 100]}}}"
        for number in range(count)
    )


@dataclass(frozen=True)
class Feed:
    """Events as JSON lines, and the subscription that each should match."""

    lines: list[bytes]
    meant: list[str]


def feed(count: int, *, subscribed: int = 1000, seed: int = 1) -> Feed:
    """Random events; the id of event number n is `n`."""
    chance, lines, meant = random.Random(seed), [], []
    for number in range(count):
        subscription = chance.randrange(subscribed)
        kind, place = PUBLISHED[subscription % 10], PLACES[subscription // 10 % 100]
        attributes = {"type": kind, "place": place, "value": chance.randrange(100)}
        lines.append(json.dumps({"id": str(number), "attributes": attributes}, separators=(",", ":")).encode())
        meant.append(f"s{subscription}")
    return Feed(lines, meant)


@dataclass
class Served:
    """A broker in its own process."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path
    logs: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120)

    def metric(self, name: str) -> float:
        """The current value of a metric."""
        with self.client() as client:
            text = client.get("/metrics").text
        found = [line.split()[-1] for line in text.splitlines() if line.split(" ")[0] in (name, f"{name}_total")]
        return float(found[0]) if found else 0.0

    def wait_until_matched(self, *, timeout: float = 120) -> None:
        """Wait until all accepted events are matched."""
        deadline = time.monotonic() + timeout
        while self.metric("likewise_backlog_records") and time.monotonic() < deadline:
            time.sleep(0.05)

    def megabytes(self) -> float:
        """Resident memory in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024

    def seconds(self) -> float:
        """Processor time in seconds."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)


def start(folder: Path, *options: str) -> Served:
    """Start a broker without tokens on a free port, and wait until it is ready."""
    command = [sys.executable, "-m", "likewise", "serve", "--folder", str(folder), "--port", "0", "--open", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    served = Served(process, "", folder)
    for raw in process.stderr:
        line = raw.decode()
        served.logs.append(line)
        if line.startswith("likewise broker on "):
            served.url = line.split()[-1]
        if '"started"' in line:
            break
    else:
        raise RuntimeError("the broker did not start: " + "".join(served.logs))
    threading.Thread(target=_drain, args=(served,), daemon=True).start()
    return served


def warm(served: Served) -> None:
    """Wait until the broker has compiled its kernels; the first start on a machine takes a while."""
    deadline = time.monotonic() + 300
    while not served.metric("likewise_warm") and time.monotonic() < deadline:
        time.sleep(0.2)


def _drain(served: Served) -> None:
    assert served.process.stderr is not None
    for raw in served.process.stderr:
        if len(served.logs) < 10_000:
            served.logs.append(raw.decode())


def stop(served: Served) -> None:
    """Stop the process with SIGTERM, or kill it after a minute."""
    if served.process.poll() is None:
        served.process.send_signal(signal.SIGTERM)
    try:
        served.process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        served.kill()


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    """A broker in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-bench-"))
    served = start(folder, *options)
    try:
        warm(served)
        yield served
    finally:
        stop(served)
        shutil.rmtree(folder, ignore_errors=True)


def raise_file_limit() -> None:
    """Raise the limit of open files, and so of sockets, to its maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def show_progress(text: str) -> None:
    """Print progress to stderr."""
    print(f"broker: {text}", file=sys.stderr)
