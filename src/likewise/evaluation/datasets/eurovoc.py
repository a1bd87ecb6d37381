"""EuroVoc as a thesaurus of terms: which labels may stand for a term, and the top terms of a domain.

It expands the data set of [000 sec 5.2.2], so no measure under test may read it, except that of the approach
`concept (same thesaurus)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from likewise.errors import MissingError

EurovocRelation: TypeAlias = Literal["synonym", "related", "narrower", "broader"]

DOMAINS = {
    "social questions": 28,
    "education and communications": 32,
    "transport": 48,
    "environment": 52,
    "energy": 66,
    "geography": 72,
}
"""The six domains of [000 sec 5.2.2] and their numbers in EuroVoc."""

_WHOLE = 100141  # the scheme of all concepts, which has no domain
_PART_OF = 72  # in geography "narrower" means a part of the place, not a kind of it
_PLAIN = re.compile(r"[A-Za-z][A-Za-z' -]+")


@dataclass(frozen=True, slots=True)
class EurovocConcept:
    """One concept: its labels (the preferred one first), its domains and its neighbours."""

    id: str
    labels: tuple[str, ...]
    domains: frozenset[int]
    related: tuple[str, ...] = ()
    narrower: tuple[str, ...] = ()
    broader: tuple[str, ...] = ()


@dataclass(frozen=True)
class Eurovoc:
    """Concepts by id and by label, limited to some domains.

    >>> bus = EurovocConcept("1", ("bus", "motor coach"), frozenset({48}), related=("2",))
    >>> station = EurovocConcept("2", ("bus station", "coach station"), frozenset({28}), related=("1",))
    >>> thesaurus = Eurovoc({"1": bus, "2": station})
    >>> thesaurus.variants("bus")
    ('motor coach', 'bus station')
    >>> thesaurus.variants("bus", relations=("synonym",))
    ('motor coach',)
    """

    concepts: Mapping[str, EurovocConcept]
    top_terms: tuple[str, ...] = ()
    _by_label: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for concept in self.concepts.values():
            for label in concept.labels:
                self._by_label.setdefault(_key(label), []).append(concept.id)

    def __contains__(self, term: str) -> bool:
        return _key(term) in self._by_label

    def variants(
        self, term: str, *, relations: Iterable[EurovocRelation] = ("synonym", "related", "narrower")
    ) -> tuple[str, ...]:
        """Labels that may replace a term: other labels of its concept, then preferred labels of its neighbours."""
        labels: dict[str, None] = {}
        for concept in (self.concepts[key] for key in self._by_label.get(_key(term), ())):
            for relation in relations:
                labels.update(dict.fromkeys(self._labels(concept, relation)))
        return tuple(label for label in labels if _key(label) != _key(term) and plain_label(label))

    def _labels(self, concept: EurovocConcept, relation: EurovocRelation) -> Iterable[str]:
        if relation == "synonym":
            return concept.labels
        if relation == "narrower" and _PART_OF in concept.domains:
            return ()
        keys: tuple[str, ...] = getattr(concept, relation)
        return (self.concepts[key].labels[0] for key in keys if key in self.concepts)


def plain_label(label: str) -> bool:
    """Whether a label has plain words only."""
    return _PLAIN.fullmatch(label) is not None


def _key(label: str) -> str:
    # "lap-top" is "laptop" and "drivers" is "driver": spelling must not hide a concept.
    key = label.lower().replace("-", "").replace(" ", "")
    return key[:-1] if key.endswith("s") and not key.endswith("ss") else key


def eurovoc_document(path: Path) -> Any:
    """EuroVoc's YAML file as plain values."""
    if not path.exists():
        raise MissingError(
            f"EuroVoc is not at {path}", hint="set LIKEWISE_DATA to the folder that holds eurovoc/eurovoc.yaml"
        )
    with path.open("rb") as stream:
        return yaml.load(stream, Loader=yaml.CSafeLoader)


@lru_cache(maxsize=2)
def read_eurovoc(path: Path, *, domains: frozenset[int] = frozenset(DOMAINS.values())) -> Eurovoc:
    """EuroVoc's English labels in the given domains, from its YAML file."""
    document = eurovoc_document(path)
    of_scheme = {key: scheme["domain"] for key, scheme in document["schemes"].items() if key != _WHOLE}
    concepts = {}
    for key, raw in document["concepts"].items():
        concept = _concept(str(key), raw, of_scheme)
        if concept.domains & domains:
            concepts[concept.id] = concept
    return Eurovoc(concepts, _top_terms(document["schemes"], concepts, domains))


def _concept(key: str, raw: Mapping[str, Any], of_scheme: Mapping[int, int]) -> EurovocConcept:
    labels = [raw["prefLabel"]["en"], *raw.get("altLabel", {}).get("en", ())]
    links = {name: tuple(str(other) for other in raw.get(name, ())) for name in ("related", "narrower", "broader")}
    domains = frozenset(of_scheme[scheme] for scheme in raw["inScheme"] if scheme in of_scheme)
    return EurovocConcept(key, tuple(dict.fromkeys(labels)), domains, **links)


def _top_terms(
    schemes: Mapping[int, Mapping[str, Any]], concepts: Mapping[str, EurovocConcept], domains: frozenset[int]
) -> tuple[str, ...]:
    keys = (
        str(key)
        for number, scheme in schemes.items()
        if number != _WHOLE and scheme["domain"] in domains
        for key in scheme.get("hasTopConcept", ())
    )
    return tuple(sorted({concepts[key].labels[0] for key in keys if key in concepts}))
