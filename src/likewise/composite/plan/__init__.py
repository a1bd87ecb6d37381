"""Plans: what a pattern means, with every name resolved and each condition placed."""

from likewise.composite.plan.nodes import LeafNode, Part

__all__ = ["LeafNode", "Part"]
