"""WordNet as a corpus: each synset is one concept, described by its own words and by those around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from likewise.semantics.space.assembly import BuildSummary, Progress, SpaceOptions, build_local
from likewise.semantics.text import is_word, raw_words
from likewise.semantics.wordnet.wordnet import WordNet

WORDS, DEFINITION, EXAMPLES = 8, 2, 1
"""How often a synset's own words, definition and examples are repeated in its text.

All counts here were chosen on the human judgements of docs/spaces.md: neighbours raise relatedness (WS-353, MEN,
MTurk-771), but too much of them makes synonyms and mere relatives alike (RG-65).
"""

NAMED: Mapping[tuple[str, ...], int] = {("@", "@i"): 2, ("~", "~i"): 2, ("&", "^", "$", "*", ">"): 2}
"""Pointers whose synsets give their words only, so often: more general, more special, similar and entailed ones."""

TOLD = ("%p", "%m", "%s", "#p", "#m", "#s", "+")
"""Wholes, parts and derived forms give their words and glosses."""

MOST_SPECIAL = 50
"""More special synsets that are named: a long list of kinds says no more about the whole."""

MOST_DEFINED = 100
"""A word that defines more synsets than this is a word of definitions (act, person), and names none of them."""


def build_wordnet(
    path: str | Path,
    *,
    options: SpaceOptions | None = None,
    overwrite: bool = False,
    report: Progress = lambda _: None,
) -> BuildSummary:
    """Build the space of WordNet in this process: the bytes that Spark gives, without Spark."""
    said = documents(WordNet.load())
    return build_local(
        said, path, corpus="wordnet", format="wordnet", options=options, overwrite=overwrite, report=report
    )


def documents(net: WordNet) -> Iterator[tuple[str, str]]:
    """Title and text of every synset."""
    defined = defined_with(net)
    for synset in net.synsets():
        yield synset.title, text_of(net, synset.id, defined=defined.get(synset.id, ()))


def text_of(net: WordNet, number: int, *, defined: Sequence[int] = ()) -> str:
    """The text of one synset; `defined` are synsets whose definitions mention it."""
    synset = net.synset(number)
    definition, examples = cut(synset.gloss)
    said = [*synset.words * WORDS, *[definition] * DEFINITION, *[examples] * EXAMPLES]
    general = net.pointers(number, ("@", "@i"))
    for symbols, times in NAMED.items():
        for other in net.pointers(number, symbols)[:MOST_SPECIAL]:
            said.extend(net.words(other) * times)
    for other in sorted({above for near in general for above in net.pointers(near, ("@", "@i"))} - set(general)):
        said.extend(net.words(other))
    for other in net.pointers(number, TOLD):
        said.extend([*net.words(other), net.synset(other).gloss])
    for other in defined:
        said.extend(net.words(other))
    return " \n".join(said)


def defined_with(net: WordNet) -> dict[int, list[int]]:
    """For each synset, the synsets whose definitions speak of it: `car` has `garage` and `parking lot`.

    A word of a definition is taken in its most common sense.
    """
    senses: dict[str, int | None] = {}
    found: dict[int, list[int]] = {}
    for synset in net.synsets():
        for word in sorted(set(raw_words(cut(synset.gloss)[0]))):
            if word not in senses:
                senses[word] = _most_common(net, word) if is_word(word) else None
            target = senses[word]
            if target is not None and target != synset.id:
                found.setdefault(target, []).append(synset.id)
    return {target: sources for target, sources in found.items() if len(sources) <= MOST_DEFINED}


def cut(gloss: str) -> tuple[str, str]:
    """A gloss is a definition, then examples in quotation marks.

    >>> cut('place temporarily; "park the car in the yard"')
    ('place temporarily', 'park the car in the yard"')
    """
    definition, _, examples = gloss.partition('; "')
    return definition, examples


def _most_common(net: WordNet, word: str) -> int | None:
    """The first sense of the part of speech that was tagged most often; nouns before verbs before adjectives."""
    firsts = [senses[0] for part in ("noun", "verb", "adj") if (senses := net.senses(word, part=part))]
    return max(firsts, key=lambda sense: sense.count).synset if firsts else None
