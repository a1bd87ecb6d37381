"""WordNet as a corpus: each synset is one concept, told by its own words and by those around it."""

from __future__ import annotations

from collections.abc import Iterator

from likewise.semantics._wordnet import WordNet

WORDS, DEFINITION, EXAMPLES = 8, 2, 1
"""How often a synset's own words, definition and examples are said; what its neighbours say counts once.

Chosen on the human judgements of docs/spaces.md: neighbours raise relatedness (WS-353, MEN, MTurk-771), but too
much of them makes synonyms and mere relatives alike (RG-65).
"""

NAMED = ("@", "@i")
"""More general synsets give their words only: their glosses would tell brothers as the same thing."""

TOLD = ("%p", "%m", "%s", "#p", "#m", "#s", "+")
"""Wholes, parts and derived forms give their words and glosses."""


def documents(net: WordNet) -> Iterator[tuple[str, str]]:
    """Title and text of every synset."""
    for synset in net.synsets():
        yield synset.title, text_of(net, synset.id)


def text_of(net: WordNet, number: int) -> str:
    """What is said about one synset."""
    synset = net.synset(number)
    # A gloss is a definition, then examples in quotation marks.
    definition, _, examples = synset.gloss.partition('; "')
    said = [*synset.words * WORDS, *[definition] * DEFINITION, *[examples] * EXAMPLES]
    for other in net.pointers(number, NAMED):
        said.extend(net.words(other))
    for other in net.pointers(number, TOLD):
        said.extend([*net.words(other), net.synset(other).gloss])
    return " \n".join(said)
