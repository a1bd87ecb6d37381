"""Status of a node (ring, topics, composites, traffic), and the explanation of a pattern's tree."""

from __future__ import annotations

from typing import Any

from likewise.overlay.cube.decompose import Compound, ProfileTopic, compounds_of, topics_of
from likewise.overlay.node.node import OverlayNode
from likewise.overlay.ring.ids import short


def status_of(node: OverlayNode) -> dict[str, Any]:
    """The status of a node as plain values, for JSON."""
    ring = node.ring
    return {
        "id": node.me.id.hex(),
        "address": node.me.address,
        "joined": ring.joined,
        "neighbours": [{"id": short(peer.id), "address": peer.address} for peer in ring.leaves],
        "dead": [{"id": short(peer.id), "address": peer.address} for peer in ring.dead],
        "routing table": len(ring.table),
        "catalogue": len(node.catalogue),
        "not matched here": dict(getattr(node.classify, "unsupported", {})),
        "topics": [short(event) for event, _ in node.plane.cells],
        "composites": [
            {
                "key": short(key),
                "relationships": node.cube.relationships(key),
                "awaited": node.cube.vector(key),
            }
            for key in dict.fromkeys(key for key, _, _ in node.cube.cells)
        ],
        "in one piece": sum(len(led.rendezvous.ordered) for led in node.replication.led.values()),
        "led": len(node.replication.led),
        "copies": len(node.replication.stores) - len(node.replication.led),
        "subscriptions": len(node.subscriptions),
        "under way": len(node.outbox),
        "counts": dict(node.counts + node.replication.counts + ring.counts + node.outbox.counts),
    }


def explain_tree(tree: ProfileTopic | Compound, *, depth: int = 0) -> list[str]:
    """The tree of a subscription as indented lines, each a member and its rendezvous."""
    indent = "  " * depth
    if isinstance(tree, ProfileTopic):
        where = f"split by {tree.split}, no single place" if tree.split else f"at {short(tree.key)}"
        return [f"{indent}topic {tree.name} {where}"]
    split = f", one place for each {tree.split}" if tree.split else ""
    how = "in one piece" if tree.join is None else tree.join.text
    lines = [f"{indent}composite at {short(tree.key)}: {how}{split}"]
    for member in tree.members:
        lines += explain_tree(member, depth=depth + 1)
    return lines


def summary_of(tree: ProfileTopic | Compound) -> dict[str, int]:
    """The number of topics and composites of a subscription."""
    return {"topics": len(list(topics_of(tree))), "composites": len(list(compounds_of(tree)))}
