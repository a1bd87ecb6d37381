"""The threshold and the approach that serve a user's own labelled pairs best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.evaluation.quality.labels import Labels
from likewise.evaluation.quality.ranking import Curve, RankedScores, curve
from likewise.evaluation.quality.scoring import score_all
from likewise.events import Event
from likewise.language import Profile, Subscription
from likewise.matching import LEARNED_AT, Background, Matcher
from likewise.semantics import Competitors, Glossary, Space, measure, needs_space


@dataclass(frozen=True, slots=True)
class Tuned:
    """How one approach does on the labels: the best single threshold, and the curve behind it."""

    approach: str
    f1: float
    threshold: float
    precision: float
    recall: float
    curve: Curve
    each: Mapping[str, tuple[float, float]]
    """By subscription with a relevant event: its own best F1 and threshold."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An approach to try, by the name a user would know it, how to make its matcher, and what to set for it."""

    name: str
    make: Callable[[], Matcher]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Approach, measure and background, where they are not the default: `background` is None for none at all."""


def candidates(
    events: Sequence[Event],
    *,
    spaces: Sequence[Space | str | Path] = (),
    glossary: Glossary | None = None,
    measure_name: str | None = None,
    background: Background | Competitors | None = None,
    learning: bool = True,
) -> list[Candidate]:
    """What can be tried: every approach over the spaces, and those of the embedding if it is there.

    A glossary of the user's own is for evidence, which alone reads one. With the name of a measure, only the approaches
    that stand on it are tried. The background is given, or learned from the events unless that is not wanted.
    """
    evidence = list(_evidence(events, spaces, glossary, background=background, learning=learning))
    if measure_name is not None:
        return evidence if measure_name == "evidence" else _measured(measure_name, spaces)
    found = [Candidate("exact", lambda: Matcher(approach="exact"), {"approach": "exact"}), _plain("concept", spaces)]
    found += evidence
    if spaces:
        found += [_plain(name, spaces) for name in ("approximate", "contrast", "clustered", "hybrid")]
        if any(event.theme for event in events):
            found.append(_plain("thematic", spaces))
    return [*found, *_measured("embedding", ())]


def _evidence(
    events: Sequence[Event],
    spaces: Sequence[Space | str | Path],
    glossary: Glossary | None,
    *,
    background: Background | Competitors | None,
    learning: bool,
) -> Iterator[Candidate]:
    told: dict[str, Any] = {"glossary": glossary} if glossary is not None else {}

    def make(**options: Any) -> Matcher:
        return Matcher(measure("evidence", spaces=spaces, **told), approach="evidence", **options)

    yield Candidate("evidence", make, {"approach": "evidence", "background": None})
    if background is None and learning and len(events) >= LEARNED_AT[0]:
        # The default takes the first of so many events for its background.
        background = Background.of(events)
    if background is not None:
        yield Candidate("evidence+background", lambda: make(background=background), {"approach": "evidence"})


def _measured(name: str, spaces: Sequence[Space | str | Path]) -> list[Candidate]:
    """The approaches that stand on any measure."""

    def make(approach: str) -> Candidate:
        return Candidate(
            name if approach == "approximate" else f"{name}+{approach}",
            lambda: Matcher(measure(name, spaces=spaces if needs_space(name) else ()), approach=approach),
            {"approach": approach, "measure": name},
        )

    return [make("approximate"), make("contrast")]


def tune(
    events: Sequence[Event],
    subscriptions: Sequence[Subscription],
    labels: Labels,
    *,
    tried: Sequence[Candidate],
    say: Callable[[str], None] = lambda _: None,
) -> list[Tuned]:
    """Every candidate on the labelled pairs, best F1 first; what cannot be had is said and left out."""
    interests = _profiles(subscriptions)
    relevant, judged = labels.tables([one.name for one in interests], [event.id for event in events])
    found = []
    for candidate in tried:
        try:
            matcher = candidate.make()
            scores = score_all(matcher, events, interests)
        except MissingError as error:
            say(f"skipped {candidate.name}: {error.message}")
            continue
        names = [one.name for one in interests]
        found.append(_tuned(candidate.name, scores, relevant, judged, names, usual=_usual(matcher, interests)))
        say(f"{candidate.name}: F1 {found[-1].f1:.3f} at {found[-1].threshold:.3f}")
    if not found:
        raise LikewiseError("no approach could be tried", hint="build a space: likewise space build --corpus wordnet")
    return sorted(found, key=lambda each: -each.f1)


def _usual(matcher: Matcher, subscriptions: Sequence[Subscription]) -> float:
    """The matcher's default threshold."""
    profile = subscriptions[0].body
    assert isinstance(profile, Profile)
    return matcher.settings(profile).threshold


def _tuned(
    name: str, scores: RankedScores, relevant: np.ndarray, judged: np.ndarray, names: Sequence[str], *, usual: float
) -> Tuned:
    made = curve(scores[judged], relevant[judged])
    # Few labels leave a wide gap between right and wrong: the default threshold stays where it is as good as any.
    f1, threshold = made.best_near(usual)
    at = int(np.argmax(made.f1)) if len(made.thresholds) else None
    precision, recall = (0.0, 0.0) if at is None else (float(made.precision[at]), float(made.recall[at]))
    each = dict(_each(scores, relevant, judged, names, usual=usual))
    return Tuned(name, f1, threshold, precision, recall, made, each)


def _each(
    scores: RankedScores, relevant: np.ndarray, judged: np.ndarray, names: Sequence[str], *, usual: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    for row, name in enumerate(names):
        mine = judged[row]
        if relevant[row].any():
            yield name, curve(scores[row, mine], relevant[row, mine]).best_near(usual)


def _profiles(subscriptions: Sequence[Subscription]) -> list[Subscription]:
    single = [one for one in subscriptions if isinstance(one.body, Profile)]
    if not single:
        raise BuildError(
            "there is no subscription to single events", hint="patterns have no score of their own to tune"
        )
    return single


def _plain(name: str, spaces: Sequence[Space | str | Path]) -> Candidate:
    return Candidate(name, lambda: Matcher(approach=name, spaces=spaces), {"approach": name})


__all__ = ["Candidate", "Tuned", "candidates", "tune"]
