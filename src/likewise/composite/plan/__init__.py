"""Plans: patterns with every name resolved and each condition assigned to an operator."""

from likewise.composite.plan.nodes import LeafNode, Part

__all__ = ["LeafNode", "Part"]
