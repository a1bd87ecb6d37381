"""Ranks: attributes among those of their event [002 eq 14, 15]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.matching._columns import Columns
from likewise.matching._vocabulary import Encoded, Vocabulary
from likewise.semantics import Measure

MOST = 4096
"""Sets of attributes that are kept before all are forgotten."""


class Ranks:
    """How well an event's attributes answer subscribed ones depends on all of them: equal sets form a context."""

    def __init__(self, vocabulary: Vocabulary, measure: Measure) -> None:
        if not hasattr(measure, "property_matrix"):
            raise BuildError(
                f"the approach hybrid ranks attributes, and {measure.name} does not", hint="give a Hybrid measure"
            )
        self._vocabulary = vocabulary
        self._measure: Any = measure
        self.forget()

    def forget(self) -> None:
        """Drop all contexts."""
        self._contexts: dict[bytes, int] = {}
        self.members: list[NDArray[np.int32]] = []
        self._rows: dict[int, tuple[int, NDArray[np.float32]]] = {}

    @property
    def crowded(self) -> bool:
        """Whether there are more contexts than are worth keeping."""
        return len(self.members) > MOST

    def context_of(self, encoded: Encoded, event: int) -> int:
        """The number of an event's set of attributes."""
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        members = np.unique(self._vocabulary.attribute[ids])
        context = self._contexts.setdefault(members.tobytes(), len(self.members))
        if context == len(self.members):
            self.members.append(members)
        return context

    def contexts(self, encoded: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Every context of a batch with its events."""
        of = np.array([self.context_of(encoded, event) for event in range(len(encoded))], dtype=np.int64)
        for context in np.unique(of).tolist():
            yield context, np.flatnonzero(of == context)

    def rows(self, context: int, columns: Columns) -> NDArray[np.float32]:
        """A row per attribute of the context, in the order of their numbers, and a column per subscribed attribute."""
        version, rows = self._rows.get(context, (-1, np.zeros((0, 0), dtype=np.float32)))
        if version != columns.version:
            said = [self._vocabulary.attribute_terms[number] for number in self.members[context].tolist()]
            lifted = self._measure.property_matrix(columns.terms, said)
            rows = np.ascontiguousarray(np.nan_to_num(lifted).T)
            self._rows[context] = columns.version, rows
        return rows
