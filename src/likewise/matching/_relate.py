"""The relatedness of one profile's terms with one event's, in plain NumPy: for explanations and as reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching._approach import Settings
from likewise.matching._competition import Competition
from likewise.matching._matrices import Relate, attribute_matrix, value_matrix
from likewise.semantics import Measure, contrasted


class Parts(NamedTuple):
    """Attribute and value matrix of a profile with an event; their product is the combined matrix."""

    attributes: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def combined(self) -> NDArray[np.float64]:
        """Entry-wise product [004 sec 7.5]."""
        return self.attributes * self.values


def parts_of(
    profile: Profile,
    event: Event,
    settings: Settings,
    *,
    measure: Measure | None,
    competition: Competition,
    temperature: float,
    attribute_weight: float,
    themes: bool = True,
) -> Parts:
    """Both matrices as the settings ask for them; `themes=False` leaves the themes of both sides out."""
    if measure is None:
        return Parts(attribute_matrix(profile, event, None), value_matrix(profile, event, None))
    told = themes and settings.approach.base == "thematic"
    subscription_theme, event_theme = (profile.theme, event.theme) if told else ((), ())

    def plain(mine: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float32]:
        return measure.matrix(mine, theirs, subscription_theme=subscription_theme, event_theme=event_theme)

    def ranked(mine: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float32]:
        lifted: NDArray[np.float32] = measure.property_matrix(mine, theirs)  # type: ignore[attr-defined]
        return lifted

    names: Relate = ranked if settings.approach.base == "hybrid" else plain
    values: Relate = plain
    if settings.approach.contrast:
        names = _against(names, competition.attributes, temperature)
        values = _against(values, competition.values, temperature)
    attributes = attribute_matrix(profile, event, names)
    worded = [i for i, predicate in enumerate(profile.predicates) if is_worded(predicate)]
    attributes[worded] **= attribute_weight
    return Parts(attributes, value_matrix(profile, event, values))


def _against(relate: Relate, rivals: Sequence[str], temperature: float) -> Relate:
    def contrast(mine: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float32]:
        best = relate(rivals, theirs).max(axis=0) if rivals else np.zeros(len(theirs), dtype=np.float32)
        return contrasted(np.asarray(relate(mine, theirs)).T, best, temperature).T

    return contrast


def is_worded(predicate: Predicate) -> bool:
    """Whether its value is a term that must be met: only then may the attribute's name count for less."""
    return predicate.operator is Operator.EQ and isinstance(predicate.value, str)
