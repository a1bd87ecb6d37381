"""Any SKOS thesaurus for the experiments: its concepts, and events made from its terms."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from likewise.errors import BuildError, InputError, MissingError
from likewise.evaluation.datasets.eurovoc import Eurovoc, EurovocConcept, plain_label, read_eurovoc
from likewise.evaluation.datasets.seeds import SeedTuples

ALL_DOMAINS: Final = frozenset(range(100))
_HINT: Final = "give a SKOS file (.rdf, .ttl, .nt, .jsonld, .skos) or a SKOS YAML file such as EuroVoc's"
_FEWEST: Final = 3
"""The least number of narrower concepts for a concept to be an attribute, with these as values."""
_KINDS: Final = 12
_ATTRIBUTES: Final = (3, 6)
_SITES: Final = ("Galway", "Santander", "Aarhus")
_ROOMS: Final = (101, 102, 114, 210, 211, 313)


def read_skos(path: Path) -> Eurovoc:
    """The concepts of a SKOS file with their English labels; raises an error if there are none."""
    if not path.is_file():
        raise MissingError(f"there is no thesaurus at {path}", hint=_HINT)
    if path.suffix.lower() in {".yaml", ".yml"}:
        return read_eurovoc(path, domains=ALL_DOMAINS)
    graph = _graph(path)
    from rdflib.namespace import SKOS

    labels: dict[str, list[str]] = defaultdict(list)
    for predicate in (SKOS.prefLabel, SKOS.altLabel):
        for subject, label in sorted(graph.subject_objects(predicate)):
            if getattr(label, "language", None) in {None, "en"}:
                labels[str(subject)].append(str(label))
    links: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in ("broader", "narrower", "related")}
    for name, back in (("broader", "narrower"), ("narrower", "broader"), ("related", "related")):
        for subject, other in graph.subject_objects(SKOS[name]):
            links[name][str(subject)].add(str(other))
            links[back][str(other)].add(str(subject))
    if not labels:
        raise InputError("no concept has an English label", source=str(path), hint=_HINT)
    concepts = {
        key: EurovocConcept(
            key,
            tuple(dict.fromkeys(names)),
            frozenset(),
            **{name: tuple(sorted(linked[key])) for name, linked in links.items()},
        )
        for key, names in labels.items()
    }
    tops = [concept.labels[0] for concept in concepts.values() if concept.narrower and not concept.broader]
    return Eurovoc(concepts, tuple(sorted(tops)))


def thesaurus_seeds(rng: random.Random, thesaurus: Eurovoc, *, count: int) -> list[SeedTuples]:
    """Events made from a thesaurus: a concept's name is an attribute, its narrower concepts are the values.

    There are a dozen kinds of events. Each names its type, and has attributes of its own. All say where they come
    from, in names that are never replaced: most events of a stream have such things in common.
    """
    families = _families(thesaurus)
    if len(families) < _ATTRIBUTES[1] + 1:
        raise BuildError(
            f"only {len(families)} concepts have {_FEWEST} narrower ones, too few for events",
            hint="give a larger thesaurus",
        )
    names = sorted(families)
    kinds = []
    for _ in range(_KINDS):
        kind, *attributes = rng.sample(names, rng.randint(*_ATTRIBUTES) + 1)
        kinds.append((kind, attributes))
    seeds: dict[SeedTuples, None] = {}
    for turn in range(100 * count):
        kind, attributes = kinds[turn % len(kinds)]
        tuples = [("type", rng.choice(families[kind]))]
        tuples += [(name, rng.choice(families[name])) for name in attributes]
        tuples += [("site", rng.choice(_SITES)), ("room", f"room {rng.choice(_ROOMS)}")]
        seeds[tuple(tuples)] = None
        if len(seeds) == count:
            return list(seeds)
    raise BuildError(f"the thesaurus is too small for {count} different events", hint="ask for fewer seeds")


def _families(thesaurus: Eurovoc) -> dict[str, list[str]]:
    """For each concept's name the names of its narrower concepts; every name occurs once."""
    families: dict[str, list[str]] = {}
    taken: set[str] = set()
    for concept in thesaurus.concepts.values():
        below = [thesaurus.concepts[key].labels[0] for key in _below(concept, thesaurus)]
        usable = [name for name in dict.fromkeys(below) if plain_label(name) and name.lower() not in taken]
        name = concept.labels[0]
        if len(usable) >= _FEWEST and plain_label(name) and name.lower() not in taken:
            families[name] = usable
            taken |= {label.lower() for label in (name, *usable)}
    return families


def _below(concept: EurovocConcept, thesaurus: Eurovoc) -> Sequence[str]:
    return [key for key in concept.narrower if key in thesaurus.concepts]


def _graph(path: Path) -> Any:
    import rdflib

    graph = rdflib.Graph()
    try:
        # `.skos` tells the content of a file, not its syntax.
        written = ("xml" if _is_xml(path) else "turtle") if path.suffix.lower() == ".skos" else None
        graph.parse(path, format=written)
    except Exception as error:  # rdflib's parsers raise errors of many libraries
        raise InputError(f"not readable as RDF: {error}", source=str(path), hint=_HINT) from None
    return graph


def _is_xml(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(200).lstrip().startswith(b"<")
