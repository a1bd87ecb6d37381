"""Information content: how much it says that a text names this synset [002 sec 5.3.2, Resnik]."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.errors import BuildError
from likewise.semantics.wordnet.files import PARTS
from likewise.semantics.wordnet.wordnet import HYPERNYMS, WordNet

_TAXONOMIES = ("noun", "verb")


class InformationContent:
    """-log of the share of a taxonomy's mass that lies at or below each synset.

    The mass of a synset flows to each of its hypernyms along every path, as in the published
    information-content files of WordNet::Similarity, whose values it reproduces with no smoothing.
    """

    def __init__(self, wordnet: WordNet, mass: NDArray[np.float64]) -> None:
        if mass.shape != (len(wordnet),):
            raise BuildError(f"{len(mass)} masses for {len(wordnet)} synsets", hint="give one mass for each synset")
        self._wordnet = wordnet
        self.parts = wordnet.parts()
        self.mass = self._flow(mass)
        self.values = self._content()

    @classmethod
    def from_senses(cls, wordnet: WordNet, *, smoothing: float = 0.0) -> InformationContent:
        """From WordNet's own sense-tagged counts; smoothing lends every synset that much."""
        return cls(wordnet, wordnet.tagged().astype(np.float64) + np.float64(smoothing))

    @classmethod
    def from_words(cls, wordnet: WordNet, counts: Mapping[str, float], *, smoothing: float = 0.0) -> InformationContent:
        """From the words of a corpus: the count of a word is shared out evenly among its senses."""
        mass = np.full(len(wordnet), smoothing)
        for word, count in counts.items():
            senses = [sense.synset for sense in wordnet.senses(word)]
            mass[senses] += count / max(len(senses), 1)
        return cls(wordnet, mass)

    def ancestors(self, synset: int) -> NDArray[np.int32]:
        """The synset itself and all that is more general."""
        start, stop = self._closure.indptr[synset], self._closure.indptr[synset + 1]
        found: NDArray[np.int32] = self._closure.indices[start:stop]
        return found

    @cached_property
    def _closure(self) -> sparse.csr_array:
        """Row: a synset; columns: its ancestors and itself."""
        size = len(self._wordnet)
        reach = layer = sparse.eye_array(size, format="csr", dtype=np.int64)
        while (layer := layer @ self._parents).nnz:
            reach = reach + layer
        return sparse.csr_array(reach)

    @cached_property
    def _parents(self) -> sparse.csr_array:
        size = len(self._wordnet)
        children, parents = self._wordnet.edges(HYPERNYMS)
        # A verb synset of WordNet 3.0 that is its own ancestor would otherwise feed itself for ever.
        keep = self._acyclic(children, parents)
        ones = np.ones(int(keep.sum()), np.int64)
        return sparse.csr_array((ones, (children[keep], parents[keep])), shape=(size, size))

    def _acyclic(self, children: NDArray[np.int32], parents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which pointers lie on no cycle."""
        size = len(self._wordnet)
        graph = sparse.csr_array((np.ones(len(children)), (children, parents)), shape=(size, size))
        _, component = sparse.csgraph.connected_components(graph, directed=True, connection="strong")
        return np.asarray(component[children] != component[parents])

    def _flow(self, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        up = sparse.csr_array(self._parents.T)
        total, moved = mass.astype(np.float64), mass.astype(np.float64)
        while (moved := up @ moved).any():
            total = total + moved
        return total

    def _content(self) -> NDArray[np.float64]:
        """Roots of one part of speech hang under a common root whose content is 0."""
        content = np.full(len(self._wordnet), np.inf)
        orphans = np.asarray(self._parents.sum(axis=1)).ravel() == 0
        for part in _TAXONOMIES:
            members = self._wordnet.parts() == PARTS.index(part)
            whole = self.mass[members & orphans].sum()
            seen = members & (self.mass > 0)
            content[seen] = -np.log(self.mass[seen] / whole)
        return content
