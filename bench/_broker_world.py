"""What the benchmark of the broker runs on: subscriptions, events with the right answers, and a broker process."""

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

SAID = (
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
"""What publishers say."""
ASKED = (
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
"""What subscribers ask for, in the same order."""
PLACES = tuple(f"room {number}" for number in range(100))
Rows = list[dict[str, object]]


def subscriptions(count: int) -> str:
    """Approximate subscriptions, each for one kind of event in one place."""
    return "\n".join(
        f"s{number}: {{type~ = {ASKED[number % 10]}~, place = {PLACES[number // 10 % 100]}}}" for number in range(count)
    )


@dataclass(frozen=True)
class Feed:
    """Events as JSON lines, and the subscription that each one is meant for."""

    lines: list[bytes]
    meant: list[str]


def feed(count: int, *, subscribed: int = 1000, seed: int = 1) -> Feed:
    """Events at random over kinds and places; the id of the event with number n is `n`."""
    chance, lines, meant = random.Random(seed), [], []
    for number in range(count):
        which = chance.randrange(subscribed)
        kind, place = SAID[which % 10], PLACES[which // 10 % 100]
        attributes = {"type": kind, "place": place, "value": chance.randrange(100)}
        lines.append(json.dumps({"id": str(number), "attributes": attributes}, separators=(",", ":")).encode())
        meant.append(f"s{which}")
    return Feed(lines, meant)


@dataclass
class Served:
    """A broker in a process of its own."""

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
        """A metric as it stands."""
        with self.client() as client:
            text = client.get("/metrics").text
        found = [line.split()[-1] for line in text.splitlines() if line.split(" ")[0] in (name, f"{name}_total")]
        return float(found[0]) if found else 0.0

    def settle(self, *, timeout: float = 120) -> None:
        """Until all that was accepted is matched."""
        deadline = time.monotonic() + timeout
        while self.metric("likewise_backlog_records") and time.monotonic() < deadline:
            time.sleep(0.05)

    def megabytes(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024

    def seconds(self) -> float:
        """Processor time."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """As a power cut would."""
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
    """Wait until the broker has compiled what it needs; a first start on a machine takes a while."""
    deadline = time.monotonic() + 300
    while not served.metric("likewise_warm") and time.monotonic() < deadline:
        time.sleep(0.2)


def _drain(served: Served) -> None:
    assert served.process.stderr is not None
    for raw in served.process.stderr:
        if len(served.logs) < 10_000:
            served.logs.append(raw.decode())


def stop(served: Served) -> None:
    """In order, whatever state it is in."""
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


def many_files() -> None:
    """Let this process open as many sockets as the system lets it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def say(text: str) -> None:
    """Progress, beside the table."""
    print(f"broker: {text}", file=sys.stderr)
