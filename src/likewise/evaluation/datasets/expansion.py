"""Semantic expansion: events with terms replaced by a thesaurus [000 sec 5.2.2, 004 sec 8.2]."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from likewise.errors import BuildError
from likewise.evaluation.datasets.eurovoc import Eurovoc, EurovocRelation
from likewise.evaluation.datasets.seeds import SeedTuples

TermRole: TypeAlias = Literal["attribute", "value"]
Slot: TypeAlias = tuple[TermRole, str]
"""A term and its role: "vehicle" as an attribute is not "vehicle" as a value."""

HOMOGRAPHS = frozenset({"light", "wind", "direction", "unit", "event", "floor", "co", "none"})
"""Words whose only concept in EuroVoc is another sense ("light" is a car's lamp there): never replaced."""

RELATIONS: tuple[EurovocRelation, ...] = ("synonym", "related", "narrower")
"""The paper's own examples replace "city" by "urban area" and "suburb", which are narrower terms of "town"."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The phrases that may replace a seed's attribute or value; no phrase replaces two of them.

    This makes the truth exact: the words alone identify the seed's term.
    """

    variants: Mapping[Slot, tuple[str, ...]]

    def of(self, role: TermRole, term: str) -> tuple[str, ...]:
        """The phrases that may replace a term, without the term itself."""
        return self.variants.get((role, term), ())

    def capacity(self, seed: SeedTuples) -> int:
        """How many different events one seed expands to, without itself."""
        sizes = (1 + len(self.of(role, term)) for role, term in slots(seed))
        return math.prod(sizes) - 1

    def expand(self, seed: SeedTuples, *, count: int, replace: float, rng: random.Random) -> list[SeedTuples]:
        """`count` different expansions; each term is replaced with the given probability, but always at least one."""
        if count > self.capacity(seed):
            raise BuildError(f"a seed has only {self.capacity(seed)} expansions, {count} were requested")
        choices = [(term, *self.of(role, term)) for role, term in slots(seed)]
        if 3 * count > self.capacity(seed):
            return _pairs(rng.sample([c for c in itertools.product(*choices) if c != _first(choices)], count))
        expansions: dict[tuple[str, ...], None] = {}
        while len(expansions) < count:
            drawn = tuple(_draw(options, replace, rng) for options in choices)
            if drawn != _first(choices):
                expansions[drawn] = None
        return _pairs(expansions)


def slots(seed: SeedTuples) -> Iterator[Slot]:
    """Attribute, value, attribute, value … of an event."""
    for attribute, value in seed:
        yield "attribute", attribute
        yield "value", value


def build_expansion(seeds: Iterable[SeedTuples], thesaurus: Eurovoc, *, most: int = 6) -> Expansion:
    """At most `most` phrases for every term of the seeds; a phrase replaces only one term of each role."""
    wanted = sorted({slot for seed in seeds for slot in slots(seed)})
    offered = {slot: list(phrases(slot[1], thesaurus)) for slot in wanted}
    taken = {(role, term.lower()) for role, term in wanted}
    claims = Counter((role, phrase.lower()) for (role, _), options in offered.items() for phrase in options)
    kept = {
        (role, term): tuple(
            phrase for phrase in options if claims[role, phrase.lower()] == 1 and (role, phrase.lower()) not in taken
        )[:most]
        for (role, term), options in offered.items()
    }
    return Expansion({slot: options for slot, options in kept.items() if options})


def phrases(term: str, thesaurus: Eurovoc) -> Iterator[str]:
    """Phrases that may replace a term; of an event type the longest part known to the thesaurus [004 sec 8.2].

    Only event types are phrases made of terms: in names ("Quay Street", "kitchen aid") a part means nothing by itself.

    >>> from likewise.evaluation.datasets.eurovoc import EurovocConcept
    >>> known = Eurovoc({"1": EurovocConcept("1", ("parking area", "parking", "vehicle park"), frozenset({28}))})
    >>> list(phrases("parking occupied event", known))
    ['parking area occupied event', 'vehicle park occupied event']
    """
    words = term.split()
    shortest = 1 if words[-1] == "event" else len(words)
    for length in range(len(words), shortest - 1, -1):
        for start in range(len(words) - length + 1):
            part = " ".join(words[start : start + length])
            others = () if part.lower() in HOMOGRAPHS else thesaurus.variants(part, relations=RELATIONS)
            if others:
                yield from (" ".join((*words[:start], other, *words[start + length :])) for other in others)
                return


def quotas(capacities: Sequence[int], total: int) -> list[int]:
    """Divide a total evenly among seeds, up to the capacity of each.

    >>> quotas([2, 100, 100], 21)
    [2, 10, 9]
    """
    if sum(capacities) < total:
        raise BuildError(
            f"these seeds expand to {sum(capacities)} events at most, {total} were requested",
            hint="ask for fewer events or more seeds",
        )
    shares = [0] * len(capacities)
    left = total
    while left:
        hungry = [i for i, most in enumerate(capacities) if shares[i] < most]
        share, extra = divmod(left, len(hungry))
        for place, i in enumerate(hungry):
            give = min(share + (place < extra), capacities[i] - shares[i])
            shares[i] += give
            left -= give
    return shares


def _draw(options: tuple[str, ...], replace: float, rng: random.Random) -> str:
    if len(options) == 1 or rng.random() >= replace:
        return options[0]
    return rng.choice(options[1:])


def _first(choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(options[0] for options in choices)


def _pairs(flat: Iterable[tuple[str, ...]]) -> list[SeedTuples]:
    return [tuple(zip(terms[::2], terms[1::2], strict=True)) for terms in flat]
