"""Nodes in separate processes over real sockets, killed and frozen under load."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import LikewiseError, MissingError
from likewise.events import Event
from likewise.overlay.net.clients import OverlayClient
from likewise.overlay.net.frames import address_of, dial, frame, read_frame, shut
from likewise.overlay.net.host import NodeHost
from likewise.overlay.net.identity import context_of, init_authority, init_node, own_id


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Processes:
    """Nodes in separate processes."""

    def __init__(self, folder: Path, count: int) -> None:
        init_authority(folder / "fed")
        self.folder = folder
        self.client = folder / "client"
        init_node(self.client, folder / "fed")
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        self.running: list[subprocess.Popen[bytes]] = []
        for number, address in enumerate(self.addresses):
            init_node(folder / f"n{number}", folder / "fed")
            self.start(number, address)
        for address in self.addresses:
            _await_port(address)

    def start(self, number: int, address: str) -> None:
        command = [sys.executable, "-m", "likewise", "node", "--listen", address]
        command += ["--state", str(self.folder / f"n{number}")]
        if number:
            command += ["--join", self.addresses[0]]
        with (self.folder / f"log{number}").open("wb") as log:
            self.running.append(subprocess.Popen(command, stdout=log, stderr=log))

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


LONG = 600
"""Seconds after which a test fails; long, because the machine may be busy."""


def _await_port(address: str) -> None:
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        try:
            socket.create_connection(address_of(address), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"no node at {address}")


PATTERN = "pair: {kind = smoke} as a and {kind = heat} as b where a.room = b.room"


async def under_load(world: Processes, *, rooms: int, faults: dict[int, list[tuple[str, int]]]) -> None:
    """Publish a pair of events for each room at two nodes; faults happen before the room with their number."""
    sub, first, second = world.addresses[1], world.addresses[2], world.addresses[0]
    seen: dict[str, int] = {}
    async with (
        OverlayClient([sub], state=world.client, timeout=LONG) as listener,
        OverlayClient([first, second], state=world.client, timeout=LONG) as left,
        OverlayClient([second, first], state=world.client, timeout=LONG) as right,
    ):
        subscription = await listener.subscribe(PATTERN, "pair")
        waiting = []
        for room in range(rooms):
            for fault, number in faults.get(room, ()):
                os.kill(world.running[number].pid, getattr(signal, fault))
            for client, kind in ((left, "smoke"), (right, "heat")):
                waiting.append(client.send(Event(f"{kind}{room}", (("kind", kind), ("room", f"r{room}")))))
            await asyncio.sleep(0.03)
        await asyncio.gather(*waiting)

        async def collect() -> None:
            async for report in listener.reports(subscription):
                room = str(report.events[0].attributes["room"][0])
                seen[room] = seen.get(room, 0) + 1
                if len(seen) == rooms:
                    return

        await asyncio.wait_for(collect(), LONG)
    assert set(seen.values()) == {1}


def test_a_killed_node_loses_nothing_acknowledged(tmp_path: Path) -> None:
    world = Processes(tmp_path, 4)
    try:
        asyncio.run(under_load(world, rooms=40, faults={15: [("SIGKILL", 3)]}))
        check_commands(world)
    finally:
        world.stop()


def check_commands(world: Processes) -> None:
    """`likewise subscribe --node` shows what is published at another node, and `likewise publish --node` publishes."""
    state = ["--state", str(world.client)]
    done = threading.Event()

    async def keep_publishing() -> None:
        async with OverlayClient(world.addresses[:1], state=world.client) as client:
            while not done.is_set():
                await client.publish(Event("e", (("kind", "cold"),)))
                await asyncio.sleep(0.05)

    def publish() -> None:
        asyncio.run(keep_publishing())

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish)
        try:
            ask = ["subscribe", "{kind = cold}", "--count", "1", "--timeout", str(LONG), "--node", world.addresses[2]]
            shown = CliRunner().invoke(build(), [*ask, "--json", *state])
        finally:
            done.set()
        publishing.result()
    assert json.loads(shown.stdout)["events"][0]["attributes"] == {"kind": "cold"}
    sent = CliRunner().invoke(build(), ["publish", "kind=cold", "--node", world.addresses[0], *state])
    assert (sent.exit_code, sent.stdout) == (0, "1 event acknowledged\n")
    refused = CliRunner().invoke(build(), ["publish", "kind=cold", "--node", world.addresses[0]])
    assert "--state" in str(refused.exception) + refused.output


@pytest.mark.slow
def test_eight_processes_two_killed_one_frozen_under_load(tmp_path: Path) -> None:
    world = Processes(tmp_path, 8)
    faults = {30: [("SIGKILL", 4)], 60: [("SIGSTOP", 5)], 90: [("SIGKILL", 6)], 150: [("SIGCONT", 5)]}
    try:
        asyncio.run(under_load(world, rooms=250, faults=faults))
    finally:
        world.stop()


def test_an_id_is_the_hash_of_the_key_and_survives_restarts(tmp_path: Path) -> None:
    init_authority(tmp_path / "fed")
    made = init_node(tmp_path / "a", tmp_path / "fed")
    assert made == own_id(tmp_path / "a")
    assert made != init_node(tmp_path / "b", tmp_path / "fed")
    with pytest.raises(LikewiseError, match="already"):
        init_node(tmp_path / "a", tmp_path / "fed")
    with pytest.raises(LikewiseError, match="no federation"):
        init_node(tmp_path / "c", tmp_path / "nowhere")
    with pytest.raises(LikewiseError, match="no certificate"):
        own_id(tmp_path / "nowhere")


def test_foreign_certificates_and_malformed_frames_are_refused_and_counted(tmp_path: Path) -> None:
    for name in ("fed", "other"):
        init_authority(tmp_path / name)
    init_node(tmp_path / "node", tmp_path / "fed")
    init_node(tmp_path / "friend", tmp_path / "fed")
    init_node(tmp_path / "stranger", tmp_path / "other")

    async def scenario() -> None:
        listen = f"127.0.0.1:{free_port()}"
        host = NodeHost(tmp_path / "node", listen=listen)
        await host.start()
        try:
            await intrusions(host, listen)
        finally:
            await host.stop()

    async def intrusions(host: NodeHost, listen: str) -> None:
        async def intrude() -> None:
            reader, writer = await dial(listen, context_of(tmp_path / "stranger", server=False))
            try:
                writer.write(frame([b"hello"]))
                await read_frame(reader)
            finally:
                await shut(writer)

        with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
            await intrude()
        for junk in (b"\xff\xff\xff\xff", frame([b"junk"]), frame([]), frame([b"\x00" * 9, b""])):
            before = host.counts["refused"]
            _, writer = await dial(listen, context_of(tmp_path / "friend", server=False))
            try:
                writer.write(junk)
                async with asyncio.timeout(LONG):
                    while host.counts["refused"] == before:
                        await asyncio.sleep(0.01)
            finally:
                await shut(writer)
        assert host.counts["refused"] == 4
        async with OverlayClient([listen], state=tmp_path / "friend", timeout=LONG) as client:
            assert (await client.status())["joined"]
            with pytest.raises(LikewiseError):
                await client.subscribe("p: {a = ", "p")
            with pytest.raises(LikewiseError, match="no subscription named 'q'"):
                await client.subscribe("p: {a = 1}", "q")
            assert await client.subscribe("p: {a = 1}", "p")

    asyncio.run(scenario())


def test_a_client_does_not_wait_for_ever(tmp_path: Path) -> None:
    """The node accepts connections but never answers, like one that cannot join."""
    init_authority(tmp_path / "fed")
    for name in ("node", "client"):
        init_node(tmp_path / name, tmp_path / "fed")
    event = Event("e", (("kind", "smoke"),))

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await shut(writer)

    async def scenario() -> None:
        context = context_of(tmp_path / "node", server=True)
        server = await asyncio.start_server(silent, "127.0.0.1", 0, ssl=context)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, OverlayClient([address], state=tmp_path / "client", timeout=0.05) as client:
            for wait in (
                client.subscribe("p: {kind = smoke}", "p"),
                client.publish(event),
                client.publish_all([(b"1", event), (b"2", event)]),
                client.status(),
            ):
                with pytest.raises(MissingError, match="gave no answer"):
                    await wait

    asyncio.run(scenario())


def test_a_client_waits_for_a_node_that_is_starting(tmp_path: Path) -> None:
    init_authority(tmp_path / "fed")
    for name in ("node", "client"):
        init_node(tmp_path / name, tmp_path / "fed")
    listen, messages = f"127.0.0.1:{free_port()}", list[str]()

    async def scenario() -> None:
        host, seen = NodeHost(tmp_path / "node", listen=listen), asyncio.Event()

        def on_wait(text: str) -> None:
            messages.append(text)
            seen.set()

        async def later() -> None:
            await seen.wait()
            await host.start()

        starting = asyncio.create_task(later())
        try:
            async with OverlayClient([listen], state=tmp_path / "client", on_wait=on_wait) as client:
                await client.publish(Event.of({"kind": "smoke"}))
        finally:
            await starting
            await host.stop()

    asyncio.run(scenario())
    assert messages == [f"no node answers yet at {listen}"]


def test_a_client_gives_up_where_no_node_is(tmp_path: Path) -> None:
    init_authority(tmp_path / "fed")
    init_node(tmp_path / "client", tmp_path / "fed")

    async def scenario() -> None:
        async with OverlayClient([f"127.0.0.1:{free_port()}"], state=tmp_path / "client", timeout=0.5):
            raise AssertionError("there is no node")

    with pytest.raises(MissingError, match="no node answers"):
        asyncio.run(scenario())


@pytest.mark.slow
def test_eight_nodes_as_the_readme_shows_them(tmp_path: Path) -> None:
    """The commands are run as written, except for the ports, in an empty folder."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = [block for _, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.S | re.M)]
    start = next(number for number, block in enumerate(blocks) if "likewise node init" in block)
    nodes, publish, shown = blocks[start : start + 3]
    ports = [free_port() for _ in range(8)]
    script = nodes.replace("127.0.0.1:700$n", "127.0.0.1:${port[n]}").replace("127.0.0.1:7001", f"127.0.0.1:{ports[0]}")
    script = f"port=(0 {' '.join(map(str, ports))})\n{script}"
    for number in (3, 5, 8):
        script = script.replace(f"127.0.0.1:700{number}", f"127.0.0.1:{ports[number - 1]}")
        publish = publish.replace(f"127.0.0.1:700{number}", f"127.0.0.1:{ports[number - 1]}")
    program = f'likewise() {{ {shlex.quote(sys.executable)} -m likewise "$@"; }}\n'
    with subprocess.Popen(
        ["bash", "-c", program + script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as first:
        assert first.stdout is not None
        assert first.stderr is not None
        try:
            assert any(line == "following alarm\n" for line in first.stderr)
            subprocess.run(["bash", "-c", program + publish], cwd=tmp_path, check=True, timeout=LONG)
            assert next(line for line in first.stdout if line.startswith("alarm")) == shown
        finally:
            os.killpg(first.pid, signal.SIGKILL)
