"""Explanations: why an event matches a subscription, or why not.

The text has the result first, then a line for each predicate; the full text adds similarities and weights.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
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
    """One predicate: the tuple that answers it, how well, and the score up to this predicate."""

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
    """Weights in bits for and against the attribute, with the approach evidence."""
    value_evidence: tuple[Shared, ...] = ()
    """Weights in bits for and against the value, with the approach evidence."""
    apart: str = ""
    """For a predicate that failed: a tuple that was ruled out because of opposite words or different codes."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result for one event and one subscription, predicate by predicate.

    For a non-match, `failing` is the weakest predicate and `enough` the similarity that it would have needed.
    """

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
    """With a known stream: log odds, in bits, that an event answers all predicates, before any word is compared."""

    @property
    def matched(self) -> bool:
        """Whether the event matches."""
        return self.failing is None

    @property
    def why_not(self) -> str:
        """The predicate that failed and the similarity it would have needed; empty for a match."""
        if self.failing is None:
            return ""
        step = self.steps[self.failing]
        answered = step.answer is not None
        reached = f"reaches {100 * step.similarity:.1f} %" if answered else "is not answered"
        if self.note or step.apart:
            return f"{step.predicate} {reached}; {self.note or step.apart}"
        if self.enough is None:
            return f"{step.predicate} {reached}, and other predicates are too low as well"
        needed = f", {100 * self.enough:.1f} % would have been enough" if answered else ""
        return f"{step.predicate} {reached}{needed}"

    @property
    def summary(self) -> str:
        """One line: what answers which predicate and why, or for a non-match which predicate fails."""
        return _reasons_for(self) if self.matched else _reason_against(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"matched": self.matched}

    def text(self, *, full: bool = False) -> str:
        """The result, then a line for each predicate; `full` adds similarities, evidence and shared concepts."""
        lines = [self._headline()]
        if full:
            lines += self._settings()
        for number, step in enumerate(self.steps):
            mark = "✗" if number == self.failing else "•"
            lines.append(f"  {mark} {_line(step)}")
            if full:
                lines += [f"      {line}" for line in _details(step)]
        if self.failing is not None:
            lines.append(f"  why not: {self.why_not}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Explanation: {self._pair()}, score {self.score:.3f}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"

    def _pair(self) -> str:
        return f"{self.subscription} {'matches' if self.matched else 'does not match'} {self.event}"

    def _headline(self) -> str:
        if self.matched:
            return f"{self._pair()} with {percent(self.score)}"
        return f"{self._pair()}: {percent(self.score)}, threshold {percent(self.threshold)}"

    def _settings(self) -> list[str]:
        lines = [f"  score {self.score:.3f}, threshold {self.threshold:.3f} ({self.approach}, {self.aggregation})"]
        if self.prior is not None:
            share = 1 / (1 + 2**-self.prior)
            lines.append(
                f"  {self.prior:+.1f} prior: about {share:.0%} of the stream's events may answer all predicates"
            )
        return lines


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
    """Explain one pair of event and profile.

    `plain` are the matrices without themes, `beside` is the measure of values (with the values of a known stream),
    `commonness` is how common answers to the predicates are, `out_of_topics` lists predicates that share no topic.
    """
    combined = parts.combined
    columns = _chosen(combined, distinct=distinct)
    shares = row_probabilities(combined) if combined.size else combined
    steps: list[PredicateStep] = []
    reached: list[float] = []
    for row, predicate in enumerate(profile.predicates):
        column = columns[row]
        similarity = 0.0 if column is None or row in out_of_topics else float(combined[row, column])
        reached.append(similarity)
        running = aggregate(reached, settings.aggregation, commonness=commonness.some(range(row + 1)))
        if column is None:
            steps.append(PredicateStep(format_predicate(predicate), None, False, False, 0.0, 0.0, 0.0, 0.0, running))
            continue
        answer = event.tuples[column]
        steps.append(
            PredicateStep(
                format_predicate(predicate),
                answer,
                not (predicate.attribute_approximate and measure is not None),
                not (predicate.value_approximate and measure is not None),
                float(parts.attributes[row, column]),
                float(parts.values[row, column]),
                similarity,
                float(shares[row, column]),
                running,
                None if plain is None else float(plain.combined[row, column]),
                _shared(predicate, answer, measure, profile=profile, event=event, settings=settings),
                *_evidence(
                    predicate,
                    answer,
                    (measure, beside),
                    parts=(parts.attributes[row, column], parts.values[row, column]),
                ),
            )
        )
    score = aggregate(reached, settings.aggregation, commonness=commonness)
    failing = None if score > 0 and score >= settings.threshold - 1e-6 else int(np.argmin(reached))
    if failing is not None and measure is not None:
        apart = _ruled_out(profile.predicates[failing], event, measure, near=parts.attributes[failing])
        steps[failing] = replace(steps[failing], apart=apart)
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
        "its value and the event share no topic" if failing is not None and failing in out_of_topics else "",
        _prior(commonness) if settings.aggregation is Aggregation.JOINT else None,
    )


def _prior(commonness: Commonness) -> float | None:
    rate = commonness.base_rate
    return float(np.log2(rate / (1 - rate))) if commonness.known and rate < 1 else None


def enough_for(
    reached: Sequence[float], failing: int, settings: Settings, commonness: Commonness | None = None
) -> float | None:
    """The similarity that the failing predicate needs for the score to reach the threshold; None if above 1.

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
    """The similarity that one predicate needs by the cautious mean, in which the weakest predicate counts twice."""
    count, rest = len(others) + 1, float(np.prod(others)) if others else 1.0
    weakest = min(others, default=1.0)
    if rest <= 0:
        return np.inf
    as_weakest = float((threshold**2 / rest ** (1 / count)) ** (count / (count + 1)))
    return as_weakest if as_weakest <= weakest else float((threshold**2 / weakest) ** count / rest)


def _chosen(combined: np.ndarray[Any, Any], *, distinct: bool) -> list[int | None]:
    """The tuple of each predicate in the best mapping, or without a mapping the best of its row."""
    if not combined.shape[1]:
        return [None] * len(combined)
    best = best_assignments(combined, 1, distinct=distinct)
    if best:
        return list(best[0][0])
    return [int(row.argmax()) if row.any() else None for row in combined]


def _shared(
    predicate: Predicate,
    answer: tuple[str, Value],
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
    pairs = _compared_terms(predicate, answer)
    if not pairs or pairs[-1][0] == pairs[-1][1]:
        return ()
    subscribed, published = pairs[-1]
    return tuple(measure.reason(subscribed, published, subscription_theme=themes[0], event_theme=themes[1], limit=3))


def _evidence(
    predicate: Predicate,
    answer: tuple[str, Value],
    measures: tuple[Measure | None, Measure | None],
    *,
    parts: tuple[float, float],
) -> tuple[tuple[Shared, ...], tuple[Shared, ...]]:
    """The weights behind attribute and value; the last weight is what the other terms of the system add."""
    measure, beside = measures
    if not isinstance(measure, Evidence) or not isinstance(beside, Evidence):
        return (), ()
    pairs = _compared_terms(predicate, answer)
    attribute = _weights(measure.for_attributes(), *pairs.pop(0), parts[0]) if predicate.attribute_approximate else ()
    if not pairs or predicate.operator is not Operator.EQ or isinstance(predicate.value, Range):
        return attribute, ()
    return attribute, _weights(beside, *pairs[0], parts[1])


def _weights(measure: Evidence, subscribed: str, published: str, reached: float) -> tuple[Shared, ...]:
    weights = [Shared(weight.text, weight.bits, weight.kind) for weight in measure.weights(subscribed, published)]
    if len(weights) == 1 or not 0 < reached < 1:
        return tuple(weights)
    rest = float(np.log2(reached / (1 - reached))) - sum(weight.weight for weight in weights)
    text = "an attribute beside such a value" if rest > 0 else "beside the terms of other subscriptions"
    return (*weights, Shared(text, rest)) if abs(rest) >= 0.05 else tuple(weights)


def _ruled_out(predicate: Predicate, event: Event, measure: Measure, *, near: NDArray[np.float64]) -> str:
    """A tuple that the measure rules out however related it is (the one with the nearest attribute), and the reason."""
    ruled_out = [
        (column, why)
        for column, answer in enumerate(event.tuples)
        for subscribed, published in _compared_terms(predicate, answer)
        if (why := measure.apart(subscribed, published))
    ]
    if not ruled_out:
        return ""
    column, why = max(ruled_out, key=lambda pair: near[pair[0]])
    name, value = event.tuples[column]
    return f"{name}: {value} is ruled out, since {why}"


def _compared_terms(predicate: Predicate, answer: tuple[str, Value]) -> list[tuple[str, str]]:
    """Pairs of a predicate's and a tuple's terms that a measure compares: attributes, then values."""
    pairs: list[tuple[str, str]] = []
    if predicate.attribute_approximate:
        pairs.append((normalise(predicate.attribute), normalise(answer[0])))
    value = predicate.value
    by_meaning = predicate.value_approximate and predicate.operator in (Operator.EQ, Operator.NE)
    if by_meaning and not isinstance(value, Range) and kind_of(value) == kind_of(answer[1]) == TEXT:
        pairs.append((term_of(value), term_of(answer[1])))
    return pairs


# The explanation in words.


_NUMBER = re.compile(r" -?\d\.\d\d\b")

_MOST_REASONS = 3
"""Predicates that a summary gives a reason for; the rest are counted."""


def percent(score: float) -> str:
    """A score in percent; only 1 is 100 %, and only 0 is 0 %.

    >>> percent(0.917), percent(0.9999), percent(1.0), percent(0.001)
    ('92 %', '99 %', '100 %', '0.1 %')
    """
    if score <= 0 or score >= 1:
        return f"{score:.0%}".replace("%", " %")
    return f"{100 * score:.1f} %" if score < 0.01 else f"{min(99, max(1, round(100 * score)))} %"


def _line(step: PredicateStep) -> str:
    """One predicate, the tuple that answers it, its score and the strongest reason."""
    if step.answer is None:
        return f"{step.predicate}  ↔  no tuple answers it"
    name, value = step.answer
    why = f", {_reason(step)}" if step.similarity > 0 else ""
    return f"{step.predicate}  ↔  {name}: {value}  {percent(step.similarity)}{why}"


def _details(step: PredicateStep) -> list[str]:
    """Similarities, the effect of themes, and the weights or shared concepts behind them."""
    if step.answer is None:
        return [f"score so far {step.running:.3f}"]
    kinds = " × ".join(
        f"{part} {'exact' if exact else '~'} {score:.3f}"
        for part, exact, score in (
            ("attribute", step.attribute_exact, step.attribute_similarity),
            ("value", step.value_exact, step.value_similarity),
        )
    )
    lines = [
        f"similarity {step.similarity:.3f} = {kinds}, probability {step.probability:.3f},"
        f" score so far {step.running:.3f}"
    ]
    if step.without_themes is not None:
        change = step.similarity - step.without_themes
        lines.append(f"without themes {step.without_themes:.3f}, so they changed it by {change:+.3f}")
    for part, evidence in (("attribute", step.attribute_evidence), ("value", step.value_evidence)):
        lines += [f"{part}: {weight.weight:+.1f} {weight.concept}" for weight in evidence]
    if step.shared:
        lines.append("shared: " + ", ".join(f"{shared.concept} ({shared.weight:.3f})" for shared in step.shared))
    return lines


def _reasons_for(explanation: Explanation) -> str:
    by_meaning = [step for step in explanation.steps if not _is_exact(step)]
    exact = [step for step in explanation.steps if _is_exact(step)]
    reasons = [_answer(step) for step in by_meaning[:_MOST_REASONS]]
    if len(by_meaning) > _MOST_REASONS:
        reasons.append(f"{len(by_meaning) - _MOST_REASONS} more by meaning")
    if exact:
        reasons.append(_answer(exact[0]) if len(exact) == 1 else f"{len(exact)} predicates hold exactly")
    return ", ".join(reasons)


def _reason_against(explanation: Explanation) -> str:
    step = explanation.steps[explanation.failing or 0]
    if step.answer is None:
        return f"nothing answers {step.predicate}"
    if step.similarity <= 0:
        return f"{_quoted(step)} does not answer {step.predicate}"
    return f"{_quoted(step)} answers {step.predicate} with only {percent(step.similarity)}"


def _answer(step: PredicateStep) -> str:
    reason = _reason(step).split(" (")[0]  # without the words, which are in the sentence already
    return f"{_quoted(step)} answers {step.predicate} ({reason})"


def _quoted(step: PredicateStep) -> str:
    """The value that answers, with its attribute where only the attribute differs."""
    assert step.answer is not None
    name, value = step.answer
    return f'"{name}: {value}"' if step.value_similarity >= 1 and not step.attribute_exact else f'"{value}"'


def _is_exact(step: PredicateStep) -> bool:
    """Whether a predicate is answered in the same words."""
    return step.similarity >= 1 or (step.attribute_exact and step.value_exact)


def _reason(step: PredicateStep) -> str:
    """The strongest reason for a likely answer, and against an unlikely one, without its number."""
    if _is_exact(step):
        return "exact"
    evidence = step.value_evidence if step.value_similarity < 1 else step.attribute_evidence
    if not evidence:
        best = max(step.shared, key=lambda shared: shared.weight, default=None)
        return "related" if best is None or best.weight <= 0 else f"through {best.concept}"
    # A written-out abbreviation explains the rest, even where it counts against the pair since it may be wrong.
    written_out = [weight for weight in evidence if weight.kind == "spelling"]
    if step.similarity < 0.5 and not written_out:
        opposing = [weight for weight in evidence if weight.weight < 0 and weight.kind != "prior"]
        strongest = min(opposing, key=lambda weight: weight.weight, default=None)
        return "too little evidence" if strongest is None else _in_words(strongest)
    in_favour = [weight for weight in evidence if weight.weight > 0 and weight.kind not in ("prior", "extra")]
    chosen = written_out or sorted(in_favour, key=lambda weight: -weight.weight)
    if not chosen:  # what the two terms have in common, if anything
        chosen = [weight for weight in evidence if weight.kind == "prior" and "common" not in weight.concept]
    return _in_words(chosen[0]) if chosen else "related"


def _in_words(weight: Shared) -> str:
    """A piece of evidence for people.

    >>> _in_words(Shared("sentence embedding 0.77", 7.3, "embedding")), _in_words(Shared("codes", -9.0, "codes"))
    ('close in meaning', 'different codes or numbers')
    """
    text = _NUMBER.sub("", weight.concept).removeprefix("prior: ")
    supporting, opposing = _WORDS.get(weight.kind, (text, text))
    return (supporting if weight.weight > 0 else opposing).format(text)


_WORDS = {
    "embedding": ("close in meaning", "not close in meaning"),
    "esa": ("often in the same articles", "seldom in the same articles"),
    "aligned": ("{}", "not all {}"),
    "worst_subscription": ("the event says all of it", "the event does not say all of it"),
    "worst_event": ("the event says nothing else", "the event says something else"),
    "codes": ("the same codes or numbers", "different codes or numbers"),
    "head": ("the same kind of thing", "different kinds of things"),
}
"""Evidence by its kind: the words where it counts for a pair, and where it counts against."""
