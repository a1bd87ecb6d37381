"""The measures by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from likewise.errors import BuildError, MissingError
from likewise.semantics.adjust.apart import Coded, Opposed
from likewise.semantics.adjust.beside import Competitors, Contrast, Ranked
from likewise.semantics.adjust.differences import Differing
from likewise.semantics.measures.base import Measure
from likewise.semantics.measures.combined import TOP, Combined, Hybrid
from likewise.semantics.measures.concept import Concept, Thesaurus
from likewise.semantics.measures.esa import Esa, EsaEuclidean
from likewise.semantics.measures.jiang_conrath import JiangConrath
from likewise.semantics.measures.thematic import Thematic, ThematicEuclidean
from likewise.semantics.space.space import Space, find_space


def measure_names() -> tuple[str, ...]:
    """All names of measures, in alphabetical order; each may have adjustments, see `wrap_names`."""
    return tuple(sorted(_MEASURES))


def wrap_names() -> tuple[str, ...]:
    """Adjustments that a name adds to a measure after a `+`: `esa+opposed+contrast`."""
    return tuple(sorted(_WRAPS))


def needs_space(name: str) -> bool:
    """Whether a measure needs a space."""
    return name.partition("+")[0] in _SPATIAL


def measure(
    name: str,
    *,
    spaces: Sequence[Space | str | Path] = (),
    competitors: Competitors | Iterable[str] | None = None,
    temperature: float | None = None,
    background: Competitors | Iterable[str] | None = None,
    **options: Any,
) -> Measure:
    """The measure with this name, over spaces given as objects, names or paths.

    Several spaces are combined by the mean of the square roots of their scores. Each `+` adds an adjustment: `contrast`
    (with `competitors` and `temperature`), `rank` (with `background`), `coded`, `differing` or `opposed`. `evidence`
    takes a `background` too. Other options go to the measure's class.
    """
    base, *wraps = name.split("+")
    if base not in _MEASURES:
        raise BuildError(f"no measure {name!r}", hint=_suggest(base, _MEASURES))
    for wrap in wraps:
        if wrap not in _WRAPS:
            raise BuildError(f"no adjustment {wrap!r} of measures", hint=_suggest(wrap, _WRAPS))
    if "contrast" in wraps and competitors is None:
        raise BuildError(f"{name} needs competitors", hint="give the terms of all subscriptions")
    if "rank" in wraps and background is None:
        raise BuildError(f"{name} needs a background", hint="give terms of events, as Competitors.from_events does")
    if background is not None and base == "evidence":
        options["background"] = _terms(background)
    opened = [space if isinstance(space, Space) else find_space(space) for space in spaces]
    if base in _SPATIAL and not opened:
        raise BuildError(f"{name} needs a space", hint="give one, such as spaces=['wordnet']")
    chosen = _make(base, opened, options)
    for wrap in wraps:
        chosen = _WRAPS[wrap](chosen, competitors=competitors, temperature=temperature, background=background)
    return chosen


def _make(name: str, spaces: Sequence[Space], options: dict[str, Any]) -> Measure:
    try:
        return _MEASURES[name](spaces, **options)
    except TypeError as error:
        raise BuildError(f"{name} does not take these options: {error}", hint="see docs/measures.md") from None


def _spatial(kind: Callable[..., Measure], spaces: Sequence[Space], **options: Any) -> Measure:
    parts = [kind(space, **options) for space in spaces]
    return parts[0] if len(parts) == 1 else Combined(parts)


def _combined(
    spaces: Sequence[Space],
    *,
    measures: Sequence[str] = ("esa",),
    weights: Sequence[float] | None = None,
    power: float = 0.5,
    **options: Any,
) -> Measure:
    parts: list[Measure] = []
    for name in measures:
        parts += [_make(name, [space], options) for space in spaces] if name in _SPATIAL else [_make(name, [], {})]
    return Combined(parts, weights=weights, power=power)


def _related(spaces: Sequence[Space]) -> Measure:
    """ESA over each space, at half the weight the encoders that are installed, and at a quarter evidence.

    Evidence already includes the spaces and the sentence encoder, and asks for the same meaning, not for relatedness.
    """
    encoders = []
    for encoder in (_sentence, _embedding):
        with suppress(MissingError):
            encoders.append(encoder(()))
    measures = [*(Esa(space) for space in spaces), *encoders, _evidence(spaces)]
    return Combined(measures, weights=[1.0] * len(spaces) + [0.5] * len(encoders) + [0.25])


def _hybrid(spaces: Sequence[Space], *, top: int = TOP, **options: Any) -> Measure:
    return Hybrid(_spatial(Esa, spaces, **options), JiangConrath(), top=top)


def _concept(_spaces: Sequence[Space], *, thesaurus: Thesaurus | str | Path | None = None, **options: Any) -> Measure:
    read = Thesaurus.from_file(thesaurus) if isinstance(thesaurus, str | Path) else thesaurus
    return Concept(read, **options)


def _jiang_conrath(_spaces: Sequence[Space], **options: Any) -> Measure:
    return JiangConrath(**options)


def _evidence(spaces: Sequence[Space], **options: Any) -> Measure:
    from likewise.semantics.evidence import Evidence

    return Evidence(spaces, **options)


def _embedding(_spaces: Sequence[Space], **options: Any) -> Measure:
    from likewise.semantics.measures.embedding import Embedding

    return Embedding(**options)


def _sentence(_spaces: Sequence[Space], **options: Any) -> Measure:
    from likewise.semantics.measures.embedding import Sentence

    return Sentence(**options)


_MEASURES: dict[str, Callable[..., Measure]] = {
    "combined": _combined,
    "concept": _concept,
    "embedding": _embedding,
    "esa": partial(_spatial, Esa),
    "esa-euclidean": partial(_spatial, EsaEuclidean),
    "evidence": _evidence,
    "hybrid": _hybrid,
    "jiang-conrath": _jiang_conrath,
    "related": _related,
    "sentence": _sentence,
    "thematic": partial(_spatial, Thematic),
    "thematic-euclidean": partial(_spatial, ThematicEuclidean),
}
_SPATIAL = frozenset({"combined", "esa", "esa-euclidean", "hybrid", "thematic", "thematic-euclidean"})


Terms: TypeAlias = Competitors | Iterable[str] | None


def _contrast(inner: Measure, *, competitors: Terms, temperature: float | None, **_: object) -> Measure:
    return Contrast(inner, _terms(competitors), temperature=temperature)


def _rank(inner: Measure, *, background: Terms, **_: object) -> Measure:
    return Ranked(inner, _terms(background))


def _terms(given: Terms) -> Competitors:
    return given if isinstance(given, Competitors) else Competitors.of(given or ())


_WRAPS: dict[str, Callable[..., Measure]] = {
    "coded": lambda inner, **_: Coded(inner),
    "contrast": _contrast,
    "differing": lambda inner, **_: Differing(inner),
    "opposed": lambda inner, **_: Opposed(inner),
    "rank": _rank,
}


def _suggest(name: str, names: Iterable[str]) -> str:
    known = sorted(names)
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}? known: {', '.join(known)}" if near else f"known: {', '.join(known)}"
