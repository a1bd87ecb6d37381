"""Labelled pairs as streams have them, made from the list of other names: things, their states and their quantities.

A subscription says `lamp turned on`; makers say `light switched on`, `lamp off`, `door opened`, or only `on`. All pairs
are made twice: with the list of other names at hand, and without it (`… of trades`), as if the list did not know them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from likewise.evaluation.learning.adaptation import Described
from likewise.evaluation.learning.pair import Pair, either
from likewise.events import normalise
from likewise.semantics import PHRASES_OF_STATES, OtherNames, WordNet

BESIDE: Final = 6
"""Sets of other names at most this many lines apart are taken for one field."""

OF_TRADES: Final = " of trades"
"""The ending of sources for which the list of other names is hidden."""

COMMON_STATES: Final = 6
"""A state is said in one of this many of the first words of its line."""

QUANTITIES: Final = (
    ("temperature", "temp"),
    ("pressure",),
    ("level",),
    ("speed", "velocity"),
    ("humidity", "moisture"),
    ("flow", "flow rate"),
    ("voltage",),
    ("current",),
    ("power", "power draw"),
    ("energy use", "energy consumption", "energy usage"),
    ("vibration",),
    ("weight", "mass"),
    ("number", "count"),
    ("position", "location"),
    ("concentration",),
    ("frequency",),
    ("duration", "running time", "time"),
    ("cost", "price"),
    ("age",),
    ("setpoint", "target value"),
    ("alarm", "alert"),
    ("fault", "failure", "malfunction"),
    ("sensor", "detector"),
    ("maintenance", "servicing"),
    ("door",),
    ("pump",),
    ("valve",),
    ("motor",),
    ("filter",),
    ("battery",),
)
"""What is said of a thing, in several words: quantities, parts and troubles."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing with its sure names, and the place of its set in the list."""

    names: tuple[str, ...]
    place: int


def field_pairs(names: OtherNames, rng: random.Random, *, banned: frozenset[str]) -> Iterator[Pair]:
    """All pairs made from the list of other names."""
    yield from other_name_pairs(names, rng, banned=banned)
    things = _things(names, banned)
    for at in rng.sample(range(len(things)), min(len(things), 6000)):
        made = [*_state_pairs(things, at, rng), *_quantity_pairs(things, at, rng)]
        yield from made
        yield from (Pair(p.subscription, p.event, p.kind, p.source + OF_TRADES, p.concept) for p in made)


def other_name_pairs(names: OtherNames, rng: random.Random, *, banned: frozenset[str]) -> Iterator[Pair]:
    """Two names of the same thing, and names of two things.

    Sets that stand near each other in the list are of one field.
    """
    sets = [found for found in names.sets if len(found) > 1 and banned.isdisjoint(normalise(name) for name, _ in found)]
    for at, found in enumerate(sets):
        first, _ = found[0]
        second, sure = rng.choice(found[1:])
        near = [*sets[max(0, at - BESIDE) : at], *sets[at + 1 : at + 1 + BESIDE]]
        for source in ("other names", f"names{OF_TRADES}"):
            yield Pair(*either(first, second, rng), "other name" if sure else "unsure name", source, first)
            yield Pair(first, rng.choice(rng.choice(sets))[0], "random", source, first)
        if near:
            yield Pair(first, rng.choice(rng.choice(near))[0], "beside", f"names{OF_TRADES}", first)


def description_pairs(
    things: Sequence[Described], rng: random.Random, *, confused: Mapping[str, str] | None = None
) -> Iterator[Pair]:
    """A description of a thing beside its names and other descriptions, and beside those of other things.

    `confused` has the name of another thing with which each description is most easily confused.
    """
    source = f"descriptions{OF_TRADES}"
    for at, thing in enumerate(things):
        concept = thing.names[0]
        near = [*things[max(0, at - BESIDE) : at], *things[at + 1 : at + 1 + BESIDE]]
        stranger = rng.choice(things)
        for description in thing.descriptions[:2]:
            yield Pair(*either(description, rng.choice(thing.names), rng), "description", source, concept)
            yield Pair(*either(description, rng.choice(rng.choice(near).names), rng), "beside", source, concept)
            yield Pair(*either(description, rng.choice(stranger.names), rng), "random", source, concept)
            if confused and description in confused:
                yield Pair(*either(description, confused[description], rng), "nearest beside", source, concept)
        first, *others = thing.descriptions
        if others:
            yield Pair(first, rng.choice(others), "described twice", source, concept)
        yield Pair(first, rng.choice(rng.choice(near).descriptions), "described beside", source, concept)
        yield Pair(first, rng.choice(stranger.descriptions), "described at random", source, concept)


def _things(names: OtherNames, banned: frozenset[str]) -> list[Thing]:
    """The sets that name things which can have states: short names whose last word is a noun and no state."""
    wordnet = WordNet.load()
    states = {word for sides in PHRASES_OF_STATES for side in sides for phrase in side for word in phrase.split()}
    found = []
    for place, named in enumerate(names.sets):
        sure = tuple(name for name, certain in named if certain)
        if not sure or not banned.isdisjoint(map(normalise, sure)):
            continue
        words = sure[0].split()
        last = words[-1]
        noun = wordnet.senses(last, part="noun") and not last.endswith(("ed", "ing"))
        if len(words) < 3 and noun and states.isdisjoint(words):
            found.append(Thing(sure, place))
    return found


def _other(things: Sequence[Thing], at: int, rng: random.Random) -> tuple[str, str]:
    """The names of a thing of the same field, and of any other."""
    near = [place for place in range(max(0, at - BESIDE), min(len(things), at + BESIDE + 1)) if place != at]
    return things[rng.choice(near)].names[0], rng.choice(things).names[0]


def _state_pairs(things: Sequence[Thing], at: int, rng: random.Random) -> Iterator[Pair]:
    """`lamp on` beside the same in other words, the opposite state, another state, another thing, and one half."""
    thing = things[at]
    name, same = thing.names[0], rng.choice(thing.names)
    beside, stranger = _other(things, at, rng)
    sides = rng.choice(PHRASES_OF_STATES)
    mine, theirs = sides if rng.random() < 0.5 else sides[::-1]
    state, other_word = (rng.choice(mine[:COMMON_STATES]) for _ in range(2))
    opposite, elsewhere = rng.choice(theirs[:COMMON_STATES]), rng.choice(rng.choice(PHRASES_OF_STATES)[0])
    before = rng.random() < 0.2
    said = _described(_said(name, state, before=before), name, state, rng)
    pairs = (
        ("other name", said, _said(same, state, before=rng.random() < 0.2)),
        ("state in other words", said, _said(same, other_word, before=False)),
        ("opposite state", said, _said(same, opposite, before=before)),
        ("other state", said, _said(name, elsewhere, before=False)),
        ("beside in this state", said, _said(beside, state, before=before)),
        ("random in this state", said, _said(stranger, rng.choice((state, other_word)), before=False)),
        ("random", said, _said(stranger, elsewhere, before=False)),
        ("state alone", said, rng.choice((state, other_word))),
        ("opposite state", said, opposite),
        ("thing alone", said, same),
        ("thing in a state", name, _said(same, state, before=False)),
        ("random in a state", name, _said(stranger, state, before=False)),
    )
    for kind, subscription, event in pairs:
        if subscription != event:
            yield Pair(subscription, event, kind, "states", name)


def _said(name: str, state: str, *, before: bool) -> str:
    return f"{state} {name}" if before else f"{name} {state}"


def _described(said: str, name: str, state: str, rng: random.Random) -> str:
    """The same as a sentence, for one of three."""
    if rng.random() < 2 / 3:
        return said
    return rng.choice((f"{name} is {state}", f"the {name} has been {state}", f"there is {name} {state}"))


def _quantity_pairs(things: Sequence[Thing], at: int, rng: random.Random) -> Iterator[Pair]:
    """`tank level` beside the same in other words, another quantity, another thing, and one half."""
    thing = things[at]
    name, same = thing.names[0], rng.choice(thing.names)
    beside, stranger = _other(things, at, rng)
    quantity, other = rng.sample(QUANTITIES, 2)
    mine, again = rng.choice(quantity), rng.choice(quantity)
    said = f"{name} {mine}"
    if rng.random() < 1 / 3:
        said = rng.choice((f"what the {mine} of the {name} is", f"{mine} that the {name} has"))
    pairs = (
        ("other name", said, rng.choice((f"{same} {again}", f"{again} of {same}", f"{again} of the {same}"))),
        ("other quantity", said, f"{same} {rng.choice(other)}"),
        ("beside with this quantity", said, f"{beside} {again}"),
        ("random with this quantity", said, f"{stranger} {again}"),
        ("random", said, f"{stranger} {rng.choice(other)}"),
        ("wider", said, again),
        ("part of it", said, same),
        ("quantity of a thing", mine, f"{same} {again}"),
        ("with a quantity", name, f"{same} {mine}"),
    )
    for kind, subscription, event in pairs:
        if subscription != event:
            yield Pair(subscription, event, kind, "quantities", name)


__all__ = ["OF_TRADES", "description_pairs", "field_pairs", "other_name_pairs"]
