"""Which measure answers for which approach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from likewise.errors import LikewiseError, MissingError
from likewise.semantics import DIFFERING_POWERS as POWERS
from likewise.semantics import Coded, Competitors, Differing, Measure, Opposed, Ranked, Space, Thematic, measure

NAMES: Final = {
    "approximate": "esa",
    "clustered": "esa",
    "concept": "concept",
    "hybrid": "hybrid",
    "thematic": "thematic",
}
"""The measure that each approach has when nobody says another."""


class Measures:
    """The measures of a matcher: given ones first, then those that can be made from the spaces."""

    def __init__(
        self,
        given: Measure | Mapping[str, Measure] | None = None,
        *,
        spaces: Sequence[Space | str | Path] = (),
        background: Competitors | None = None,
    ) -> None:
        self._made: dict[str, Measure] = dict(given) if isinstance(given, Mapping) else {}
        self._one = None if isinstance(given, Mapping) else given
        self._spaces = tuple(spaces)
        self._background = background

    def __bool__(self) -> bool:
        return bool(self._one or self._made or self._spaces)

    def tuned(self) -> Measure:
        """The approximate measure, codes and opposites apart, phrases by what differs, ranked by any background."""
        if "tuned" not in self._made:
            apart: Measure = Opposed(Coded(self.of("approximate")))
            # A measure of one's own may know phrases and none of their words.
            apart = Differing(apart) if apart.name in POWERS else apart
            self._made["tuned"] = apart if self._background is None else Ranked(apart, self._background)
        return self._made["tuned"]

    def of(self, approach: str) -> Measure:
        """The measure of a base approach, or an error that says what is missing."""
        if approach not in self._made:
            self._made[approach] = self._make(approach)
        return self._made[approach]

    def _make(self, approach: str) -> Measure:
        one = self._one
        if one is not None and self._fits(one, approach):
            return one
        if approach == "thematic" and isinstance(getattr(one, "space", None), Space):
            return Thematic(one.space)  # type: ignore[union-attr]
        if not self._spaces and approach != "concept":
            raise MissingError(
                f"~ needs a space or a measure for the approach {approach}, and there is none",
                hint="give one (`likewise space build` makes it), or choose exact, which takes ~ as nothing",
            )
        try:
            return measure(NAMES[approach], spaces=self._spaces)
        except LikewiseError as error:
            raise MissingError(f"the approach {approach} cannot be had: {error.message}", hint=error.hint) from error

    @staticmethod
    def _fits(one: Measure, approach: str) -> bool:
        """A measure of one's own serves every approach; a known one serves its own, and approximate ones."""
        if approach in ("approximate", "clustered"):
            return True
        known = set(NAMES.values()) | {"esa-euclidean", "combined", "embedding", "jiang-conrath"}
        return one.name == NAMES[approach] or one.name.removesuffix("+contrast") not in known
