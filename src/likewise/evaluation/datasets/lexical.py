"""WordNet as a thesaurus, for generating development events."""

from __future__ import annotations

from typing import Final

from likewise.evaluation.datasets.eurovoc import Eurovoc, EurovocConcept
from likewise.semantics import WordNet

_BELOW: Final = ("~",)
_ABOVE: Final = ("@",)
_RELATED: Final = ("#p", "%p", "#m", "%m", "#s", "%s", "+")
"""Parts, members, substances, and what is derived."""


def wordnet_thesaurus(wordnet: WordNet) -> Eurovoc:
    """The nouns tagged in texts: a concept's labels are its words, first a word with this as its first sense."""
    tagged, parts = wordnet.tagged(), wordnet.parts()
    used = [number for number in range(len(wordnet)) if parts[number] == 0 and tagged[number] > 0]
    labels = {number: names for number in used if (names := _labels(wordnet, number))}

    def linked(number: int, pointers: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(other) for other in wordnet.pointers(number, pointers) if other in labels)

    concepts = {
        str(number): EurovocConcept(
            str(number),
            names,
            frozenset(),
            related=linked(number, _RELATED),
            narrower=linked(number, _BELOW),
            broader=linked(number, _ABOVE),
        )
        for number, names in labels.items()
    }
    return Eurovoc(concepts)


def _labels(wordnet: WordNet, number: int) -> tuple[str, ...]:
    names = [name for name in wordnet.words(number) if name.replace(" ", "").isalpha() and name.islower()]
    first = next((name for name in names if wordnet.senses(name)[0].synset == number), None)
    return () if first is None else tuple(dict.fromkeys([first, *names]))
