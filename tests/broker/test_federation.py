"""A broker as an entry of a federation: its events reach the nodes, each once, through restarts of either side."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from likewise.broker import BrokerSettings
from likewise.broker.store.log import set_meta
from likewise.overlay.net import NodeHost, OverlayClient, OverlayEntry, init_authority, init_node

from .conftest import LONG, Running, running


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Certificates for a node, a subscriber and the broker, and a free port."""
    init_authority(tmp_path / "fed")
    for name in ("node", "subscriber", "entry"):
        init_node(tmp_path / name, tmp_path / "fed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def kinds(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "attributes": {"kind": name.rstrip("0123456789")}} for name in names]


def sent(served: Running, count: int) -> None:
    """Wait until `count` events of this run were forwarded."""
    end = time.monotonic() + LONG
    while served.broker.counts["federation_sent"] < count:
        assert time.monotonic() < end, served.broker.checks()
        time.sleep(0.01)


def test_what_a_broker_accepts_is_detected_in_its_federation(settings: BrokerSettings, tmp_path: Path, address: str):
    def publish(*names: str, again: bool = False) -> None:
        with running(settings, federation=OverlayEntry([address], state=tmp_path / "entry")) as served:
            served.client().publish(kinds(*names))
            sent(served, len(names) + 2 * again)
            served.broker.log.write(lambda connection: set_meta(connection, "federation", "0")).result()

    async def follow() -> list[list[str]]:
        host = NodeHost(tmp_path / "node", listen=address)
        await host.start()
        try:
            async with OverlayClient([address], state=tmp_path / "subscriber") as subscriber:
                pair = await subscriber.subscribe("pair: {kind = smoke} then {kind = heat}", "pair")
                reports = subscriber.reports(pair)
                await asyncio.to_thread(publish, "smoke1", "heat1")
                found = [await asyncio.wait_for(anext(reports), LONG)]
                # The position was set back: the first two are sent once more, and known.
                await asyncio.to_thread(publish, "heat2", again=True)
                found.append(await asyncio.wait_for(anext(reports), LONG))
            assert host.node.counts["published"] == 5
        finally:
            await host.stop()
        return [[event.id for event in report.events] for report in found]

    assert asyncio.run(follow()) == [["smoke1", "heat1"], ["smoke1", "heat2"]]


def test_without_a_node_the_broker_goes_on_and_the_log_waits(settings: BrokerSettings, tmp_path: Path, address: str):
    async def serve_late(served: Running) -> None:
        host = NodeHost(tmp_path / "node", listen=address)
        await host.start()
        try:
            await asyncio.to_thread(sent, served, 2)
        finally:
            await host.stop()

    with running(settings, federation=OverlayEntry([address], state=tmp_path / "entry")) as served:
        client = served.client()
        client.publish(kinds("smoke1", "heat1"))
        end = time.monotonic() + LONG
        while served.broker.checks()["federation"] == "ok":
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(client.list_events()["events"]) == 2
        asyncio.run(serve_late(served))
        while served.broker.checks()["federation"] != "ok":
            assert time.monotonic() < end
            time.sleep(0.01)
