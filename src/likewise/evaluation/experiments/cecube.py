"""The experiments of paper 001 [sec VI]: traffic by interest and composition, delay compared with JTangCSPS; and ours.

Traffic is the number of notifications that customers receive (figure 7). Delay is that of a composite subscription
(figure 8): hops to the roots of its members, times the same latency for both systems, plus the measured time of
splitting and indexing it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.overlay import Compound, Cube, Key, Peer, ProfileTopic, Ring, RingSettings, decompose, key_of
from likewise.overlay.cube import Pairing, Plane, Subscriber
from likewise.overlay.simulation import OverlayTrial, conjunction, play_trial, static_ring

LATENCY = 50.0
"""Milliseconds per hop, for all systems."""

TOPICS = 28
"""Topics of the traffic experiment. The paper gives no number; with 28, a customer wants 5/28 = 18 % of all events."""


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Both figures of the paper, and our own measurements."""
    seed = int(settings.options.get("seed", "1"))
    traffic = _traffic(seed, publications=1000 if settings.quick else 4000)
    settings.say("traffic measured")
    sizes = (500, 1000) if settings.quick else (500, 1000, 10_000)
    delay = _delay(seed, sizes=sizes, sample=60 if settings.quick else 300)
    settings.say("delay measured")
    hops = _hops(seed, sizes=(100, 1000, 10_000) if settings.quick else (100, 1000, 10_000, 100_000))
    reports = [traffic, delay, hops, *_ours(settings, seed)]
    if settings.out is not None:
        _draw(settings.out, traffic, delay)
    return reports


# figure 7


def _traffic(seed: int, *, publications: int) -> ExperimentReport:
    """200 composites of five primitives; what customers receive by flooding, by topic, and by composite."""
    chance = random.Random(seed)
    topics = [key_of(f"topic {number}") for number in range(TOPICS)]
    plane, cube = Plane(), Cube()
    for number in range(200):
        customer = Subscriber(f"customer {number}", key_of(f"customer {number}"))
        wanted = tuple(chance.sample(topics, 5))
        for topic in wanted:
            plane.subscribe(topic, customer)
        cube.index(key_of(f"composite {number}"), wanted, Pairing("and"), customer)
    flooded = by_topic = by_composite = 0
    for _ in range(publications):
        topic = chance.choice(topics)
        flooded += 200
        by_topic += len(plane.scan(topic))
        by_composite += sum(cube.lower(composite, topic, "E1 and E2") == 0 for composite in cube.composites_of(topic))
    rows: list[Row] = [
        {"system": "flooding", "notifications": flooded, "reduction": 0.0, "paper": 0.0},
        {"system": "topics", "notifications": by_topic, "reduction": 1 - by_topic / flooded, "paper": 0.82},
        {
            "system": "composites",
            "notifications": by_composite,
            "reduction": 1 - by_composite / by_topic,
            "paper": 0.65,
        },
    ]
    notes = [
        f"{publications} publications, 200 customers, {TOPICS} topics; each reduction is against the row above",
        "composites: flags of the cube alone, as in the paper, raised again after every match",
    ]
    return ExperimentReport("Notifications that customers receive [001 figure 7]", rows, notes)


# figure 8


class Hops:
    """Counts hops in a stable ring; nodes are created when a route reaches them."""

    def __init__(self, count: int) -> None:
        self.ids = [key_of(f"node {number}") for number in range(count)]
        self._known = static_ring(self.ids, half=8)
        self._rings: dict[Key, Ring] = {}

    def _ring(self, id: Key) -> Ring:
        ring = self._rings.get(id)
        if ring is None:
            ring = self._rings[id] = Ring(Peer(id), RingSettings(maintain=False))
            ring.join_static(*self._known(id))
        return ring

    def route(self, start: Key, key: Key) -> tuple[Key, int]:
        """The root of a key and the hops to it."""
        at, count = self._ring(start), 0
        while (peer := at.next_hop(key)) is not None:
            at, count = self._ring(peer.id), count + 1
        return at.me.id, count


def cecube_delay(hops: Hops, start: Key, tree: ProfileTopic | Compound) -> int:
    """Hops until every member is at its root; both members of a composite are sent at once."""
    root, count = hops.route(start, tree.key)
    if isinstance(tree, ProfileTopic):
        return count
    return count + max(cecube_delay(hops, root, member) for member in tree.members)


def jtang_delay(hops: Hops, start: Key, topics: Sequence[Key]) -> int:
    """Hops until the composite tree has passed every primitive and is back at the first."""
    first, total = hops.route(start, topics[0])
    at = first
    for topic in topics[1:]:
        at, count = hops.route(at, topic)
        total += count
    return total + hops.route(at, first)[1]


def _delay(seed: int, *, sizes: Sequence[int], sample: int) -> ExperimentReport:
    rows: list[Row] = []
    for nodes in sizes:
        hops = Hops(nodes)
        for members in (2, 5, 10, 20):
            chance = random.Random(seed)
            ours, jtang, building = [], [], []
            for number in range(sample):
                names = [f"topic {chance.randrange(20 * nodes)}" for _ in range(members)]
                start = chance.choice(hops.ids)
                wanted = conjunction(f"c{number}", names, within=None)
                began = time.perf_counter()
                tree = decompose(wanted)
                building.append((time.perf_counter() - began) * 1000)
                ours.append(cecube_delay(hops, start, tree) * LATENCY)
                jtang.append(jtang_delay(hops, start, [key_of(name) for name in names]) * LATENCY)
            built = mean(building)
            rows.append(
                {
                    "nodes": nodes,
                    "primitives": members,
                    "CECube, ms": mean(ours) + built,
                    "JTangCSPS, ms": mean(jtang) + built,
                    "of it building, ms": built,
                }
            )
    notes = [
        f"hops x {LATENCY:.0f} ms for both systems, plus the measured time of decomposing; a sample of {sample} "
        "composites for each row",
        "CECube: members of a composite are routed at once, so a balanced tree has log2(primitives) levels",
        "JTangCSPS, as 001 describes it: the tree is built on the way past all primitives, one after the other",
    ]
    return ExperimentReport("Delay of a composite subscription [001 figure 8]", rows, notes)


def _hops(seed: int, *, sizes: Sequence[int]) -> ExperimentReport:
    rows: list[Row] = []
    for nodes in sizes:
        hops, chance = Hops(nodes), random.Random(seed)
        counts = [hops.route(chance.choice(hops.ids), key_of(f"key {number}"))[1] for number in range(300)]
        rows.append({"nodes": nodes, "hops": mean(counts), "most": max(counts), "log16 of nodes": math.log(nodes, 16)})
    return ExperimentReport("Hops to a root", rows, ["300 random keys from random nodes"])


# ours


def _ours(settings: ExperimentSettings, seed: int) -> list[ExperimentReport]:
    # With few events there must be few topics, or no composite completes.
    nodes, events, topics = (40, 200, 30) if settings.quick else (100, 1000, 200)
    base = OverlayTrial(nodes=nodes, events=events, topics=topics, compare=True, seed=seed)
    churn = [(f"{100 * share:.0f} % a minute", replace(base, churn=share)) for share in (0.0, 0.01, 0.05, 0.1)]
    copies = [(f"{count} copies", replace(base, copies=count)) for count in (0, 1, 2)]
    rooms = replace(base, members=2, topics=20, rooms=50)
    split = [("split by room", rooms), ("not split", replace(rooms, spread=False))]
    cases = (("Under churn", churn), ("What copies cost", copies), ("Load with and without splitting", split))
    reports = []
    for title, trials in cases:
        rows: list[Row] = []
        for name, trial in trials:
            rows.append({"case": name, **play_trial(trial).figures})
            settings.say(f"{title}: {name}")
        reports.append(ExperimentReport(title, rows, ["simulated, 5 to 40 ms a hop; everything follows from the seed"]))
    return reports


def _draw(folder: Path, traffic: ExperimentReport, delay: ExperimentReport) -> None:
    """Both figures as PNG."""
    from likewise.charts import save

    folder.mkdir(parents=True, exist_ok=True)
    counted = [{"system": row["system"], "notifications": row["notifications"]} for row in traffic.rows]
    shape = {"x": _axis("system", "nominal"), "y": _axis("notifications", "quantitative")}
    save(_chart(counted, "bar", shape, traffic.title), folder / "traffic.png")
    lines = [
        {"primitives": row["primitives"], "delay": row[f"{system}, ms"], "system": f"{system}, {row['nodes']} nodes"}
        for row in delay.rows
        for system in ("CECube", "JTangCSPS")
    ]
    shape = {
        "x": _axis("primitives", "quantitative"),
        "y": _axis("delay", "quantitative"),
        "color": _axis("system", "nominal"),
    }
    save(_chart(lines, "line", shape, delay.title), folder / "delay.png")


def _axis(field: str, kind: str) -> dict[str, str]:
    return {"field": field, "type": kind}


def _chart(rows: Sequence[Row], mark: str, shape: dict[str, dict[str, str]], title: str) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "width": 480,
        "height": 280,
        "data": {"values": [dict(row) for row in rows]},
        "mark": mark,
        "encoding": shape,
    }


experiment = Experiment("cecube", "traffic and delay of composites over a ring [001 figures 7, 8]", run, ("seed",))
