"""English subscriptions, French events: the thematic data set translated by EuroVoc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from likewise.evaluation.datasets.eurovoc import eurovoc_document
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, build_thematic, data_folder
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.experiments.matching import make_laboratory
from likewise.evaluation.quality.approaches import SAMPLE, Laboratory, Trial, choose
from likewise.evaluation.quality.ranking import delivery, quality
from likewise.events import Event, normalise

KNOWS = ("seeds", "events")
ROWS = ("exact", "approximate (both)", "default (embedding)", "default (all)", "default + background (all)")
FRAMES = {
    "increased": "augmentation",
    "decreased": "diminution",
    "occupied": "occupé",
    "vacant": "libre",
    "event": "événement",
}
"""The words of event types that are not terms of EuroVoc."""


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """F1 of English subscriptions on French events, together and alone; `--set` takes seeds and events."""
    experiment.check(settings)
    seeds = int(settings.options.get("seeds", 1 if settings.quick else 3))
    events = int(settings.options.get("events", 1500 if settings.quick else 5000))
    laboratory = make_laboratory(settings)
    words = french_words((settings.data or data_folder()) / "eurovoc" / "eurovoc.yaml")
    rows_by_approach: dict[str, list[Row]] = {}
    share = []
    for seed in range(1, seeds + 1):
        data = in_french(build_thematic(DatasetRecipe(seed=seed, events=events), data=settings.data), words)
        share.append(data.facts["in French"])
        trial = Trial(data, laboratory)
        for name in ROWS:
            for row in _rows(trial, laboratory, name):
                rows_by_approach.setdefault(name, []).append(row)
                settings.say(f"seed {seed}: {name}")
    rows = [{"approach": name, **_mean(scores)} for name, scores in rows_by_approach.items()]
    notes = [
        f"{np.mean(share):.0%} of the events' terms are in French; the others are names, codes and units",
        f"the background is the words of the first {SAMPLE} events",
        "default: mean F1 at the default threshold; best: mean of each subscription's maximal F1",
    ]
    return [ExperimentReport(f"English subscriptions, French events, {seeds} seeds", rows, notes)]


def _rows(trial: Trial, laboratory: Laboratory, name: str) -> list[Row]:
    rows: list[Row] = []
    for approach in choose([name]):
        if approach.name != name or laboratory.missing(approach):
            continue
        together = trial.scores(approach)
        alone = trial.scores(approach, alone=True) if "contrast" in approach.wrap else together
        limit = laboratory.usual_threshold(approach) or 0.5
        truth = trial.data.truth
        rows.append(
            {
                "together, default": delivery(together, truth, limit).f1,
                "alone, default": delivery(alone, truth, limit).f1,
                "together, best": quality(together, truth).mean_max_f1,
                "alone, best": quality(alone, truth).mean_max_f1,
            }
        )
    return rows


def _mean(rows: list[Row]) -> Row:
    return {name: float(np.mean([float(row[name] or 0) for row in rows])) for name in rows[0]}


def in_french(data: ThematicDataset, words: Mapping[str, str]) -> ThematicDataset:
    """The same events with all terms known to the thesaurus in French; truth and subscriptions are unchanged."""
    translated = [
        Event(event.id, tuple((french(name, words), french(str(value), words)) for name, value in event.tuples))
        for event in data.events
    ]
    pairs = [
        (before, after)
        for old, new in zip(data.events, translated, strict=True)
        for english, translation in zip(old.tuples, new.tuples, strict=True)
        for before, after in zip(english, translation, strict=True)
    ]
    changed = sum(before != after for before, after in pairs) / len(pairs)
    return replace(data, events=tuple(translated), facts={**data.facts, "in French": changed})


def french(term: str, words: Mapping[str, str]) -> str:
    """A term in French, if the thesaurus knows it; of an event type, its known words.

    >>> french("increased noise event", {"noise": "bruit"}), french("room 112", {})
    ('augmentation bruit événement', 'room 112')
    """
    if (translation := words.get(normalise(term))) is not None:
        return translation
    parts = term.split()
    if parts[-1] != "event":
        return term
    inner = " ".join(part for part in parts if part not in FRAMES)
    spoken = words.get(normalise(inner), inner)
    return " ".join([*(FRAMES[part] for part in parts[:-1] if part in FRAMES), spoken, FRAMES["event"]])


def french_words(path: Path) -> dict[str, str]:
    """English labels of EuroVoc, normalised, and the French preferred label of their concept."""
    translations: dict[str, str] = {}
    for raw in eurovoc_document(path)["concepts"].values():
        for label in (raw["prefLabel"]["en"], *raw.get("altLabel", {}).get("en", ())):
            translations.setdefault(normalise(label), raw["prefLabel"]["fr"])
    return translations


experiment = Experiment("languages", "English subscriptions on French events", run, KNOWS)
