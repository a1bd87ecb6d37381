"""Dense groups of the two approaches that look at more than one tuple or one term at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.matching._dense import DenseGroup
from likewise.matching._dense_kernel import RELATED
from likewise.matching._topics import Clusters
from likewise.matching._vocabulary import TEXT, Encoded, Vocabulary
from likewise.semantics import Measure, contrasted


class HybridGroup(DenseGroup):
    """Attributes are ranked among those of the event [002 eq 14, 15], so a row depends on all of them.

    Events with the same set of attributes form a context.
    """

    def __init__(self, vocabulary: Vocabulary, measure: Measure, **options: Any) -> None:
        if not hasattr(measure, "property_matrix"):
            raise BuildError(
                f"the approach hybrid ranks attributes, and {measure.name} does not", hint="give a Hybrid measure"
            )
        self._measure: Any = measure
        self._signatures: dict[bytes, int] = {}
        self._members: list[NDArray[np.int32]] = []
        self._lifted: dict[int, tuple[int, NDArray[np.float32]]] = {}
        super().__init__(vocabulary, measure, **options)

    def _forget(self) -> None:
        self._signatures.clear()
        self._members.clear()
        self._lifted.clear()
        super()._forget()

    def _context_of(self, encoded: Encoded, event: int) -> int:
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        members = np.unique(self._vocabulary.attribute[ids])
        key = members.tobytes()
        if key not in self._signatures:
            self._signatures[key] = len(self._members)
            self._members.append(members)
        return self._signatures[key]

    def _contexts(self, encoded: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
        of = np.array([self._context_of(encoded, event) for event in range(len(encoded))], dtype=np.int64)
        for context in np.unique(of).tolist():
            yield context, np.flatnonzero(of == context)

    def _relate(
        self, side: int, numbers: NDArray[np.int32], terms: list[str], context: int, theme: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        columns = self._attributes.columns
        if side == 1 or not len(columns):
            # Values know no rank: they are the same in every context.
            return super()._relate(side, numbers, terms, 0, theme)
        version, rows = self._lifted.get(context, (-1, np.zeros((0, 0), dtype=np.float32)))
        if version != columns.version:
            said = [terms[number] for number in self._members[context].tolist()]
            lifted = self._measure.property_matrix(columns.terms, said)
            rows = np.ascontiguousarray(np.nan_to_num(lifted).T)
            self._lifted[context] = columns.version, rows
        if self._temperature is not None:
            rows = contrasted(rows, rows[:, self._rivals.competing(0)].max(axis=1, initial=0.0), self._temperature)
        return np.searchsorted(self._members[context], numbers).astype(np.int64), rows


class ClusteredGroup(DenseGroup):
    """A profile is compared only with events in whose topics all its values find their own [004 sec 7.2-7.4]."""

    def __init__(self, vocabulary: Vocabulary, measure: Measure, *, clusters: Clusters, **options: Any) -> None:
        self._clusters = clusters
        super().__init__(vocabulary, measure, **options)

    def _refine(self, ids: NDArray[np.int32], places: NDArray[np.int64]) -> None:
        if self._meeting.shape != self._rows.shape:
            room = np.zeros(self._rows.shape, dtype=np.uint8)
            if self._meeting.shape[1] == room.shape[1]:
                room[: len(self._meeting)] = self._meeting
            self._meeting = room
        self._meeting[places, : len(self.conditions)] = self._topics_met(ids)

    def _topics_met(self, ids: NDArray[np.int32]) -> NDArray[np.uint8]:
        """A row per tuple, a column per condition: whether they are in one cluster."""
        records = self.conditions.records[: len(self.conditions)]
        out = np.ones((len(ids), len(records)), dtype=np.uint8)
        asked = np.flatnonzero((records["operator"] == RELATED) & (records["value_column"] >= 0))
        words = self._vocabulary
        said = np.flatnonzero(words.kind[ids] == TEXT)
        if len(asked) and len(said):
            subscribed = [self._values.columns.terms[column] for column in records["value_column"][asked].tolist()]
            published = [words.value_terms[number] for number in words.value[ids[said]].tolist()]
            out[np.ix_(said, asked)] = self._clusters.meet(subscribed, published)
        return out
