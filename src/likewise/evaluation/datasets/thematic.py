"""The thematic data set: expanded events, subscriptions, themes, and truth by construction [000 sec 5.2].

An event keeps the tuples of the seed that it paraphrases, so its relevance to a subscription is known exactly: every
predicate must be a tuple of the seed, and its exact parts must be in the event word for word.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError, MissingError
from likewise.evaluation.datasets.eurovoc import Eurovoc, read_eurovoc
from likewise.evaluation.datasets.expansion import Expansion, TermRole, build_expansion, quotas, slots
from likewise.evaluation.datasets.lexical import wordnet_thesaurus
from likewise.evaluation.datasets.seeds import SeedTuples, appliances, seed_events
from likewise.evaluation.datasets.skos import read_skos, thesaurus_seeds
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Subscription
from likewise.semantics import WordNet

WORDNET: Final = "wordnet"
"""The only thesaurus that is not a file."""

Truth = NDArray[np.bool_]
"""Relevance: a row per subscription, a column per event."""


@dataclass(frozen=True, slots=True)
class DatasetRecipe:
    """The parameters of a data set; the same recipe always gives the same set."""

    seed: int = 1
    events: int = 14_743
    seeds: int = 166
    subscriptions: int = 94
    approximation: float = 1.0
    replace: float = 0.5
    most_variants: int = 6
    predicates: tuple[int, int] = (2, 4)
    typed: bool = False
    """Whether every subscription has a predicate on the event's type."""
    thesaurus: str = ""
    """A SKOS file or `wordnet` as the source of seeds and replacements; by default city events and EuroVoc."""
    city: bool = False
    """Whether the seeds are city events and only the replacements come from the thesaurus."""

    def __post_init__(self) -> None:
        if not 0 <= self.approximation <= 1:
            raise BuildError(f"approximation is {self.approximation}", hint="give a number from 0 to 1")
        if not 0 < self.replace <= 1:
            raise BuildError(f"replace is {self.replace}", hint="give a probability above 0, at most 1")
        if min(self.events, self.seeds, self.subscriptions, self.predicates[0]) < 1:
            raise BuildError("events, seeds, subscriptions and predicates must be at least 1")


@dataclass(frozen=True)
class ThematicDataset:
    """Events with their seeds, and subscriptions with their relevant events."""

    recipe: DatasetRecipe
    seeds: tuple[SeedTuples, ...]
    events: tuple[Event, ...]
    origins: tuple[int, ...]
    exact: tuple[Profile, ...]
    profiles: tuple[Profile, ...]
    truth: Truth
    expansion: Expansion
    top_terms: tuple[str, ...]
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The approximate subscriptions, named s01, s02 …"""
        width = len(str(len(self.profiles)))
        return tuple(Subscription(f"s{i:0{width}}", profile) for i, profile in enumerate(self.profiles, start=1))

    def approximated(self, degree: float) -> ThematicDataset:
        """The same events and exact subscriptions at another degree of approximation, with its own truth."""
        recipe = replace(self.recipe, approximation=degree)
        rng = random.Random(f"{recipe.seed} {degree}")
        relaxed = [_relax(profile, self, degree=degree, rng=rng) for profile in self.exact]
        profiles = tuple(profile for profile, _ in relaxed)
        truth = np.stack([row for _, row in relaxed])
        dataset = replace(self, recipe=recipe, profiles=profiles, truth=truth)
        return replace(dataset, facts=_facts(dataset))

    def reworded(self, share: float = 0.5) -> ThematicDataset:
        """The same subscriptions with a share of their approximate terms replaced by other words.

        The paper's subscribers all use the same word for the same thing; real ones do not. What is relevant
        stays the same: another word for a term means that term.
        """
        rng = random.Random(f"{self.recipe.seed} reworded {share}")
        profiles = tuple(_reword(profile, self.expansion, share=share, rng=rng) for profile in self.profiles)
        return replace(self, profiles=profiles)

    def themes(self, event_tags: int, subscription_tags: int, *, sample: int = 0) -> tuple[list[str], list[str]]:
        """Tags for all events and for all subscriptions; the smaller set is part of the larger [000 sec 5.2.4]."""
        most = max(event_tags, subscription_tags)
        if not 0 < most <= len(self.top_terms):
            raise BuildError(f"{most} theme tags", hint=f"there are {len(self.top_terms)} top terms to pick from")
        rng = random.Random(f"{self.recipe.seed} themes {event_tags} {subscription_tags} {sample}")
        larger = rng.sample(self.top_terms, most)
        smaller = rng.sample(larger, min(event_tags, subscription_tags))
        return (larger, smaller) if event_tags >= subscription_tags else (smaller, larger)


def data_folder() -> Path:
    """The folder of the experiments' data, from `LIKEWISE_DATA`."""
    given = os.environ.get("LIKEWISE_DATA")
    if not given:
        raise MissingError(
            "the experiments need their data sets, and LIKEWISE_DATA names no folder",
            hint="set LIKEWISE_DATA or give --data; docs/evaluation.md lists the files and where to get them",
        )
    return Path(given)


def build_thematic(recipe: DatasetRecipe | None = None, *, data: Path | None = None) -> ThematicDataset:
    """Build the data set of a recipe from EuroVoc and appliances in the data folder, or from another thesaurus."""
    if recipe is not None and recipe.thesaurus:
        named = recipe.thesaurus
        thesaurus = wordnet_thesaurus(WordNet.load()) if named == WORDNET else read_skos(Path(named))
        devices = appliances((data or data_folder()) / "appliances") if recipe.city else ()
        return generate(recipe, thesaurus=thesaurus, devices=devices)
    folder = data or data_folder()
    thesaurus = read_eurovoc(folder / "eurovoc" / "eurovoc.yaml")
    return generate(recipe or DatasetRecipe(), thesaurus=thesaurus, devices=appliances(folder / "appliances"))


def generate(recipe: DatasetRecipe, *, thesaurus: Eurovoc, devices: tuple[str, ...] = ()) -> ThematicDataset:
    """Build the data set with any thesaurus; without devices the seeds come from the thesaurus too."""
    rng = random.Random(recipe.seed)
    seeds = tuple(
        seed_events(rng, count=recipe.seeds, devices=devices)
        if devices
        else thesaurus_seeds(rng, thesaurus, count=recipe.seeds)
    )
    expansion = build_expansion(seeds, thesaurus, most=recipe.most_variants)
    events, origins = _expand(seeds, expansion, recipe=recipe, rng=rng)
    exact = tuple(_exact_profiles(seeds, recipe=recipe, rng=rng))
    empty: Truth = np.zeros((0, 0), dtype=np.bool_)
    bare = ThematicDataset(
        recipe, seeds, tuple(events), tuple(origins), exact, (), empty, expansion, thesaurus.top_terms
    )
    return bare.approximated(recipe.approximation)


def relevant(profile: Profile, data: ThematicDataset) -> NDArray[np.bool_]:
    """Which events are relevant to one profile [000 sec 5.2.3]."""
    wanted = {(p.attribute, str(p.value)): p for p in profile.predicates}
    answering = {i for i, seed in enumerate(data.seeds) if wanted.keys() <= set(seed)}
    row = np.zeros(len(data.events), dtype=np.bool_)
    for i, (event, origin) in enumerate(zip(data.events, data.origins, strict=True)):
        if origin in answering:
            answers = dict(zip(data.seeds[origin], event.tuples, strict=True))
            row[i] = all(_answers(p, answers[meant]) for meant, p in wanted.items())
    return row


def _answers(predicate: Predicate, answer: tuple[str, object]) -> bool:
    attribute, value = answer
    return (predicate.attribute_approximate or attribute == predicate.attribute) and (
        predicate.value_approximate or value == predicate.value
    )


def _expand(
    seeds: tuple[SeedTuples, ...], expansion: Expansion, *, recipe: DatasetRecipe, rng: random.Random
) -> tuple[list[Event], list[int]]:
    shares = quotas([expansion.capacity(seed) for seed in seeds], recipe.events)
    expanded = [
        (origin, tuples)
        for origin, (seed, share) in enumerate(zip(seeds, shares, strict=True))
        for tuples in expansion.expand(seed, count=share, replace=recipe.replace, rng=rng)
    ]
    # Real streams are mixed, and the order must not reveal the seed.
    rng.shuffle(expanded)
    return [Event(f"e{i:05}", tuples) for i, (_, tuples) in enumerate(expanded, start=1)], [o for o, _ in expanded]


def _exact_profiles(seeds: tuple[SeedTuples, ...], *, recipe: DatasetRecipe, rng: random.Random) -> list[Profile]:
    profiles: dict[frozenset[tuple[str, str]], Profile] = {}
    for _ in range(1000 * recipe.subscriptions):
        seed = rng.choice(seeds)
        size = min(rng.randint(*recipe.predicates), len(seed))
        places = set(rng.sample(range(len(seed)), size))
        if recipe.typed:
            places = {0, *sorted(places - {0})[: size - 1]}
        picked = [seed[i] for i in sorted(places)]
        predicates = tuple(Predicate(attribute, Operator.EQ, value) for attribute, value in picked)
        profiles.setdefault(frozenset(picked), Profile(predicates))
        if len(profiles) == recipe.subscriptions:
            return list(profiles.values())
    raise BuildError(f"too few seeds for {recipe.subscriptions} different subscriptions", hint="ask for more seeds")


def _relax(
    profile: Profile, data: ThematicDataset, *, degree: float, rng: random.Random
) -> tuple[Profile, NDArray[np.bool_]]:
    """Set `~` on this share of attributes and values; drawn again while no event could match."""
    count = 2 * len(profile.predicates)
    for _ in range(50):
        relaxed = set(rng.sample(range(count), round(degree * count)))
        predicates = tuple(
            replace(p, attribute_approximate=2 * i in relaxed, value_approximate=2 * i + 1 in relaxed)
            for i, p in enumerate(profile.predicates)
        )
        relaxed_profile = replace(profile, predicates=predicates)
        row = relevant(relaxed_profile, data)
        if row.any():
            return relaxed_profile, row
    return relaxed_profile, row


def _reword(profile: Profile, expansion: Expansion, *, share: float, rng: random.Random) -> Profile:
    def say(role: TermRole, term: str, approximate: bool) -> str:
        others = expansion.of(role, term) if approximate else ()
        return rng.choice(others) if others and rng.random() < share else term

    predicates = tuple(
        replace(
            p,
            attribute=say("attribute", p.attribute, p.attribute_approximate),
            value=say("value", str(p.value), p.value_approximate),
        )
        for p in profile.predicates
    )
    return replace(profile, predicates=predicates)


def _facts(data: ThematicDataset) -> dict[str, float]:
    """How heterogeneous the data set is, for comparison with the paper's figures."""
    pairs = [
        (before, after)
        for event, origin in zip(data.events, data.origins, strict=True)
        for before, after in zip(data.seeds[origin], event.tuples, strict=True)
    ]
    terms = {slot for seed in data.seeds for slot in slots(seed)}
    return {
        "events": len(data.events),
        "seeds": len(data.seeds),
        "subscriptions": len(data.profiles),
        "terms": len(terms),
        "terms with variants": len(data.expansion.variants),
        "tuples replaced": sum(before != after for before, after in pairs) / len(pairs),
        "attributes replaced": sum(before[0] != after[0] for before, after in pairs) / len(pairs),
        "values replaced": sum(before[1] != after[1] for before, after in pairs) / len(pairs),
        "equivalent exact subscriptions": sum(_equivalents(p, data.expansion) for p in data.profiles),
        "relevant pairs": int(data.truth.sum()),
        "relevant events per subscription": float(data.truth.sum(axis=1).mean()),
        "fewest relevant events": int(data.truth.sum(axis=1).min()),
        "most relevant events": int(data.truth.sum(axis=1).max()),
    }


def _equivalents(profile: Profile, expansion: Expansion) -> int:
    return math.prod(
        (1 + p.attribute_approximate * len(expansion.of("attribute", p.attribute)))
        * (1 + p.value_approximate * len(expansion.of("value", str(p.value))))
        for p in profile.predicates
    )


def describe(data: ThematicDataset) -> dict[str, object]:
    """Recipe and facts as plain values, for a manifest."""
    return {"recipe": asdict(data.recipe), "facts": data.facts}
