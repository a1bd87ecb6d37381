"""The concept approach: terms match if a thesaurus lists them as synonyms or related terms [000 sec 1.2.2].

A thesaurus has concepts with their names and links between concepts, from WordNet, EuroVoc or any SKOS file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.sparse import csr_array

from likewise.errors import BuildError, InputError, MissingError
from likewise.events import words
from likewise.semantics.measures.base import Matrix, Measure, Shared, Themes
from likewise.semantics.text import TermPlaces, key
from likewise.semantics.wordnet.wordnet import WordNet

RELATED_POINTERS = ("@", "@i", "~", "~i", "&", "+", "#m", "#p", "#s", "%m", "%p", "%s", "\\", "<")
"""WordNet's pointers between neighbours in meaning: general, special, similar, derived, part and whole."""

_HINT = "give a SKOS file (.rdf, .ttl, .nt, .jsonld) or a SKOS YAML file such as EuroVoc's"


class Thesaurus:
    """Names of concepts and links between concepts; a name may belong to several concepts.

    >>> names = {"c1": ["car", "automobile"], "c2": ["vehicle"]}
    >>> thesaurus = Thesaurus(names, [("c1", "c2")])
    >>> thesaurus.incidence(["Automobiles"]).toarray().tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, names: Mapping[str, Sequence[str]], links: Iterable[tuple[str, str]]) -> None:
        self._titles = [labels[0] if labels else concept for concept, labels in names.items()]
        number = {concept: at for at, concept in enumerate(names)}
        self._by_name: dict[str, list[int]] = {}
        for concept, labels in names.items():
            for name in dict.fromkeys(map(key, labels)):
                self._by_name.setdefault(name, []).append(number[concept])
        pairs = [(number[a], number[b]) for a, b in links if a in number and b in number]
        self.links = _symmetric(np.array(pairs, np.int64).reshape(-1, 2).T, len(names))
        """Which concepts are linked, in both directions."""

    def __len__(self) -> int:
        """The number of concepts."""
        return int(self.links.shape[0])

    def title(self, concept: int) -> str:
        """The preferred name of a concept."""
        return self._titles[concept]

    def concepts(self, term: str) -> list[int]:
        """The concepts that a term names."""
        return self._by_name.get(key(term), [])

    def incidence(self, terms: Sequence[str]) -> csr_array:
        """Which concepts (columns) each term (row) names."""
        named = [self.concepts(term) for term in terms]
        rows = np.repeat(np.arange(len(named)), list(map(len, named)))
        columns = np.array([concept for concepts in named for concept in concepts], np.int64)
        return csr_array((np.ones(len(columns), np.float32), (rows, columns)), shape=(len(terms), len(self)))

    def names(self) -> Iterator[str]:
        """Every name, in normalised form."""
        return iter(self._by_name)

    @classmethod
    def from_wordnet(cls, wordnet: WordNet | None = None) -> Thesaurus:
        """Synsets as concepts, their words as names."""
        return _WordNetThesaurus(wordnet or WordNet.load())

    @classmethod
    def from_file(cls, path: str | Path, *, language: str = "en") -> Thesaurus:
        """Read a SKOS thesaurus in RDF, or in the YAML form in which EuroVoc is distributed."""
        path = Path(path)
        if not path.is_file():
            raise MissingError(f"there is no thesaurus at {path}", hint=_HINT)
        if path.suffix.lower() in {".yaml", ".yml"}:
            return cls(*_from_yaml(path, language))
        return cls(*_from_rdf(path, language))


class _WordNetThesaurus(Thesaurus):
    """WordNet as a thesaurus, with its own rules for inflected forms; nothing is copied."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self.links = _symmetric(np.array(wordnet.edges(RELATED_POINTERS), np.int64), len(wordnet))

    def title(self, concept: int) -> str:
        return self._wordnet.synset(concept).title

    def concepts(self, term: str) -> list[int]:
        return [sense.synset for sense in self._wordnet.senses(" ".join(words(term)))]

    def names(self) -> Iterator[str]:
        return iter(dict.fromkeys(map(key, self._wordnet.lemmas())))


def _symmetric(pairs: NDArray[np.int64], size: int) -> csr_array:
    """Undirected links; a concept is not linked with itself."""
    left, right = pairs[:, pairs[0] != pairs[1]]
    ones = np.ones(2 * len(left), np.float32)
    both = csr_array((ones, (np.append(left, right), np.append(right, left))), shape=(size, size))
    both.data[:] = 1
    return both


_Parts = tuple[dict[str, list[str]], list[tuple[str, str]]]


def _from_yaml(path: Path, language: str) -> _Parts:
    try:
        with path.open("rb") as file:
            # The C loader is forty times faster than the Python one, but not always available.
            content = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        concepts: dict[Any, dict[str, Any]] = content["concepts"]
        names = {str(number): list(_labels(concept, language)) for number, concept in concepts.items()}
        links = [
            (str(number), str(other))
            for number, concept in concepts.items()
            for relation in ("related", "broader")
            for other in concept.get(relation, ())
        ]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise InputError(f"not a SKOS YAML file: {error}", source=str(path), hint=_HINT) from None
    return names, links


def _labels(concept: Mapping[str, Any], language: str) -> Iterator[str]:
    for kind in ("prefLabel", "altLabel"):
        label = concept.get(kind, {}).get(language, [])
        yield from [label] if isinstance(label, str) else map(str, label)


def _from_rdf(path: Path, language: str) -> _Parts:
    import rdflib
    from rdflib.namespace import SKOS

    graph = rdflib.Graph()
    try:
        graph.parse(path)
    except Exception as error:  # rdflib's parsers raise errors of many libraries
        raise InputError(f"not readable as RDF: {error}", source=str(path), hint=_HINT) from None
    names: dict[str, list[str]] = {}
    for predicate in (SKOS.prefLabel, SKOS.altLabel):
        for subject, label in sorted(graph.subject_objects(predicate)):
            if getattr(label, "language", None) in {None, language}:
                names.setdefault(str(subject), []).append(str(label))
    if not names:
        raise InputError(f"no SKOS labels in {language!r}", source=str(path), hint=_HINT)
    relations = (SKOS.related, SKOS.broader, SKOS.narrower, SKOS.exactMatch, SKOS.closeMatch)
    links = [(str(a), str(b)) for relation in relations for a, b in graph.subject_objects(relation)]
    return names, links


Grades = Literal["boolean", "graded", "synonyms"]


class Concept(Measure):
    """1 for names of one concept; for names of linked concepts 1 (`boolean`), `related` (`graded`) or 0 (`synonyms`).

    Themes are not used.

    >>> thesaurus = Thesaurus({"c1": ["car", "auto"], "c2": ["vehicle"], "c3": ["cat"]}, [("c1", "c2")])
    >>> Concept(thesaurus).matrix(["car"], ["auto", "vehicle", "cat"]).tolist()
    [[1.0, 0.5, 0.0]]
    """

    name = "concept"
    symmetric = True

    def __init__(self, thesaurus: Thesaurus | None = None, *, grades: Grades = "graded", related: float = 0.5) -> None:
        if not 0 <= related <= 1:
            raise BuildError(f"related={related} is not a score", hint="give a number from 0 to 1")
        if grades not in ("boolean", "graded", "synonyms"):
            raise BuildError(f"unknown grades {grades!r}", hint="choose boolean, graded or synonyms")
        self._thesaurus = thesaurus or Thesaurus.from_wordnet()
        self._related = {"boolean": 1.0, "graded": related, "synonyms": 0.0}[grades]

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedConcept:
        """Look up the concepts of the subscription terms and those linked with them."""
        return PreparedConcept(self._thesaurus, subscription_terms, self._related)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts that both terms name, then the links between a concept of each."""
        title = self._thesaurus.title
        left = self._thesaurus.incidence([subscribed]).indices
        right = self._thesaurus.incidence([published]).indices
        reasons = [Shared(title(int(concept)), 1.0) for concept in np.intersect1d(left, right)]
        if self._related > 0:
            links = self._thesaurus.links[left][:, right].tocoo()
            reasons += [
                Shared(f"{title(int(left[row]))} – {title(int(right[column]))}", self._related)
                for row, column in zip(links.row, links.col, strict=True)
            ]
        return reasons[:limit]


class PreparedConcept:
    """Subscription terms as columns by concept; `rows` gives a row per event term."""

    def __init__(self, thesaurus: Thesaurus, terms: Sequence[str], related: float) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._thesaurus = thesaurus
        self._related = related
        own = thesaurus.incidence(terms)
        self._own = csr_array(own.T)
        self._linked = csr_array((own @ thesaurus.links).T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Score of every event term (row) with every prepared term (column)."""
        named = self._thesaurus.incidence(event_terms)
        linked = np.minimum((named @ self._linked).toarray(), 1) * self._related
        scores = np.maximum(linked, np.minimum((named @ self._own).toarray(), 1)).astype(np.float32)
        return self._names.mark(scores, event_terms)
