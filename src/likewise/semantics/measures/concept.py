"""The concept approach: terms match when a thesaurus says that they are synonyms or related [000 sec 1.2.2]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Shared, Themes
from likewise.semantics.text.phrase import TermPlaces
from likewise.semantics.wordnet.thesaurus import Thesaurus

Grades = Literal["boolean", "graded", "synonyms"]


class Concept(Measure):
    """Names of one concept are 1; names of linked concepts are 1 (`boolean`), `related` (`graded`) or 0 (`synonyms`).

    Themes are not used.

    >>> thesaurus = Thesaurus({"c1": ["car", "auto"], "c2": ["vehicle"], "c3": ["cat"]}, [("c1", "c2")])
    >>> Concept(thesaurus).matrix(["car"], ["auto", "vehicle", "cat"]).tolist()
    [[1.0, 0.5, 0.0]]
    """

    name = "concept"
    symmetric = True

    def __init__(self, thesaurus: Thesaurus | None = None, *, grades: Grades = "graded", related: float = 0.5) -> None:
        if not 0 <= related <= 1:
            raise BuildError(f"related terms cannot count {related}", hint="choose a number from 0 to 1")
        if grades not in ("boolean", "graded", "synonyms"):
            raise BuildError(f"no grades {grades!r}", hint="one of: boolean, graded, synonyms")
        self._thesaurus = thesaurus or Thesaurus.from_wordnet()
        self._related = {"boolean": 1.0, "graded": related, "synonyms": 0.0}[grades]

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedConcept:
        """The concepts of the subscription terms and those linked with them, looked up once."""
        return PreparedConcept(self._thesaurus, subscription_terms, self._related)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts that both terms name, then the links between concepts of one and of the other."""
        title = self._thesaurus.title
        left = self._thesaurus.incidence([mine]).indices
        right = self._thesaurus.incidence([theirs]).indices
        reasons = [Shared(title(int(concept)), 1.0) for concept in np.intersect1d(left, right)]
        if self._related > 0:
            links = self._thesaurus.links[left][:, right].tocoo()
            reasons += [
                Shared(f"{title(int(left[row]))} – {title(int(right[column]))}", self._related)
                for row, column in zip(links.row, links.col, strict=True)
            ]
        return reasons[:limit]


class PreparedConcept:
    """Subscription terms as columns by concept; `rows` gives a row per event term."""

    def __init__(self, thesaurus: Thesaurus, terms: Sequence[str], related: float) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._thesaurus = thesaurus
        self._related = related
        own = thesaurus.incidence(terms)
        self._own = csr_array(own.T)
        self._linked = csr_array((own @ thesaurus.links).T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Score of every event term (row) with every prepared term (column)."""
        named = self._thesaurus.incidence(event_terms)
        linked = np.minimum((named @ self._linked).toarray(), 1) * self._related
        scores = np.maximum(linked, np.minimum((named @ self._own).toarray(), 1)).astype(np.float32)
        return self._names.mark(scores, event_terms)
