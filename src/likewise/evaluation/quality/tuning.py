"""The threshold and the approach that serve a user's own labelled pairs best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from likewise.semantics import Embedding, Glossary, Space, measure


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
    """An approach to try, by the name a user would know it, and how to make its matcher."""

    name: str
    make: Callable[[], Matcher]


def candidates(
    events: Sequence[Event], *, spaces: Sequence[Space | str | Path] = (), glossary: Glossary | None = None
) -> list[Candidate]:
    """What can be tried: every approach over the spaces, and those of the embedding if it is there.

    A glossary of the user's own is for evidence, which alone reads one.
    """
    found = [Candidate("exact", lambda: Matcher(approach="exact")), _plain("concept", spaces)]
    told: dict[str, Any] = {"glossary": glossary} if glossary is not None else {}

    def evidence(**options: Any) -> Matcher:
        return Matcher(measure("evidence", spaces=spaces, **told), approach="evidence", **options)

    found.append(Candidate("evidence", evidence))
    if len(events) >= LEARNED_AT[0]:
        # The default takes the first of so many events for its background.
        found.append(Candidate("evidence+background", lambda: evidence(background=Background.of(events))))
    if spaces:
        found += [_plain(name, spaces) for name in ("approximate", "contrast", "clustered", "hybrid")]
        if any(event.theme for event in events):
            found.append(_plain("thematic", spaces))
    found += [
        Candidate("embedding", lambda: Matcher(Embedding(), approach="approximate")),
        Candidate("embedding+contrast", lambda: Matcher(Embedding(), approach="contrast")),
    ]
    return found


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
    return Candidate(name, lambda: Matcher(approach=name, spaces=spaces))


def usage(name: str, threshold: float) -> str:
    """How to have what was tried under this name.

    >>> usage("contrast", 0.25), usage("embedding+contrast", 0.5)
    ('--approach contrast --threshold 0.25', 'Engine(measure=Embedding(), approach="contrast", threshold=0.5)')
    """
    before, _, approach = name.rpartition("embedding")
    inner = approach.removeprefix("+") or "approximate"
    plain = inner.removesuffix("+background")
    if before + plain == name:
        return f"--approach {name} --threshold {threshold:.3g}"
    given = "measure=Embedding()" if "embedding" in name else "spaces=[…]"
    words = ", background=Background.of(events)" if inner != plain else ""
    return f'Engine({given}{words}, approach="{plain}", threshold={threshold:.3g})'


__all__ = ["Candidate", "Tuned", "candidates", "tune", "usage"]
