"""An explanation as a person would say it: the verdict in words first, then numbers, concepts on request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.matching.explain import Explanation, PredicateStep

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
