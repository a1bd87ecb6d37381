"""Explanations: why an event matches a subscription, or why not.

A person reads the verdict in words first, then the numbers of each predicate, and concepts on request.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.events import Event, Value, normalise
from likewise.language import Operator, Predicate, Profile, Range, format_predicate
from likewise.matching.background import Commonness, enough_jointly
from likewise.matching.definition import MatrixParts
from likewise.matching.encoding import TEXT, kind_of, term_of
from likewise.matching.match import best_assignments, row_probabilities
from likewise.matching.settings import Aggregation, Settings, aggregate
from likewise.semantics import Evidence, Measure, Shared


@dataclass(frozen=True, slots=True)
class PredicateStep:
    """One predicate: what answers it, how well, and where the score stands after it."""

    predicate: str
    answer: tuple[str, Value] | None
    attribute_exact: bool
    value_exact: bool
    attribute_similarity: float
    value_similarity: float
    similarity: float
    probability: float
    running: float
    without_themes: float | None = None
    shared: tuple[Shared, ...] = ()
    attribute_evidence: tuple[Shared, ...] = ()
    """The bits for and against the attribute, where terms are weighed by evidence."""
    value_evidence: tuple[Shared, ...] = ()
    """The same for the value."""
    apart: str = ""
    """Where it failed: which tuple the measure holds apart, however related, because of opposites or codes."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every step, the verdict, and for a non-match what failed and what would have been enough."""

    subscription: str
    event: str
    approach: str
    aggregation: str
    score: float
    threshold: float
    steps: tuple[PredicateStep, ...]
    failing: int | None = None
    enough: float | None = None
    note: str = ""
    prior: float | None = None
    """Where the stream is known: how likely its events answer all predicates before words are compared, in bits."""

    @property
    def matched(self) -> bool:
        """Whether the event matches."""
        return self.failing is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"matched": self.matched}

    def text(self, *, full: bool = False) -> str:
        """For people: the verdict in words, then numbers; `full` adds the score so far and the shared concepts."""
        return "\n".join([verdict(self), *self._details()] if full else summary_lines(self))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        return f"<Explanation: {self.subscription} {verdict} {self.event}, score {self.score:.3f}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"

    def _details(self) -> list[str]:
        verdict = "matches" if self.matched else "does not match"
        head = f"{self.subscription} {verdict} {self.event}: score {self.score:.3f}, threshold {self.threshold:.3f}"
        lines = [f"{head} ({self.approach}, {self.aggregation})"]
        if self.prior is not None:
            share = 1 / (1 + 2**-self.prior)
            lines.append(f"  {self.prior:+.1f} prior: about {share:.0%} of the stream's events may answer all of it")
        for number, step in enumerate(self.steps):
            lines += _lines(step, failed=number == self.failing)
        if self.failing is not None:
            lines.append(f"  why not: {self.why_not}")
        return lines

    @property
    def why_not(self) -> str:
        """The predicate that failed and what would have been enough; empty for a match."""
        if self.failing is None:
            return ""
        step = self.steps[self.failing]
        reached = f"{step.predicate} reaches {step.similarity:.3f}"
        if self.note:
            return f"{reached}; {self.note}"
        if step.apart:
            return f"{reached}; {step.apart}"
        if self.enough is None:
            return f"{reached}, and even 1 would not be enough: others are too low as well"
        return f"{reached}, {self.enough:.3f} would have been enough"


def _lines(step: PredicateStep, *, failed: bool) -> list[str]:
    mark = "✗" if failed else "•"
    if step.answer is None:
        return [f"  {mark} {step.predicate}  ↔  nothing answers it  score so far {step.running:.3f}"]
    name, value = step.answer
    kinds = " × ".join(
        f"{what} {'exact' if exact else '~'} {score:.3f}"
        for what, exact, score in (
            ("attribute", step.attribute_exact, step.attribute_similarity),
            ("value", step.value_exact, step.value_similarity),
        )
    )
    out = [
        f"  {mark} {step.predicate}  ↔  {name}: {value}",
        f"      similarity {step.similarity:.3f} = {kinds}, probability {step.probability:.3f},"
        f" score so far {step.running:.3f}",
    ]
    if step.without_themes is not None:
        out.append(f"      without themes {step.without_themes:.3f}, so they changed it by"
                   f" {step.similarity - step.without_themes:+.3f}")  # fmt: skip
    for what, evidence in (("attribute", step.attribute_evidence), ("value", step.value_evidence)):
        out += [f"      {what}: {weight.weight:+.1f} {weight.concept}" for weight in evidence]
    if step.shared:
        out.append("      shared: " + ", ".join(f"{one.concept} ({one.weight:.3f})" for one in step.shared))
    return out


def explain(
    name: str,
    profile: Profile,
    event: Event,
    settings: Settings,
    *,
    parts: MatrixParts,
    plain: MatrixParts | None,
    measure: Measure | None,
    beside: Measure | None,
    distinct: bool,
    commonness: Commonness,
    out_of_topics: Sequence[int] = (),
) -> Explanation:
    """The explanation of one pair; `plain` are its matrices without themes, `out_of_topics` what meets no topic.

    `beside` is the measure of values, which may know those of the stream; `commonness` says how common answers to the
    predicates are there.
    """
    combined = parts.combined
    columns = _chosen(combined, distinct=distinct)
    shares = row_probabilities(combined) if combined.size else combined
    steps: list[PredicateStep] = []
    reached: list[float] = []
    for row, predicate in enumerate(profile.predicates):
        column = columns[row]
        found = 0.0 if column is None or row in out_of_topics else float(combined[row, column])
        reached.append(found)
        running = aggregate(reached, settings.aggregation, commonness=commonness.some(range(row + 1)))
        if column is None:
            steps.append(PredicateStep(format_predicate(predicate), None, False, False, 0.0, 0.0, 0.0, 0.0, running))
            continue
        said = event.tuples[column]
        steps.append(
            PredicateStep(
                format_predicate(predicate),
                said,
                not (predicate.attribute_approximate and measure is not None),
                not (predicate.value_approximate and measure is not None),
                float(parts.attributes[row, column]),
                float(parts.values[row, column]),
                found,
                float(shares[row, column]),
                running,
                None if plain is None else float(plain.combined[row, column]),
                _reasons(predicate, said, measure, profile=profile, event=event, settings=settings),
                *_evidence(
                    predicate, said, (measure, beside), parts=(parts.attributes[row, column], parts.values[row, column])
                ),
            )
        )
    score = aggregate(reached, settings.aggregation, commonness=commonness)
    failing = None if score > 0 and score >= settings.threshold - 1e-6 else int(np.argmin(reached))
    if failing is not None and measure is not None:
        kept_off = _held_apart(profile.predicates[failing], event, measure, near=parts.attributes[failing])
        steps[failing] = replace(steps[failing], apart=kept_off)
    return Explanation(
        name,
        event.id,
        str(settings.approach),
        settings.aggregation.value,
        score,
        settings.threshold,
        tuple(steps),
        failing,
        None if failing is None else enough_for(reached, failing, settings, commonness),
        "its topics and the event's have nothing in common" if failing is not None and failing in out_of_topics else "",
        _prior(commonness) if settings.aggregation is Aggregation.JOINT else None,
    )


def _prior(commonness: Commonness) -> float | None:
    rate = commonness.base_rate
    return float(np.log2(rate / (1 - rate))) if commonness.known and rate < 1 else None


def enough_for(
    reached: Sequence[float], failing: int, settings: Settings, commonness: Commonness | None = None
) -> float | None:
    """The similarity of one predicate with which the others would do; None if there is none up to 1.

    >>> from likewise.matching.settings import Approach
    >>> settings = Settings(Approach("approximate"), 0.5, 1, Aggregation.GEOMETRIC)
    >>> enough_for([0.1, 1.0], 0, settings), enough_for([0.0, 0.1], 0, settings)
    (0.25, None)
    """
    others = [value for at, value in enumerate(reached) if at != failing]
    if settings.aggregation is Aggregation.MEAN:
        needed = settings.threshold * len(reached) - sum(others)
    elif settings.aggregation is Aggregation.JOINT:
        known = Commonness.unknown([True] * len(reached)) if commonness is None else commonness
        order = [*(at for at in range(len(reached)) if at != failing), failing]
        needed = enough_jointly(others, settings.threshold, commonness=known.some(order))
    elif settings.aggregation is Aggregation.CAUTIOUS:
        needed = _enough_cautious(others, settings.threshold)
    else:
        total = settings.threshold ** (1 if settings.aggregation is Aggregation.PRODUCT else len(reached))
        rest = float(np.prod(others)) if others else 1.0
        needed = total / rest if rest > 0 else np.inf
    return float(needed) if needed <= 1 else None


def _enough_cautious(others: Sequence[float], threshold: float) -> float:
    """Where the predicate that is asked for is the weakest, it counts twice; else another one does."""
    count, rest = len(others) + 1, float(np.prod(others)) if others else 1.0
    weakest = min(others, default=1.0)
    if rest <= 0:
        return np.inf
    itself = float((threshold**2 / rest ** (1 / count)) ** (count / (count + 1)))
    return itself if itself <= weakest else float((threshold**2 / weakest) ** count / rest)


def _chosen(combined: np.ndarray[Any, Any], *, distinct: bool) -> list[int | None]:
    """The tuple of each predicate: of the best mapping, or where there is none, the best of its row."""
    if not combined.shape[1]:
        return [None] * len(combined)
    best = best_assignments(combined, 1, distinct=distinct)
    if best:
        return list(best[0][0])
    return [int(row.argmax()) if row.any() else None for row in combined]


def _reasons(
    predicate: Predicate,
    said: tuple[str, Value],
    measure: Measure | None,
    *,
    profile: Profile,
    event: Event,
    settings: Settings,
) -> tuple[Shared, ...]:
    """The concepts that the two values share, or the two attributes where values are not compared by meaning."""
    if measure is None or isinstance(measure, Evidence):
        return ()
    themes = (profile.theme, event.theme) if settings.approach.base == "thematic" else ((), ())
    pairs = _by_meaning(predicate, said)
    if not pairs or pairs[-1][0] == pairs[-1][1]:
        return ()
    mine, theirs = pairs[-1]
    return tuple(measure.reason(mine, theirs, subscription_theme=themes[0], event_theme=themes[1], limit=3))


def _evidence(
    predicate: Predicate,
    said: tuple[str, Value],
    measures: tuple[Measure | None, Measure | None],
    *,
    parts: tuple[float, float],
) -> tuple[tuple[Shared, ...], tuple[Shared, ...]]:
    """The bits behind both parts of an entry; what its surroundings in the system add is the last of them."""
    measure, beside = measures
    if not isinstance(measure, Evidence) or not isinstance(beside, Evidence):
        return (), ()
    name, value = predicate.attribute, predicate.value
    mine = _weighed(measure, normalise(name), normalise(said[0]), parts[0]) if predicate.attribute_approximate else ()
    by_meaning = _by_meaning(predicate, said)[1 if predicate.attribute_approximate else 0 :]
    if not by_meaning or predicate.operator is not Operator.EQ or isinstance(value, Range):
        return mine, ()
    return mine, _weighed(beside, *by_meaning[0], parts[1])


def _weighed(measure: Evidence, mine: str, theirs: str, reached: float) -> tuple[Shared, ...]:
    weights = [Shared(weight.text, weight.bits, weight.kind) for weight in measure.weights(mine, theirs)]
    if len(weights) == 1 or not 0 < reached < 1:
        return tuple(weights)
    rest = float(np.log2(reached / (1 - reached))) - sum(weight.weight for weight in weights)
    text = "an attribute beside such a value" if rest > 0 else "beside the terms of other subscriptions"
    return (*weights, Shared(text, rest)) if abs(rest) >= 0.05 else tuple(weights)


def _held_apart(predicate: Predicate, event: Event, measure: Measure, *, near: NDArray[np.float64]) -> str:
    """Of the tuples whose words the measure holds apart, the one with the nearest attribute, and the reason."""
    found = [
        (column, why)
        for column, said in enumerate(event.tuples)
        for mine, theirs in _by_meaning(predicate, said)
        if (why := measure.apart(mine, theirs))
    ]
    if not found:
        return ""
    column, why = max(found, key=lambda one: near[one[0]])
    name, value = event.tuples[column]
    return f"{name}: {value} is no answer, since {why}"


def _by_meaning(predicate: Predicate, said: tuple[str, Value]) -> list[tuple[str, str]]:
    """The terms of a predicate and a tuple that a measure compares: attributes, then values."""
    pairs: list[tuple[str, str]] = []
    if predicate.attribute_approximate:
        pairs.append((normalise(predicate.attribute), normalise(said[0])))
    value = predicate.value
    by_meaning = predicate.value_approximate and predicate.operator in (Operator.EQ, Operator.NE)
    if by_meaning and not isinstance(value, Range) and kind_of(value) == kind_of(said[1]) == TEXT:
        pairs.append((term_of(value), term_of(said[1])))
    return pairs


# The explanation as a person would say it.


_NUMBER = re.compile(r" -?\d\.\d\d\b")

_NAMED = 3
"""Reasons in a verdict; more would not be read."""


def verdict(explanation: Explanation) -> str:
    """One line: how sure, what answers what and why, and which subscription matches which event."""
    held = "matches" if explanation.matched else "does not match"
    pair = f"{explanation.subscription} {held} {explanation.event}"
    told = _because(explanation) if explanation.matched else _because_not(explanation)
    return f"{percent(explanation.score)} · {told} · {pair}"


def percent(score: float) -> str:
    """A score as people say it; what is not sure is never 100 %.

    >>> percent(0.917), percent(0.9999), percent(1.0), percent(0.001)
    ('92 %', '99 %', '100 %', '0.1 %')
    """
    if score <= 0 or score >= 1:
        return f"{score:.0%}".replace("%", " %")
    return f"{100 * score:.1f} %" if score < 0.01 else f"{min(99, max(1, round(100 * score)))} %"


def _because(explanation: Explanation) -> str:
    by_meaning = [step for step in explanation.steps if not is_exact(step)]
    exact = len(explanation.steps) - len(by_meaning)
    named = [_answer(step) for step in by_meaning[:_NAMED]]
    if len(by_meaning) > _NAMED:
        named.append(f"{len(by_meaning) - _NAMED} more by meaning")
    if exact:
        only = _answer(next(step for step in explanation.steps if is_exact(step)))
        named.append(only if exact == 1 else f"{exact} predicates hold exactly")
    return ", ".join(named)


def _because_not(explanation: Explanation) -> str:
    step = explanation.steps[explanation.failing or 0]
    if step.answer is None:
        return f"nothing answers {step.predicate}"
    if step.similarity <= 0:
        return f"{_quoted(step)} is no answer to {step.predicate}"
    return f"{_quoted(step)} answers {step.predicate} by {percent(step.similarity)} only"


def _answer(step: PredicateStep) -> str:
    return f"{_quoted(step)} answers {step.predicate} ({reason(step)})"


def _quoted(step: PredicateStep) -> str:
    assert step.answer is not None
    name, value = step.answer
    # Where only the attribute differs, the value alone would not show it.
    return quoted(name, value, named=step.value_similarity >= 1 and not step.attribute_exact)


def quoted(name: str, value: object, *, named: bool) -> str:
    """What an event says, with its attribute where the value alone would not show what answers."""
    return f'"{name}: {value}"' if named else f'"{value}"'


def is_exact(step: PredicateStep) -> bool:
    """Whether a predicate is answered in the same words."""
    return step.similarity >= 1 or (step.attribute_exact and step.value_exact)


def reason(step: PredicateStep) -> str:
    """Why two things are taken for the same, in few words."""
    if is_exact(step):
        return "exact"
    evidence = step.value_evidence if step.value_similarity < 1 else step.attribute_evidence
    if not evidence:
        best = max(step.shared, key=lambda each: each.weight, default=None)
        return "related" if best is None or best.weight <= 0 else f"through {best.concept}"
    # That a word was written out explains the others; it may count against the pair, since it may be wrong.
    written_out = [each for each in evidence if each.kind == "spelling"]
    for_it = [each for each in evidence if each.weight > 0 and each.kind not in ("prior", "extra")]
    chosen = written_out or sorted(for_it, key=lambda each: -each.weight)
    if not chosen:  # what the two have in common, if anything
        chosen = [each for each in evidence if each.kind == "prior" and "common" not in each.concept]
    return _NUMBER.sub("", chosen[0].concept).removeprefix("prior: ") if chosen else "related"


def summary_lines(explanation: Explanation) -> Iterator[str]:
    """The verdict, the numbers of each predicate, and why not; repeated reasons once, with their count."""
    yield verdict(explanation)
    told: Counter[str] = Counter()
    for number, step in enumerate(explanation.steps):
        mark = "✗" if number == explanation.failing else "•"
        if is_exact(step) and step.answer is not None:
            told["exact"] += 1
            continue
        yield f"  {mark} {_numbers(step)}"
    if told["exact"]:
        exact = ", ".join(step.predicate for step in explanation.steps if is_exact(step) and step.answer is not None)
        yield f"  • {told['exact']} x exact: {exact}"
    if explanation.failing is not None:
        yield f"  why not: {explanation.why_not} (threshold {explanation.threshold:.3g})"


def _numbers(step: PredicateStep) -> str:
    if step.answer is None:
        return f"{step.predicate}  ↔  nothing answers it"
    name, value = step.answer
    parts = f"attribute {step.attribute_similarity:.2f} x value {step.value_similarity:.2f}"
    return f"{step.predicate}  ↔  {name}: {value}  {step.similarity:.3f} = {parts}"
