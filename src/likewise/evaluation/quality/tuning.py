"""Finds the best approach and threshold for labelled pairs of a user."""

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
    """The quality of one approach on the labels: the best single threshold, and the whole curve."""

    approach: str
    f1: float
    threshold: float
    precision: float
    recall: float
    curve: Curve
    subscriptions: Mapping[str, tuple[float, float]]
    """For each subscription with a relevant event, its own best F1 and threshold."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An approach to try: its name, a function that creates its matcher, and its settings."""

    name: str
    make: Callable[[], Matcher]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Approach, measure and background where they differ from the default; None switches the background off."""


def candidates(
    events: Sequence[Event],
    *,
    spaces: Sequence[Space | str | Path] = (),
    glossary: Glossary | None = None,
    measure_name: str | None = None,
    background: Background | Competitors | None = None,
    learning: bool = True,
) -> list[Candidate]:
    """The approaches to try: all approaches over the spaces, and those over the embedding.

    Only evidence uses the glossary. With the name of a measure, only the approaches that use it are tried. The
    background is the given one, else learned from the events if `learning`.
    """
    evidence = list(_evidence(events, spaces, glossary, background=background, learning=learning))
    if measure_name is not None:
        return evidence if measure_name == "evidence" else _measured(measure_name, spaces)
    tried = [Candidate("exact", lambda: Matcher(approach="exact"), {"approach": "exact"}), _plain("concept", spaces)]
    tried += evidence
    if spaces:
        tried += [_plain(name, spaces) for name in ("approximate", "contrast", "clustered", "hybrid")]
        if any(event.theme for event in events):
            tried.append(_plain("thematic", spaces))
    return [*tried, *_measured("embedding", ())]


def _evidence(
    events: Sequence[Event],
    spaces: Sequence[Space | str | Path],
    glossary: Glossary | None,
    *,
    background: Background | Competitors | None,
    learning: bool,
) -> Iterator[Candidate]:
    own: dict[str, Any] = {"glossary": glossary} if glossary is not None else {}

    def make(**options: Any) -> Matcher:
        return Matcher(measure("evidence", spaces=spaces, **own), approach="evidence", **options)

    yield Candidate("evidence", make, {"approach": "evidence", "background": None})
    if background is None and learning and len(events) >= LEARNED_AT[0]:
        # As an engine does by default.
        background = Background.of(events)
    if background is not None:
        yield Candidate("evidence+background", lambda: make(background=background), {"approach": "evidence"})


def _measured(name: str, spaces: Sequence[Space | str | Path]) -> list[Candidate]:
    """The approaches that work with any measure."""

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
    """Try all candidates on the labelled pairs, best F1 first; those not available are reported and skipped."""
    profiles = _profiles(subscriptions)
    names = [subscription.name for subscription in profiles]
    relevant, judged = labels.tables(names, [event.id for event in events])
    results = []
    for candidate in tried:
        try:
            matcher = candidate.make()
            scores = score_all(matcher, events, profiles)
        except MissingError as error:
            say(f"skipped {candidate.name}: {error.message}")
            continue
        default = _default_threshold(matcher, profiles)
        results.append(_tuned(candidate.name, scores, relevant, judged, names, default=default))
        say(f"{candidate.name}: F1 {results[-1].f1:.3f} at {results[-1].threshold:.3f}")
    if not results:
        raise LikewiseError("no approach could be tried", hint="build a space: likewise space build --corpus wordnet")
    return sorted(results, key=lambda result: -result.f1)


def _default_threshold(matcher: Matcher, subscriptions: Sequence[Subscription]) -> float:
    """The matcher's default threshold."""
    profile = subscriptions[0].body
    assert isinstance(profile, Profile)
    return matcher.settings(profile).threshold


def _tuned(
    name: str, scores: RankedScores, relevant: np.ndarray, judged: np.ndarray, names: Sequence[str], *, default: float
) -> Tuned:
    points = curve(scores[judged], relevant[judged])
    # With few labels many thresholds are equally good: then the default threshold stays.
    f1, threshold = points.best_near(default)
    at = int(np.argmax(points.f1)) if len(points.thresholds) else None
    precision, recall = (0.0, 0.0) if at is None else (float(points.precision[at]), float(points.recall[at]))
    by_subscription = dict(_own_best(scores, relevant, judged, names, default=default))
    return Tuned(name, f1, threshold, precision, recall, points, by_subscription)


def _own_best(
    scores: RankedScores, relevant: np.ndarray, judged: np.ndarray, names: Sequence[str], *, default: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    for row, name in enumerate(names):
        labelled = judged[row]
        if relevant[row].any():
            yield name, curve(scores[row, labelled], relevant[row, labelled]).best_near(default)


def _profiles(subscriptions: Sequence[Subscription]) -> list[Subscription]:
    single = [subscription for subscription in subscriptions if isinstance(subscription.body, Profile)]
    if not single:
        raise BuildError("there is no subscription to single events", hint="patterns cannot be tuned")
    return single


def _plain(name: str, spaces: Sequence[Space | str | Path]) -> Candidate:
    return Candidate(name, lambda: Matcher(approach=name, spaces=spaces), {"approach": name})
