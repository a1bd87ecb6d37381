"""Matching quality of every approach on the thematic data set [000 sec 5.3.1, 002 sec 6, 004 sec 9.2].

Each figure twice: all subscriptions registered together, where contrast may use their words, and each
alone in an otherwise empty system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from likewise.errors import BuildError
from likewise.evaluation.charts import bars
from likewise.evaluation.datasets.eurovoc import read_eurovoc
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, build_thematic, data_folder
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.quality.approaches import ComparedApproach, Laboratory, Trial, choose
from likewise.evaluation.quality.ranking import Delivery, Quality, RankedScores, Relevance, delivery, quality
from likewise.language import format_subscription

SEEDS = 5
CHOSEN_ON = 3
"""The number of seeds on which weights, temperatures and thresholds were chosen; later seeds are held out."""
DEGREES = (1.0, 0.5, 0.0)
HALF = 0.97
"""The F1 that the best approach has to reach at half approximation."""
QUICK = DatasetRecipe(events=1500)
KNOWS = ("seeds", "degrees", "approach", "worst", "thesaurus", "typed", "city")
WORST = ("default (both)", "default + background (all)")
"""The approaches whose worst subscriptions are shown by default."""


@dataclass(frozen=True, slots=True)
class Usual:
    """A default threshold and its figures, with all subscriptions together and each alone."""

    threshold: float
    together: Delivery
    alone: Delivery

    @classmethod
    def of(
        cls, together: RankedScores, alone: RankedScores, relevant: Relevance, *, threshold: float | None
    ) -> Usual | None:
        """The figures of one run; None for an approach without a default threshold."""
        if threshold is None:
            return None
        return cls(threshold, delivery(together, relevant, threshold), delivery(alone, relevant, threshold))


def usual_figures(by_seed: Sequence[tuple[int, Usual]], *, chosen_on: int) -> Row:
    """Means over the seeds; seeds above `chosen_on` are held out, since nothing was tuned on them.

    >>> figures = Usual(0.5, Delivery(1.0, 0.5, 0.75), Delivery(0.5, 0.5, 0.25))
    >>> usual_figures([(1, figures)], chosen_on=3)["alone F1"]
    0.25
    """
    row: dict[str, float] = {"at": by_seed[0][1].threshold}
    for company in ("together", "alone"):
        for part in ("precision", "recall", "f1"):
            row[f"{company} {part.replace('f1', 'F1')}"] = _mean_figure(by_seed, company, part)
    held_out = [(seed, figures) for seed, figures in by_seed if seed > chosen_on]
    if held_out:
        row |= {
            "held out": _mean_figure(held_out, "together", "f1"),
            "alone held out": _mean_figure(held_out, "alone", "f1"),
        }
    return row


def _mean_figure(by_seed: Sequence[tuple[int, Usual]], company: str, part: str) -> float:
    return float(np.mean([getattr(getattr(figures, company), part) for _, figures in by_seed]))


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one approach on one data set."""

    approach: ComparedApproach
    degree: float
    seed: int
    reworded: bool
    together: Quality
    alone: Quality
    compared: float = 1.0
    """The share of pairs that were compared."""
    usual: Usual | None = None
    """The figures at the default threshold."""


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """All approaches over all seeds; `--set` takes seeds, degrees (1.0,0.5), approach and worst (names by ;).

    With `thesaurus` the data set is made from another SKOS file or from `wordnet`, with `city=yes` only the
    replacements. With `typed=yes` all subscriptions have a predicate on the type.
    """
    experiment.check(settings)
    seeds = int(settings.options.get("seeds", 1 if settings.quick else SEEDS))
    degrees = settings.numbers("degrees", DEGREES)
    worst = settings.names("worst", WORST)
    recipe = DatasetRecipe(
        events=(QUICK if settings.quick else DatasetRecipe()).events,
        thesaurus=settings.options.get("thesaurus", ""),
        typed=_is_wanted(settings, "typed"),
        city=_is_wanted(settings, "city"),
    )
    laboratory = make_laboratory(settings)
    chosen, skipped = _runnable(choose(settings.names("approach", ())), laboratory)
    for note in skipped:
        settings.say(note)
    results: list[Result] = []
    examples: list[ExperimentReport] = []
    for seed in range(1, seeds + 1):
        data = build_thematic(replace(recipe, seed=seed), data=settings.data)
        for degree in degrees:
            trial = Trial(data if degree == 1 else data.approximated(degree), laboratory)
            results += _try_all(trial, chosen, degree=degree, settings=settings)
            if degree == 1:
                reworded = Trial(data.reworded(), laboratory)
                results += _try_all(reworded, chosen, degree=degree, reworded=True, settings=settings)
            if not examples and degree == 1:
                examples = [worst_subscriptions(trial, approach) for approach in _named(chosen, worst)]
    reports = [summary(results, degree) for degree in degrees if degree]
    if 1.0 in degrees:
        reports.append(summary(results, 1.0, reworded=True))
    reports.append(at_usual(results))
    _draw(results, settings)
    return [*reports, *examples, *([ExperimentReport("skipped", [], skipped)] if skipped else [])]


def _is_wanted(settings: ExperimentSettings, name: str) -> bool:
    """Whether an option is `yes`; raises an error unless it is yes or no."""
    answer = settings.options.get(name, "no")
    if answer not in ("yes", "no"):
        raise BuildError(f"{name} is {answer!r}", hint=f"--set {name}=yes or {name}=no")
    return answer == "yes"


def summary(results: Sequence[Result], degree: float, *, reworded: bool = False) -> ExperimentReport:
    """A row for each approach: three figures together and one alone, mean and spread over the seeds."""
    rows: list[Row] = []
    for approach in dict.fromkeys(result.approach for result in results):
        kept = (result for result in results if result.degree == degree and result.reworded == reworded)
        own = [result for result in kept if result.approach == approach]
        rows.append({"approach": approach.name, **_figures(own), **({} if reworded else _targets(approach, degree))})
    notes = [
        "together, alone: mean of the subscriptions' maximal F1; ± is the standard deviation over seeds",
        f"held out: together and alone on the seeds after {CHOSEN_ON}, on which nothing was tuned",
        "pairs: the share of pairs of subscription and event whose words are compared at all",
        "curve: maximum on the 11-point interpolated curve; global: mean F1 at the best single threshold (at)",
    ]
    if degree == DEGREES[1]:
        notes.append(
            f"target at 50 %: {HALF} for the best; the best here is {max(_together(results, degree), default=0):.3f}"
        )
    title = f"Matching quality at {degree:.0%} approximation, {_count(results)} seeds"
    if reworded:
        title += ", subscribers in their own words"
        notes.append("half of the subscriptions' terms are also replaced by other words, so synonyms compete")
    return ExperimentReport(title, rows, notes)


def at_usual(results: Sequence[Result]) -> ExperimentReport:
    """A row for each approach with a default threshold and each kind of subscription: its figures there."""
    rows: list[Row] = []
    for approach, degree, reworded in dict.fromkeys(
        (result.approach, result.degree, result.reworded) for result in results
    ):
        same = (
            result
            for result in results
            if (result.approach, result.degree, result.reworded) == (approach, degree, reworded)
        )
        by_seed = [(result.seed, result.usual) for result in same if result.usual is not None]
        if by_seed:
            words = "own words" if reworded else f"{degree:.0%}"
            rows.append({"approach": approach.name, "~": words, **usual_figures(by_seed, chosen_on=CHOSEN_ON)})
    notes = [
        "~: the share of terms that are approximate; own words: all of them, and half of them replaced by other words",
        "precision, recall and F1 are means over subscriptions; a subscription that gets nothing has precision 0",
    ]
    return ExperimentReport(f"At the usual threshold, {_count(results)} seeds", rows, notes)


def worst_subscriptions(trial: Trial, approach: ComparedApproach, *, count: int = 8) -> ExperimentReport:
    """The subscriptions with the lowest F1, with the best-scored wrong event and the worst-scored right one."""
    scores = trial.scores(approach)
    best_f1 = quality(scores, trial.data.truth).each
    rows: list[Row] = []
    for i in np.argsort(best_f1, kind="stable")[:count]:
        right = trial.data.truth[i]
        wrong_best = int(np.argmax(np.where(right, -1, scores[i])))
        right_worst = int(np.argmin(np.where(right, scores[i], 2)))
        rows.append(
            {
                "F1": float(best_f1[i]),
                "subscription": format_subscription(trial.data.subscriptions[i]),
                "wrong event": f"{scores[i, wrong_best]:.2f} {_event_text(trial.data, wrong_best)}",
                "right event": f"{scores[i, right_worst]:.2f} {_event_text(trial.data, right_worst)}",
            }
        )
    return ExperimentReport(
        f"Worst subscriptions of {approach.name}", rows, ["score and words of the two extreme events"]
    )


def make_laboratory(settings: ExperimentSettings) -> Laboratory:
    """Measures over the spaces given by the user, or over wordnet and wikipedia."""
    folder = settings.data or data_folder()
    named = {name: path for path in settings.spaces for name in ("wordnet", "wikipedia") if name in str(path)}
    return Laboratory(
        wordnet=named.get("wordnet", "wordnet"),
        wikipedia=named.get("wikipedia", "wikipedia"),
        thesaurus=read_eurovoc(folder / "eurovoc" / "eurovoc.yaml"),
        taxonomy=folder / "iptc" / "mediatopics-en-GB.json",
    )


def _runnable(chosen: Sequence[ComparedApproach], laboratory: Laboratory) -> tuple[list[ComparedApproach], list[str]]:
    reasons = {approach: laboratory.missing(approach) for approach in chosen}
    skipped = [f"skipped {approach.name}: {why}" for approach, why in reasons.items() if why]
    return [approach for approach, why in reasons.items() if not why], skipped


def _named(chosen: Sequence[ComparedApproach], names: Sequence[str]) -> list[ComparedApproach]:
    return [approach for approach in chosen if approach.name in names] or list(chosen[-1:])


def _try_all(
    trial: Trial,
    chosen: Sequence[ComparedApproach],
    *,
    degree: float,
    settings: ExperimentSettings,
    reworded: bool = False,
) -> Iterator[Result]:
    truth, seed = trial.data.truth, trial.data.recipe.seed
    for approach in chosen:
        scores = trial.scores(approach)
        lone = trial.scores(approach, alone=True) if "contrast" in approach.wrap else scores
        together = quality(scores, truth)
        alone = quality(lone, truth) if lone is not scores else together
        usual = Usual.of(scores, lone, truth, threshold=trial.laboratory.usual_threshold(approach))
        words = ", own words" if reworded else ""
        settings.say(f"seed {seed}, {degree:.0%}{words}: {approach.name} {together.mean_max_f1:.3f}")
        yield Result(approach, degree, seed, reworded, together, alone, trial.compared(approach), usual)


def _figures(results: Sequence[Result]) -> Row:
    together = np.array([result.together.mean_max_f1 for result in results])
    alone = np.array([result.alone.mean_max_f1 for result in results])
    return {
        "together": float(together.mean()),
        "±": float(together.std()),
        "alone": float(alone.mean()),
        "alone ±": float(alone.std()),
        **_held_out(results),
        "curve": float(np.mean([result.together.curve_max_f1 for result in results])),
        "global": float(np.mean([result.together.global_f1 for result in results])),
        "at": float(np.mean([result.together.global_threshold for result in results])),
        "alone curve": float(np.mean([result.alone.curve_max_f1 for result in results])),
        "alone global": float(np.mean([result.alone.global_f1 for result in results])),
        "pairs": float(np.mean([result.compared for result in results])),
    }


def _held_out(results: Sequence[Result]) -> Row:
    late = [result for result in results if result.seed > CHOSEN_ON]
    if not late:
        return {}
    return {
        "held out": float(np.mean([result.together.mean_max_f1 for result in late])),
        "alone held out": float(np.mean([result.alone.mean_max_f1 for result in late])),
    }


def _targets(approach: ComparedApproach, degree: float) -> Row:
    return {"target": approach.target, "alone target": approach.alone} if degree == 1 else {}


def _together(results: Sequence[Result], degree: float) -> list[float]:
    names = dict.fromkeys(result.approach for result in results if result.approach.measure != "eurovoc")
    return [
        float(np.mean([r.together.mean_max_f1 for r in results if r.approach == name and r.degree == degree]))
        for name in names
    ]


def _count(results: Sequence[Result]) -> int:
    return len({result.seed for result in results})


def _event_text(data: ThematicDataset, at: int) -> str:
    return ", ".join(f"{attribute}: {value}" for attribute, value in data.events[at].tuples)


def _draw(results: Sequence[Result], settings: ExperimentSettings) -> None:
    for degree, reworded in dict.fromkeys((result.degree, result.reworded) for result in results if result.degree):
        rows = [
            {"approach": row["approach"], "who": company, "F1": row[company]}
            for row in summary(results, degree, reworded=reworded).rows
            for company in ("together", "alone")
        ]
        words = ", in their own words" if reworded else ""
        title = f"Mean maximal F1, {degree:.0%} approximate{words}"
        spec = bars(rows, name="approach", value="F1", colour="who", title=title)
        settings.draw(f"matching-{round(100 * degree)}{'-own-words' if reworded else ''}", spec)


experiment = Experiment("matching", "F1 of every approach on the thematic data set, together and alone", run, KNOWS)
