"""WordNet as a corpus: each synset is a concept, described by its own words and those of its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from likewise.semantics.space.assembly import BuildSummary, Progress, SpaceOptions, build_local
from likewise.semantics.text import is_word, raw_words
from likewise.semantics.wordnet.wordnet import WordNet

WORDS, DEFINITION, EXAMPLES = 8, 2, 1
"""How often a synset's own words, definition and examples are repeated in its text.

All counts here were chosen on the human judgements of docs/spaces.md: neighbours improve relatedness (WS-353, MEN,
MTurk-771), but too many of them make synonyms and related words indistinguishable (RG-65).
"""

NAMED: Mapping[tuple[str, ...], int] = {("@", "@i"): 2, ("~", "~i"): 2, ("&", "^", "$", "*", ">"): 2}
"""Pointers whose synsets add their words, with repetitions: hypernyms, hyponyms, similar and entailed synsets."""

WITH_GLOSS = ("%p", "%m", "%s", "#p", "#m", "#s", "+")
"""Pointers whose synsets add their words and glosses: wholes, parts and derived forms."""

MOST_SPECIAL = 50
"""The number of hyponyms used; more of them do not help."""

MOST_DEFINED = 100
"""Words in more definitions than this (act, person) are ignored: they are typical of definitions, not of a meaning."""


def build_wordnet(
    path: str | Path,
    *,
    options: SpaceOptions | None = None,
    overwrite: bool = False,
    report: Progress = lambda _: None,
) -> BuildSummary:
    """Build the space of WordNet in this process, with the same bytes as on Spark."""
    synsets = documents(WordNet.load())
    return build_local(
        synsets, path, corpus="wordnet", format="wordnet", options=options, overwrite=overwrite, report=report
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
    parts = [*synset.words * WORDS, *[definition] * DEFINITION, *[examples] * EXAMPLES]
    general = net.pointers(number, ("@", "@i"))
    for symbols, times in NAMED.items():
        for other in net.pointers(number, symbols)[:MOST_SPECIAL]:
            parts.extend(net.words(other) * times)
    for other in sorted({above for near in general for above in net.pointers(near, ("@", "@i"))} - set(general)):
        parts.extend(net.words(other))
    for other in net.pointers(number, WITH_GLOSS):
        parts.extend([*net.words(other), net.synset(other).gloss])
    for other in defined:
        parts.extend(net.words(other))
    return " \n".join(parts)


def defined_with(net: WordNet) -> dict[int, list[int]]:
    """For each synset, the synsets whose definitions mention it: `car` has `garage` and `parking lot`.

    Words of definitions count in their most common sense.
    """
    senses: dict[str, int | None] = {}
    mentions: dict[int, list[int]] = {}
    for synset in net.synsets():
        for word in sorted(set(raw_words(cut(synset.gloss)[0]))):
            if word not in senses:
                senses[word] = _most_common(net, word) if is_word(word) else None
            target = senses[word]
            if target is not None and target != synset.id:
                mentions.setdefault(target, []).append(synset.id)
    return {target: sources for target, sources in mentions.items() if len(sources) <= MOST_DEFINED}


def cut(gloss: str) -> tuple[str, str]:
    """Split a gloss into its definition and its examples.

    >>> cut('place temporarily; "park the car in the yard"')
    ('place temporarily', 'park the car in the yard"')
    """
    definition, _, examples = gloss.partition('; "')
    return definition, examples


def _most_common(net: WordNet, word: str) -> int | None:
    """The first sense of the part of speech that was tagged most often; nouns before verbs before adjectives."""
    firsts = [senses[0] for part in ("noun", "verb", "adj") if (senses := net.senses(word, part=part))]
    return max(firsts, key=lambda sense: sense.count).synset if firsts else None
