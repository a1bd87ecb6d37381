"""Speed of matrices of relatedness on the Wikipedia space, compared with a loop over pairs."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from likewise.semantics import Esa, Measure, Space, Thematic, find_space

SPACE = "wikipedia"
THEMES = (["transport", "energy", "environment"], ["city", "building", "electricity", "vehicle"])
LOOP = 2000
"""Pairs that the baseline loops over; it is scaled up to the whole matrix."""


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table of `likewise bench measures`."""
    try:
        started = time.perf_counter()
        space = find_space(SPACE)
    except LikewiseError as error:
        return [{"what": "matrices of relatedness", "value": None, "unit": "s", "note": f"skipped: {error.message}"}]
    rows = [_row("open the space", time.perf_counter() - started, "s", target="< 1")]
    size = 200 if quick else 1000
    left, right = _terms(space, size, seed=1), _terms(space, size, seed=2)
    rows += _matrices(space, left, right, themes=((), ()), target=None if quick else (0.2, None))
    rows += _matrices(space, left, right, themes=THEMES, target=None if quick else (None, 0.5))
    rows += _single_events(space, 500 if quick else 10_000, events=50 if quick else 300)
    return rows


def _matrices(
    space: Space, left: list[str], right: list[str], *, themes: Any, target: tuple[float | None, float | None] | None
) -> Iterator[dict[str, object]]:
    limits = target or (None, None)
    makers: list[tuple[str, Callable[[], Measure], float | None]] = [
        ("esa", lambda: Esa(space), limits[0]),
        ("thematic", lambda: Thematic(space), limits[1]),
    ]
    for name, make, limit in makers:
        if themes[0] and name == "esa":
            continue
        measure = make()
        options = {"subscription_theme": themes[0], "event_theme": themes[1]}
        what = f"{name}, {len(left)} x {len(right)}" + (
            f", {len(themes[0])} and {len(themes[1])} tags" if themes[0] else ""
        )
        print(what, file=sys.stderr)
        started = time.perf_counter()
        measure.matrix(left, right, **options)
        yield _row(f"{what}, terms never seen", time.perf_counter() - started, "s")
        best = min(_timed(partial(measure.matrix, left, right, **options)) for _ in range(5))
        yield _row(what, best, "s", target=f"< {limit}" if limit else None)
        loop = _loop(measure, left, right, options)
        yield _row(f"{what}, as a loop over pairs", loop, "s", note=f"{loop / best:,.0f} times as long")


def _loop(measure: Measure, left: list[str], right: list[str], options: dict[str, Any]) -> float:
    """The time that one call for each pair would take, from a sample of pairs."""
    chooser = random.Random(3)
    pairs = [(chooser.choice(left), chooser.choice(right)) for _ in range(LOOP)]
    started = time.perf_counter()
    for a, b in pairs:
        measure.matrix([a], [b], **options)
    return (time.perf_counter() - started) / LOOP * len(left) * len(right)


def _single_events(space: Space, subscriptions: int, *, events: int) -> Iterator[dict[str, object]]:
    """Single new event terms compared with many prepared subscription terms."""
    terms = _terms(space, subscriptions, seed=4)
    for name, measure in (("esa", Esa(space)), ("thematic", Thematic(space))):
        print(f"{name}, prepared", file=sys.stderr)
        started = time.perf_counter()
        prepared = measure.prepare(terms, subscription_theme=THEMES[0] if name == "thematic" else ())
        yield _row(f"{name}, prepare {subscriptions:,} subscription terms", time.perf_counter() - started, "s")
        theme = THEMES[1] if name == "thematic" else ()
        fresh = _terms(space, events, seed=5)
        prepared.rows(fresh[:1], event_theme=theme)
        times = [_timed(partial(prepared.rows, [term], event_theme=theme)) for term in fresh]
        what = f"{name}, a new event term against {subscriptions:,} subscription terms"
        yield _row(f"{what}, median", 1e3 * float(np.median(times)), "ms")
        yield _row(f"{what}, p99", 1e3 * float(np.quantile(times, 0.99)), "ms", target="< 5")


def _terms(space: Space, count: int, *, seed: int) -> list[str]:
    """Words and two-word phrases of the corpus, common ones more often than rare ones."""
    words = [(word, number) for word, number in space.word_counts.items() if number >= 20 and word.isalpha()]
    chooser = random.Random(seed)
    names, weights = zip(*((word, number**0.5) for word, number in words), strict=True)
    picked = chooser.choices(names, weights, k=2 * count)
    return [f"{a} {b}" if at % 3 == 0 else a for at, (a, b) in enumerate(zip(picked[::2], picked[1::2], strict=True))]


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _row(what: str, value: float, unit: str, *, target: str | None = None, note: str = "") -> dict[str, object]:
    row: dict[str, object] = {"what": what, "value": value, "unit": unit}
    return row | ({"target": target} if target else {}) | ({"note": note} if note else {})
