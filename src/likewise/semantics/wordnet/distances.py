"""Distances between synsets along WordNet's taxonomies, for whole groups of synsets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.semantics.wordnet.information import InformationContent

_TAXONOMIES = 2
"""Nouns and verbs, the first parts of speech, have hypernyms."""


@dataclass(frozen=True, slots=True)
class SynsetGroup:
    """Synsets, and which of them (rows) lie below which ancestors (columns)."""

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
        """Synsets made ready to be compared."""
        found = [self._information.ancestors(int(synset)) for synset in synsets]
        columns = np.concatenate([*found, np.empty(0, np.int32)])
        rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
        shape = (len(found), len(self._information.values))
        below = sparse.csc_array((np.ones(len(columns), np.int8), (rows, columns)), shape=shape)
        return SynsetGroup(np.asarray(synsets, np.int64), below)

    def distances(self, left: SynsetGroup, right: SynsetGroup) -> NDArray[np.float64]:
        """From each synset on the left to each on the right; infinite where nothing subsumes both."""
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

        Ancestors are laid over the matrix in rising order of content, so the last one written is the largest.
        """
        parts, content = self._information.parts, self._information.values
        sides = parts[left.synsets], parts[right.synsets]
        # All roots of a part of speech hang under one that says nothing, so its content is 0.
        lowest = np.where(np.equal.outer(*sides) & (sides[0] < _TAXONOMIES)[:, None], 0.0, -np.inf)
        # The smaller side names the few ancestors that can be common.
        few, many = (left, right) if left.below.nnz < right.below.nnz else (right, left)
        shared = np.flatnonzero(np.diff(few.below.indptr))
        shared = shared[many.below.indptr[shared + 1] > many.below.indptr[shared]]
        for ancestor in shared[np.argsort(content[shared], kind="stable")]:
            if np.isfinite(content[ancestor]):
                lowest[np.ix_(left.under(ancestor), right.under(ancestor))] = content[ancestor]
        return lowest
