"""Labelled pairs of terms for learning evidence, generated from thesauri.

Labels of one concept, synonyms and phrases with words replaced by synonyms mean the same; siblings, opposites, wider
terms and random pairs do not. Narrower and related terms have labels in between. Concepts of the thematic data set are
left out. Every pair has its concept, so that training and test pairs are split by concept.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from likewise.errors import MissingError
from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic, data_folder
from likewise.evaluation.learning.adaptation import Adaptations, described_things
from likewise.evaluation.learning.field_pairs import OF_TRADES, description_pairs, field_pairs
from likewise.evaluation.learning.pair import LABELS, Pair, either
from likewise.events import normalise, words_in
from likewise.semantics import Glossary, OtherNames, WordNet, extra_words, key

PER_KIND: Final = 800
"""The most pairs of one kind from one source; more change the weights by less than the noise of the split."""

SIZES: Final = {f"names{OF_TRADES}": 4.0, f"descriptions{OF_TRADES}": 2.0} | {
    f"{name}{ending}": size for name in ("states", "quantities") for ending, size in (("", 0.4), (OF_TRADES, 0.8))
}
"""How many times more or fewer pairs of a kind are kept of some sources: more of those that are most like the terms of
streams, fewer of those with many kinds."""

_BEFORE: Final = ("", "", "high", "low", "new", "increased", "decreased", "first", "daily", "outdoor")
_AFTER: Final = ("event", "alarm", "level", "report", "status", "sensor", "usage", "request", "notice")
_BEFORE_IN_FRENCH: Final = (
    "",
    "",
    "élevé",
    "faible",
    "nouveau",
    "accru",
    "réduit",
    "premier",
    "quotidien",
    "extérieur",
)
_AFTER_IN_FRENCH: Final = ("événement", "alarme", "niveau", "rapport", "état", "capteur", "usage", "demande", "avis")
_TURNED: Final = {2: 3, 3: 2, 5: 6, 6: 5}
"""Which of the prefixed words are opposites, by their places."""


_STOP_WORDS: Final = frozenset(words_in("stop_words", package="likewise.semantics"))

_UNFRAMED: Final = frozenset(
    {"EuroVoc in French", "EuroVoc, French only", "other names", "names", f"descriptions{OF_TRADES}"}
    | {f"{name}{ending}" for name in ("states", "quantities") for ending in ("", OF_TRADES)}
)
"""Sources whose pairs are not framed."""

_ALL_OF_EUROVOC: Final = 100_141
"""The scheme of all concepts."""


def training_pairs(
    *, data: Path | None = None, seed: int = 1, per_kind: int = PER_KIND, adaptations: Adaptations | None = None
) -> list[Pair]:
    """All generated pairs, equal for equal data and seed; `adaptations` find things that are easily confused."""
    folder = data or data_folder()
    banned = thematic_terms(folder)
    confused = None if adaptations is None else adaptations.confused(described_things())
    made: list[Pair] = []
    makers: Sequence[Callable[[random.Random], Iterable[Pair]]] = (
        lambda rng: wordnet_pairs(WordNet.load(), rng, per_kind=per_kind),
        lambda rng: eurovoc_pairs(folder / "eurovoc" / "eurovoc.yaml", rng, banned=banned),
        lambda rng: iptc_pairs(folder / "iptc" / "mediatopics-en-GB.json", rng),
        lambda rng: appliance_pairs(folder / "appliances", rng),
        lambda rng: glossary_pairs(Glossary.shipped(), rng),
        lambda rng: field_pairs(OtherNames.shipped(), rng, banned=banned),
        lambda rng: name_pairs(_titles(folder / "wikipedia" / "articles-400w.jsonl.bz2"), WordNet.load(), rng),
        lambda rng: description_pairs(described_things(), rng, confused=confused),
    )
    for number, make in enumerate(makers):
        rng = random.Random(f"{seed} {number}")
        made += _thinned(make(rng), rng, per_kind=per_kind)
    rng = random.Random(f"{seed} extra")
    ruled = [*extra_word_pairs(made, rng), *numbered_pairs(made, rng), *framed_pairs(made, rng),
             *framed_in_french(made, rng)]  # fmt: skip
    made += _thinned(ruled, rng, per_kind=per_kind)
    once = {(normalise(pair.subscription), normalise(pair.event)): pair for pair in reversed(made)}
    return [pair for (left, right), pair in sorted(once.items()) if key(left) != key(right) or pair.kind == "light"]


def thematic_terms(folder: Path) -> frozenset[str]:
    """All terms of the thematic data set, seeds 1 to 5; concepts with any of them are left out."""
    found: set[str] = set()
    for seed in range(1, 6):
        data = build_thematic(DatasetRecipe(seed=seed, events=100), data=folder)
        found.update(normalise(term) for pair in data.seeds for attribute, value in pair for term in (attribute, value))
        found.update(normalise(term) for terms in data.expansion.variants.values() for term in terms)
    return frozenset(found | {word for term in found if term.endswith(" event") for word in [term[:-6]]})


# --- thesauri: concepts with labels and links ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThesaurusEntry:
    """A concept of any thesaurus: its labels, the preferred one first, and its broader concepts."""

    labels: tuple[str, ...]
    above: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    field: str = ""
    """Its fields."""


def thesaurus_pairs(
    entries: Mapping[str, ThesaurusEntry], rng: random.Random, *, source: str, synonym: str = "label"
) -> Iterator[Pair]:
    """Pairs of labels: same concept, sibling, narrower, wider, related and random, also in another language."""
    below: dict[str, list[str]] = defaultdict(list)
    for name, entry in entries.items():
        for parent in entry.above:
            below[parent].append(name)
    names = sorted(entries)
    fields: dict[str, list[str]] = defaultdict(list)
    for name in names:
        fields[entries[name].field].append(name)
    for name in names:
        entry = entries[name]
        mine = entry.labels[0]
        others = [entries[each] for parent in entry.above for each in below[parent] if each != name]
        sibling = rng.choice(others) if others else None
        stranger = entries[rng.choice(names)]
        for label in entry.labels[1:4]:
            yield Pair(*either(mine, label, rng), synonym, source, name)
        if sibling is not None:
            yield Pair(mine, rng.choice(sibling.labels[:3]), "sibling", source, name)
            yield Pair(rng.choice(entry.labels[:3]), sibling.labels[0], "sibling", source, name)
        for child in below[name][:2]:
            yield Pair(mine, entries[child].labels[0], "narrower", source, name)
            yield Pair(entries[child].labels[0], mine, "wider", source, name)
        for other in entry.related[:1]:
            if other in entries:
                yield Pair(mine, entries[other].labels[0], "related", source, name)
        yield Pair(mine, rng.choice(stranger.labels[:3]), "random", source, name)
        if entry.field:
            near = rng.choice(fields[entry.field])
            if near not in (name, *entry.above, *below[name], *entry.related):
                yield Pair(mine, rng.choice(entries[near].labels[:3]), "same field", source, name)
        yield from _foreign(entry, sibling, stranger, rng, source=source, name=name)
    yield from _compounds(entries, source=source)


def _compounds(entries: Mapping[str, ThesaurusEntry], *, source: str) -> Iterator[Pair]:
    """`energy` and `energy policy` are different things; `policy` and `energy policy` are not."""
    owner = {label.lower(): name for name, entry in entries.items() for label in entry.labels[:1]}
    for name, entry in entries.items():
        words = entry.labels[0].lower().split()
        if not 1 < len(words) < 4 or not _STOP_WORDS.isdisjoint(words):
            continue
        whole = " ".join(words)
        for size in range(1, len(words)):
            first, last = (owner.get(" ".join(part)) for part in (words[:size], words[size:]))
            if first is not None and first not in entry.above:
                yield Pair(" ".join(words[:size]), whole, "turned", f"{source} compounds", name)
            if last is not None:
                yield Pair(" ".join(words[size:]), whole, "modified", f"{source} compounds", name)
                yield Pair(whole, " ".join(words[size:]), "wider", f"{source} compounds", name)


def _foreign(
    entry: ThesaurusEntry,
    sibling: ThesaurusEntry | None,
    stranger: ThesaurusEntry,
    rng: random.Random,
    *,
    source: str,
    name: str,
) -> Iterator[Pair]:
    if not entry.foreign:
        return
    tongue = f"{source} in French"
    yield Pair(entry.labels[0], rng.choice(entry.foreign[:2]), "synonym", tongue, name)
    if sibling is not None and sibling.foreign:
        yield Pair(entry.labels[0], sibling.foreign[0], "sibling", tongue, name)
    if stranger.foreign:
        yield Pair(entry.labels[0], stranger.foreign[0], "random", tongue, name)
    for other in entry.foreign[1:2]:
        yield Pair(entry.foreign[0], other, "label", f"{source}, French only", name)
    if sibling is not None and sibling.foreign:
        yield Pair(entry.foreign[0], sibling.foreign[-1], "sibling", f"{source}, French only", name)


def eurovoc_pairs(path: Path, rng: random.Random, *, banned: frozenset[str]) -> Iterator[Pair]:
    """EuroVoc, English and French, without the concepts of the thematic data set."""
    with _open(path) as stream:
        document = yaml.load(stream, Loader=yaml.CSafeLoader)
    entries: dict[str, ThesaurusEntry] = {}
    for number, raw in document["concepts"].items():
        labels = [raw["prefLabel"]["en"], *raw.get("altLabel", {}).get("en", ())]
        foreign = [raw["prefLabel"]["fr"], *raw.get("altLabel", {}).get("fr", ())]
        if not any(normalise(label) in banned for label in labels) and max(map(len, labels[:1])) < 45:
            links = {name: tuple(map(str, raw.get(name, ()))) for name in ("broader", "related")}
            short = tuple(dict.fromkeys(label for label in labels if len(label) < 45))
            field = str(next((scheme for scheme in raw.get("inScheme", ()) if scheme != _ALL_OF_EUROVOC), ""))
            entries[str(number)] = ThesaurusEntry(short, links["broader"], links["related"], tuple(foreign), field)
    return thesaurus_pairs(entries, rng, source="EuroVoc")


def iptc_pairs(path: Path, rng: random.Random) -> Iterator[Pair]:
    """IPTC Media Topics: no synonyms, but siblings, narrower and wider terms."""
    with _open(path) as stream:
        concepts = json.load(stream)["conceptSet"]
    entries = {
        # Links between concepts are addresses.
        raw["uri"]: ThesaurusEntry((raw["prefLabel"]["en-GB"],), tuple(raw.get("broader", ())))
        for raw in concepts
        if "en-GB" in raw.get("prefLabel", {})
    }
    return thesaurus_pairs(entries, rng, source="IPTC")


def appliance_pairs(folder: Path, rng: random.Random) -> Iterator[Pair]:
    """Types of appliances with their synonyms."""
    if not folder.is_dir():
        raise MissingError(f"no appliances at {folder}", hint="set LIKEWISE_DATA to the folder of the data sets")
    entries: dict[str, ThesaurusEntry] = {}
    for path in sorted(folder.glob("*.yaml")):
        with path.open(encoding="utf-8") as stream:
            found = yaml.load(stream, Loader=yaml.CSafeLoader)
        for name, raw in found.items():
            entries[name] = ThesaurusEntry((name, *_texts(raw.get("synonyms"))), _texts(raw.get("parent")))
    return thesaurus_pairs(entries, rng, source="appliances")


def _texts(raw: Any) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw or ())


def _open(path: Path) -> Any:
    if not path.exists():
        raise MissingError(f"there is no {path}", hint="set LIKEWISE_DATA to the folder of the data sets")
    return path.open("rb")


# --- WordNet ------------------------------------------------------------------------------------------------------


def wordnet_pairs(wordnet: WordNet, rng: random.Random, *, per_kind: int) -> Iterator[Pair]:
    """Synonyms, siblings, opposites, compounds of a word, and phrases in which one word is replaced."""
    tagged = wordnet.tagged()
    common = [number for number in range(len(wordnet)) if tagged[number] > 0]
    rng.shuffle(common)
    for number in common[: 6 * per_kind]:
        yield from _synset_pairs(wordnet, number, rng)
    yield from _phrases(wordnet, common, rng, count=per_kind)
    yield from _replaced_phrases(wordnet, common, rng, count=per_kind)
    lemmas = [lemma for lemma in wordnet.lemmas() if lemma.count(" ") == 1 and lemma.isascii()]
    rng.shuffle(lemmas)
    for lemma in lemmas[: 12 * per_kind]:
        yield from _compound_pairs(wordnet, lemma)


def _synset_pairs(wordnet: WordNet, number: int, rng: random.Random) -> Iterator[Pair]:
    names, concept = _names(wordnet, number), str(number)
    if not names:
        return
    mine = names[0]
    for other in names[1:3]:
        if _first(wordnet, mine, number) or _first(wordnet, other, number):
            yield Pair(*either(mine, other, rng), "synonym", "WordNet", concept)
    parents = wordnet.pointers(number, ["@", "@i"])
    siblings = [each for parent in parents for each in wordnet.pointers(parent, ["~", "~i"]) if each != number]
    if siblings:
        beside = _names(wordnet, rng.choice(siblings))
        if beside:
            yield Pair(mine, rng.choice(beside), "sibling", "WordNet", concept)
    for parent in parents[:1]:
        if _names(wordnet, parent):
            yield Pair(mine, _names(wordnet, parent)[0], "wider", "WordNet", concept)
            yield Pair(_names(wordnet, parent)[0], mine, "narrower", "WordNet", concept)
    for antonym in wordnet.pointers(number, ["!"])[:1]:
        if _names(wordnet, antonym):
            yield Pair(mine, _names(wordnet, antonym)[0], "opposite", "WordNet", concept)
    stranger = _names(wordnet, rng.randrange(len(wordnet)))
    if stranger:
        yield Pair(mine, stranger[0], "random", "WordNet", concept)


def _phrases(wordnet: WordNet, common: Sequence[int], rng: random.Random, *, count: int) -> Iterator[Pair]:
    """`petrol price` and `gasoline price`, `petrol price` and `diesel price`: one word of a phrase is replaced."""
    nouns = [number for number in common if wordnet.parts()[number] == 0]
    for _ in range(4 * count):
        number, head = rng.choice(nouns), _names(wordnet, rng.choice(nouns))
        names = [name for name in _names(wordnet, number) if " " not in name and _first(wordnet, name, number)]
        if not names or not head or " " in head[0]:
            continue
        parents = wordnet.pointers(number, ["@"])
        siblings = [each for parent in parents[:1] for each in wordnet.pointers(parent, ["~"]) if each != number]
        others = {"synonym": [name for name in _names(wordnet, number) if name != names[0]]}
        others["sibling"] = _names(wordnet, rng.choice(siblings)) if siblings else []
        others["random"] = _names(wordnet, rng.choice(nouns))
        for kind, found in others.items():
            if found:
                ends = (names[0], found[0])
                first, second = (f"{word} {head[0]}" if number % 3 else f"{head[0]} {word}" for word in ends)
                yield Pair(first, second, kind, "WordNet phrases", str(number))


def _replaced_phrases(wordnet: WordNet, common: Sequence[int], rng: random.Random, *, count: int) -> Iterator[Pair]:
    """Phrases of two or three words, every one of which is replaced: by a synonym, or by a sibling.

    `supply air temperature` and `cold water consumption`: each word has a near one, and the whole means another thing.
    """
    nouns = [number for number in common if wordnet.parts()[number] == 0]
    rich = [number for number in nouns if len([name for name in _names(wordnet, number) if " " not in name]) > 1]
    for turn in range(8 * count):
        words, synonyms, siblings = [], [], []
        for number in rng.sample(rich if turn % 2 else nouns, rng.choice((2, 2, 3))):
            names = [name for name in _names(wordnet, number) if " " not in name]
            beside = _beside(wordnet, number, rng)
            if not names or not _first(wordnet, names[0], number) or not beside:
                break
            words.append(names[0])
            synonyms.append(names[1] if len(names) > 1 and _first(wordnet, names[1], number) else names[0])
            siblings.append(beside)
        else:
            concept = " ".join(words)
            if sum(map(str.__eq__, words, synonyms)) < len(words) - 1:
                yield Pair(concept, " ".join(synonyms), "synonym", "WordNet replaced", concept)
            yield Pair(concept, " ".join(siblings), "sibling", "WordNet replaced", concept)
            # `medication overdue` and `medicine given`: one word means the same, and the whole does not.
            kept = rng.randrange(len(words))
            others = [rng.choice((beside, _stranger(wordnet, nouns, rng) or beside)) for beside in siblings]
            half = [synonyms[at] if at == kept else others[at] for at in range(len(words))]
            yield Pair(concept, " ".join(half), "half replaced", "WordNet replaced", concept)
            shuffled = rng.sample(siblings, len(siblings))
            yield Pair(concept, " ".join(shuffled), "sibling, other order", "WordNet replaced", concept)


def _stranger(wordnet: WordNet, nouns: Sequence[int], rng: random.Random) -> str | None:
    """The one-word name of any other synset."""
    return next((name for name in _names(wordnet, rng.choice(nouns)) if " " not in name), None)


def _beside(wordnet: WordNet, number: int, rng: random.Random) -> str | None:
    """The one-word name of a sibling of a synset."""
    parents = wordnet.pointers(number, ["@"])
    siblings = [each for parent in parents[:1] for each in wordnet.pointers(parent, ["~"]) if each != number]
    names = [name for name in _names(wordnet, rng.choice(siblings)) if " " not in name] if siblings else []
    return names[0] if names else None


def _compound_pairs(wordnet: WordNet, lemma: str) -> Iterator[Pair]:
    """`printer` and `laser printer`, which is a printer; `fire` and `fire drill`, which is not a fire."""
    modifier, head = lemma.split()
    # Names of people and Latin names of genera may be one word, but are rare in streams.
    same = {sense.synset for sense in wordnet.senses(lemma) if lemma in _names(wordnet, sense.synset)}
    if not same:
        return
    above = {up for sense in same for up in _up(wordnet, sense)}
    heads = {sense.synset for sense in wordnet.senses(head, part="noun")}
    modifiers = {sense.synset for sense in wordnet.senses(modifier, part="noun")}
    for word in (word for word, senses in ((head, heads), (modifier, modifiers)) if senses & same):
        # A laptop computer is a laptop; but if the single word has another first sense, that may be meant.
        first = wordnet.senses(word)[0].synset in same
        other = "modified" if word == head else "related"
        yield Pair(word, lemma, "synonym" if first else other, "WordNet compounds", lemma)
        yield Pair(lemma, word, "synonym" if first else "wider", "WordNet compounds", lemma)
    if same & (heads | modifiers):
        return
    if above & heads:
        yield Pair(head, lemma, "modified", "WordNet compounds", lemma)
        yield Pair(lemma, head, "wider", "WordNet compounds", lemma)
    if modifiers and not above & modifiers and above:
        yield Pair(modifier, lemma, "turned", "WordNet compounds", lemma)


def _up(wordnet: WordNet, number: int) -> set[int]:
    """The hypernyms one to three steps above."""
    found, layer = set(), [number]
    for _ in range(3):
        layer = [up for each in layer for up in wordnet.pointers(each, ["@", "@i"])]
        found.update(layer)
    return found


def _names(wordnet: WordNet, number: int) -> list[str]:
    return [name for name in wordnet.words(number) if name.replace(" ", "").isalpha() and name.islower()]


def _first(wordnet: WordNet, name: str, number: int) -> bool:
    senses = wordnet.senses(name)
    return bool(senses) and senses[0].synset == number


# --- pairs made by rule -------------------------------------------------------------------------------------------


def glossary_pairs(glossary: Glossary, rng: random.Random) -> Iterator[Pair]:
    """An abbreviation and its meaning; and the meaning of another abbreviation."""
    shorts = sorted(glossary.shorts)
    for short in shorts:
        meanings = glossary.meanings(short)
        kind = "short, also a word" if WordNet.load().senses(short) else "short"
        for meaning in meanings[:2]:
            yield Pair(meaning, short, kind, "glossary", short)
        other = rng.choice(shorts)
        for meaning in glossary.meanings(other)[:1]:
            if other != short and meaning not in meanings:
                yield Pair(meaning, short, "random", "glossary", short)


def extra_word_pairs(pairs: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    """A term with a word that adds little, and with a word that changes its meaning."""
    light, turning, _ = (sorted(words) for words in extra_words())
    terms = sorted({pair.subscription for pair in pairs if pair.subscription.count(" ") < 2})
    for term in rng.sample(terms, min(len(terms), 1200)):
        yield Pair(term, f"{term} {rng.choice(light)}", "light", "extra words", term)
        yield Pair(term, f"{term} {rng.choice(turning)}", "turned", "extra words", term)


def numbered_pairs(pairs: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    """Terms with numbers and codes, the same, different, or on one side only."""
    for pair in (pair for pair in pairs if pair.kind == "synonym" and pair.source == "WordNet"):
        number = rng.randrange(1, 400)
        other = rng.choice([each for each in (*range(number - 3, number + 4), rng.randrange(1, 400)) if each != number])
        letter = rng.choice(("", "", "a", "b"))
        mine, theirs = f"{pair.subscription} {number}{letter}", f"{pair.event} {number}{letter}"
        yield Pair(mine, theirs, "numbered", "numbers", pair.concept)
        beside = rng.choice((pair.subscription, pair.event))
        yield Pair(mine, f"{beside} {other}{letter}", "other number", "numbers", pair.concept)
        yield Pair(pair.subscription, mine, "one number", "numbers", pair.concept)


def framed_pairs(pairs: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    """Both terms of a pair within the same words, as in event types: `high lift usage alarm`."""
    kinds = ("synonym", "label", "narrower", "related", "sibling", "random", "wider", "other name", "beside")
    for pair in (pair for pair in pairs if pair.kind in kinds and pair.source not in _UNFRAMED and not pair.blind):
        before, after = rng.choice(_BEFORE), rng.choice(_AFTER)
        mine, theirs = (f"{before} {term} {after}".strip() for term in (pair.subscription, pair.event))
        yield Pair(mine, theirs, pair.kind, "framed", pair.concept)


def framed_in_french(pairs: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    """Both terms of a pair within words that mean the same in two languages, or the opposite."""
    for pair in (pair for pair in pairs if pair.source == "EuroVoc in French"):
        before, after = rng.randrange(len(_BEFORE)), rng.randrange(len(_AFTER))
        mine = f"{_BEFORE[before]} {pair.subscription} {_AFTER[after]}".strip()
        ends = f"{_AFTER_IN_FRENCH[after]} {pair.event}"
        theirs = f"{ends} {_BEFORE_IN_FRENCH[before]}".strip()
        yield Pair(mine, theirs, pair.kind, "framed in French", pair.concept)
        if pair.kind == "synonym" and before in _TURNED:
            turned = f"{ends} {_BEFORE_IN_FRENCH[_TURNED[before]]}"
            yield Pair(mine, turned, "opposite", "framed in French", pair.concept)


def name_pairs(titles: Sequence[str], wordnet: WordNet, rng: random.Random) -> Iterator[Pair]:
    """Similar names of different things: `Quay Street`, `Headford Road`."""
    names = [
        words
        for words in (title.split() for title in titles)
        if len(words) == 2
        and all(word.isalpha() and word[0].isupper() for word in words)
        and not wordnet.senses(words[0].lower())
    ]
    by_last: dict[str, list[list[str]]] = defaultdict(list)
    for words in names:
        by_last[words[1]].append(words)
    # `Calle Vargas`, `Paseo Pereda`: no word is in WordNet, and only the language is the same.
    strange = [words for words in names if not wordnet.senses(words[1].lower())]
    for words in strange:
        beside = rng.choice(strange)
        if words[0] != beside[0] and words[1] != beside[1]:
            yield Pair(" ".join(words), " ".join(beside), "another's name, unknown words", "names", words[0])
            yield Pair(" ".join(words), f"{words[0]} {beside[1]}", "half a name, unknown words", "names", words[0])
    for words in names:
        name, head = " ".join(words), words[1]
        concept = words[0]
        beside, stranger = rng.choice(by_last[head]), rng.choice(names)
        if beside != words:
            yield Pair(name, " ".join(beside), "another's name, same kind", "names", concept)
        if stranger != words:
            yield Pair(name, " ".join(stranger), "another's name", "names", concept)
            yield Pair(words[0], stranger[0], "another's name alone", "names", concept)
        # A person whom WordNet lists by the last name is the same person, not a kind.
        if wordnet.senses(head.lower(), part="noun") and not wordnet.senses(name.lower()):
            yield Pair(head.lower(), name, "named", "names", concept)
            yield Pair(name, head.lower(), "unnamed", "names", concept)


def _titles(path: Path, *, count: int = 12_000) -> list[str]:
    """The titles of the first articles."""
    import bz2

    with _open(path) as packed, bz2.open(packed, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["title"] for line in itertools.islice(lines, count)]


def _thinned(pairs: Iterable[Pair], rng: random.Random, *, per_kind: int) -> list[Pair]:
    """At most a fixed number of pairs of each kind and source."""
    found: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[pair.source, pair.kind].append(pair)
    kept: list[Pair] = []
    for (source, _), same in sorted(found.items()):
        most = round(per_kind * SIZES.get(source, 1.0))
        kept += same if len(same) <= most else rng.sample(same, most)
    return kept


__all__ = ["LABELS", "Pair", "thematic_terms", "training_pairs"]
