"""Names of devices and kinds of devices: how often a join finds the right kind.

Three lists are generated, from WordNet and from a list of appliances; the join's parameters were tuned on lists like
these. The fourth, `devices.csv`, was written by hand and not used for tuning. Nor were those of `names.csv` (devices of
an airport, hospital equipment, groceries, inventories with makers and models), which were written before any score was
seen. In every list some names are strangers: their kind is not in the list, so any partner they get is wrong.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from likewise.semantics.wordnet.wordnet import WordNet

MODIFIERS = """lobby; second floor; north; old; wireless; spare; rooftop; kitchen; cellar; portable; large; small;
industrial; workshop; guest room; blue; main; auxiliary; Acme; Nordwind"""
KINDS = 40
STRANGE = 5
"""One in this number of kinds with names is left out of a generated list."""
WRITTEN_BEFORE = ("airport", "hospital", "groceries", "hotel inventory", "hospital inventory", "office inventory")
"""The lists of `names.csv`; the inventories have strangers of their own."""
NOBODY = ""
"""The kind of a stranger."""
SEEDS = 4


@dataclass(frozen=True)
class NameList:
    """Kinds, and names, each of one of the kinds or a stranger."""

    what: str
    kinds: list[str]
    names: list[str]
    truth: list[str]


def name_lists(data: Path) -> Iterator[NameList]:
    """All lists; the generated ones with several seeds."""
    wordnet = WordNet.load()
    for seed in range(SEEDS):
        yield _listed("WordNet", list(_hyponyms(wordnet, random.Random(seed))), random.Random(seed))
        yield _listed("shared head words", list(_same_heads(wordnet, random.Random(seed))), random.Random(seed))
    appliances = _appliances(data)
    for seed in range(2):
        chosen = random.Random(seed).sample(appliances, min(KINDS, len(appliances)))
        yield _listed("appliances", chosen, random.Random(seed))
    yield _by_hand()
    for what in WRITTEN_BEFORE:
        yield written_before(what, strangers="inventory" not in what)


def _listed(what: str, kinds: Sequence[tuple[str, list[str]]], chance: random.Random) -> NameList:
    """The names of each kind and the kind itself, most of them with a modifier or a number; the last are strangers."""
    modifiers = [word.strip() for word in MODIFIERS.split(";")]
    names, truth = list[str](), list[str]()
    known = [kind for kind, _ in kinds[: -(len(kinds) // STRANGE)]]
    for kind, terms in kinds:
        for term in (*terms, kind):
            dice = chance.random()
            if dice < 0.45 and term != kind:
                name = term
            elif dice < 0.8:
                name = f"{chance.choice(modifiers)} {term}"
            else:
                name = f"{term} {chance.choice('ABCDEF')}{chance.randint(1, 99)}"
            names.append(name)
            truth.append(kind if kind in known else NOBODY)
    return NameList(what, known, names, truth)


def _instruments(wordnet: WordNet) -> list[int]:
    """All synsets below `instrumentality`, broader ones before narrower ones."""
    senses = wordnet.senses("instrumentality", part="noun")
    found = {next(sense.synset for sense in senses if "instrumentation" in wordnet.words(sense.synset)): None}
    order = list(found)
    for synset in order:
        for below in wordnet.pointers(synset, ["~"]):
            if below not in found:
                found[below] = None
                order.append(below)
    return order


def _below(wordnet: WordNet, synset: int) -> set[int]:
    found, pending = {synset}, [synset]
    while pending:
        for narrower in wordnet.pointers(pending.pop(), ["~"]):
            if narrower not in found:
                found.add(narrower)
                pending.append(narrower)
    return found


def _plain(word: str) -> bool:
    return word.isascii() and word.islower() and len(word.split()) <= 2


def _hyponyms(wordnet: WordNet, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Kinds that do not contain each other, in the first sense of their word, with synonyms and narrower terms."""
    pool = [synset for synset in _instruments(wordnet) if 3 <= len(wordnet.pointers(synset, ["~"])) <= 25]
    pool = [synset for synset in pool if _plain(wordnet.words(synset)[0])]
    chance.shuffle(pool)
    covered: set[int] = set()
    made = 0
    for synset in pool:
        [kind, *synonyms] = wordnet.words(synset)
        senses = wordnet.senses(kind, part="noun")
        inside = _below(wordnet, synset)
        if inside & covered or not senses or senses[0].synset != synset:
            continue
        covered |= inside
        narrower = [wordnet.words(below)[0] for below in wordnet.pointers(synset, ["~"])]
        headed = [word for word in narrower if word.split()[-1] == kind.split()[-1]]
        others = [word for word in narrower if word not in headed]
        some = chance.sample(headed, min(2, len(headed))) + chance.sample(others, 1 if others else 0)
        yield kind, [*chance.sample(synonyms, 1 if synonyms else 0), *some]
        made += 1
        if made == KINDS * STRANGE // (STRANGE - 1):
            return


def _same_heads(wordnet: WordNet, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Kinds of two words, several with the same second word: machines, lamps, pumps."""
    by_head: dict[str, list[int]] = {}
    for synset in _instruments(wordnet):
        words = wordnet.words(synset)
        parts = words[0].split()
        if len(parts) == 2 and _plain(words[0]) and (len(words) > 1 or wordnet.pointers(synset, ["~"])):
            by_head.setdefault(parts[1], []).append(synset)
    heads = [head for head in sorted(by_head) if len(by_head[head]) >= 4]
    chosen: list[int] = []
    for head in chance.sample(heads, 10):
        for synset in chance.sample(by_head[head], min(5, len(by_head[head]))):
            if not set(wordnet.pointers(synset, ["~", "@"])) & set(chosen):
                chosen.append(synset)
    # Shuffled, so that strangers share their second word with kinds.
    chance.shuffle(chosen)
    for synset in chosen:
        [kind, *synonyms] = wordnet.words(synset)
        narrower = [wordnet.words(below)[0] for below in wordnet.pointers(synset, ["~"])]
        yield kind, [*synonyms[:2], *narrower[:2]]


def _appliances(data: Path) -> list[tuple[str, list[str]]]:
    """The appliance types with synonyms, up to three each."""
    import yaml

    found: dict[str, list[str]] = {}
    for file in sorted((data / "appliances").glob("*.yaml")):
        for name, about in (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).items():
            synonyms = about.get("synonyms") if isinstance(about, dict) else None
            if isinstance(synonyms, list):
                found[name] = [synonym for synonym in synonyms if isinstance(synonym, str)]
    return [
        (name, [synonym for synonym in synonyms if synonym not in found][:3])
        for name, synonyms in sorted(found.items())
    ]


def _by_hand() -> NameList:
    with (Path(__file__).parent / "devices.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], row["kind"]) for row in csv.DictReader(file)]
    named = [(name, kind) for name, kind in rows if name]
    return NameList(
        "by hand", sorted({kind for _, kind in rows if kind}), [name for name, _ in named], [kind for _, kind in named]
    )


def written_before(what: str, *, strangers: bool = True) -> NameList:
    """A list of `names.csv`; with strangers, every fifth kind is left out."""
    with (Path(__file__).parent / "names.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], row["kind"]) for row in csv.DictReader(file) if row["list"] == what]
    kinds = list(dict.fromkeys(kind for _, kind in rows if kind))
    known = [kind for number, kind in enumerate(kinds) if not strangers or number % STRANGE != 2]
    truth = [kind if kind in known else NOBODY for _, kind in rows]
    return NameList(what, known, [name for name, _ in rows], truth)


def judged(
    lists: Sequence[NameList], join: Callable[[NameList, dict[str, object]], list[tuple[str, str]]]
) -> dict[str, float]:
    """How often the best kind is right; at threshold 0.5: precision, recall, and partners per stranger."""
    known = sum(truth != NOBODY for names in lists for truth in names.truth)
    strangers = sum(len(names.names) for names in lists) - known
    best = [pair for names in lists for pair in join(names, {"best": 1})]
    above = [pair for names in lists for pair in join(names, {"threshold": 0.5})]
    right = sum(kind == truth for kind, truth in above)
    met = [pair for pair in above if pair[1] != NOBODY]
    return {
        "value": sum(kind == truth for kind, truth in best) / known,
        "precision": right / max(1, len(above)),
        "recall": right / known,
        "precision without strangers": right / max(1, len(met)),
        "partners per stranger": (len(above) - len(met)) / max(1, strangers),
    }
