"""Information content of synsets [002 sec 5.3.2, Resnik], and distances between groups of synsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.errors import BuildError
from likewise.semantics.wordnet.files import PARTS
from likewise.semantics.wordnet.wordnet import HYPERNYMS, WordNet

_TAXONOMIES = ("noun", "verb")
"""The parts of speech with hypernyms; they are the first of `PARTS`."""


class InformationContent:
    """-log of the share of a taxonomy's mass at or below each synset.

    The mass of a synset is added to each of its hypernyms along every path. Without smoothing this gives the values of
    the published information-content files of WordNet::Similarity.
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
        """From WordNet's own sense-tagged counts; `smoothing` is added to every synset."""
        return cls(wordnet, wordnet.tagged().astype(np.float64) + np.float64(smoothing))

    @classmethod
    def from_words(cls, wordnet: WordNet, counts: Mapping[str, float], *, smoothing: float = 0.0) -> InformationContent:
        """From the words of a corpus: the count of a word is divided evenly among its senses."""
        mass = np.full(len(wordnet), smoothing)
        for word, count in counts.items():
            senses = [sense.synset for sense in wordnet.senses(word)]
            mass[senses] += count / max(len(senses), 1)
        return cls(wordnet, mass)

    def ancestors(self, synset: int) -> NDArray[np.int32]:
        """The synset itself and all its hypernyms."""
        start, stop = self._closure.indptr[synset], self._closure.indptr[synset + 1]
        ancestors: NDArray[np.int32] = self._closure.indices[start:stop]
        return ancestors

    @cached_property
    def _closure(self) -> sparse.csr_array:
        """A row per synset: its ancestors and itself."""
        size = len(self._wordnet)
        reach = layer = sparse.eye_array(size, format="csr", dtype=np.int64)
        while (layer := layer @ self._parents).nnz:
            reach = reach + layer
        return sparse.csr_array(reach)

    @cached_property
    def _parents(self) -> sparse.csr_array:
        size = len(self._wordnet)
        children, parents = self._wordnet.edges(HYPERNYMS)
        # One verb synset of WordNet 3.0 is its own ancestor, which would never end.
        keep = self._acyclic(children, parents)
        ones = np.ones(int(keep.sum()), np.int64)
        return sparse.csr_array((ones, (children[keep], parents[keep])), shape=(size, size))

    def _acyclic(self, children: NDArray[np.int32], parents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which pointers are not part of a cycle."""
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
        """The content of each synset; the roots of a part of speech have a common root with content 0."""
        content = np.full(len(self._wordnet), np.inf)
        orphans = np.asarray(self._parents.sum(axis=1)).ravel() == 0
        for part in _TAXONOMIES:
            members = self._wordnet.parts() == PARTS.index(part)
            total = self.mass[members & orphans].sum()
            seen = members & (self.mass > 0)
            content[seen] = -np.log(self.mass[seen] / total)
        return content


@dataclass(frozen=True, slots=True)
class SynsetGroup:
    """Synsets, and which of them (rows) are below which ancestors (columns)."""

    synsets: NDArray[np.int64]
    below: sparse.csc_array

    def under(self, ancestor: int) -> NDArray[np.int32]:
        """Positions of the synsets below an ancestor."""
        start, stop = self.below.indptr[ancestor], self.below.indptr[ancestor + 1]
        rows: NDArray[np.int32] = self.below.indices[start:stop]
        return rows


class SynsetTaxonomy:
    """The distance of Jiang and Conrath: IC(a) + IC(b) - 2 IC(lcs)."""

    def __init__(self, information: InformationContent) -> None:
        self._information = information

    def group(self, synsets: Sequence[int] | NDArray[np.int64]) -> SynsetGroup:
        """Synsets prepared for comparison."""
        ancestors = [self._information.ancestors(int(synset)) for synset in synsets]
        columns = np.concatenate([*ancestors, np.empty(0, np.int32)])
        rows = np.repeat(np.arange(len(ancestors)), list(map(len, ancestors)))
        shape = (len(ancestors), len(self._information.values))
        below = sparse.csc_array((np.ones(len(columns), np.int8), (rows, columns)), shape=shape)
        return SynsetGroup(np.asarray(synsets, np.int64), below)

    def distances(self, left: SynsetGroup, right: SynsetGroup) -> NDArray[np.float64]:
        """Distances of each synset on the left to each on the right; infinite without a common subsumer."""
        content = self._information.values
        lowest = self._subsumers(left, right)
        with np.errstate(invalid="ignore"):
            distance = content[left.synsets][:, None] + content[right.synsets][None, :] - 2 * lowest
        distance[~np.isfinite(distance)] = np.inf
        distance[np.equal.outer(left.synsets, right.synsets)] = 0.0
        return np.maximum(distance, 0.0)

    def subsumer(self, left: int, right: int) -> int | None:
        """The most informative synset above both, or None."""
        common = np.intersect1d(self._information.ancestors(left), self._information.ancestors(right))
        return int(common[np.argmax(self._information.values[common])]) if len(common) else None

    def _subsumers(self, left: SynsetGroup, right: SynsetGroup) -> NDArray[np.float64]:
        """The largest information content among the common ancestors of each pair.

        Ancestors are written to the matrix in ascending order of content, so the last one is the largest.
        """
        parts, content = self._information.parts, self._information.values
        sides = parts[left.synsets], parts[right.synsets]
        # The roots of a part of speech have a common root with content 0.
        lowest = np.where(np.equal.outer(*sides) & (sides[0] < len(_TAXONOMIES))[:, None], 0.0, -np.inf)
        # Only ancestors of the smaller side can be common.
        few, many = (left, right) if left.below.nnz < right.below.nnz else (right, left)
        shared = np.flatnonzero(np.diff(few.below.indptr))
        shared = shared[many.below.indptr[shared + 1] > many.below.indptr[shared]]
        for ancestor in shared[np.argsort(content[shared], kind="stable")]:
            if np.isfinite(content[ancestor]):
                lowest[np.ix_(left.under(ancestor), right.under(ancestor))] = content[ancestor]
        return lowest
