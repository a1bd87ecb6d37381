"""Topics: the topics of a taxonomy that a term belongs to [004 sec 7.2-7.4].

The paper used a paid web service to find topics. Here a term belongs to the topics whose label and definition are
nearest to it by the matcher's own measure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import TOPICS_OF_EVENTS, TOPICS_OF_SUBSCRIPTIONS
from likewise.errors import InputError, MissingError
from likewise.semantics import Measure

_CACHED = 1 << 16
"""Terms whose topics are cached before the cache is cleared."""

_IPTC = Path("iptc") / "mediatopics-en-GB.json"
_SKOS = "http://www.w3.org/2004/02/skos/core#"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its name and definition."""

    name: str
    definition: str = ""

    @property
    def text(self) -> str:
        """The text that terms are compared with; the name counts twice."""
        return f"{self.name} {self.name} {self.definition}"


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """A list of topics, from IPTC Media Topics or any other source."""

    topics: tuple[Topic, ...]

    @classmethod
    def from_file(cls, path: Path | str) -> Taxonomy:
        """Read IPTC's JSON, a JSON object of names and definitions, or SKOS in any RDF format."""
        source = Path(path)
        try:
            topics = _from_json(json.loads(source.read_bytes())) if source.suffix == ".json" else _from_skos(source)
        except OSError as error:
            raise MissingError(f"no taxonomy at {source}: {error.strerror}", hint="give a file of topics") from None
        except ValueError as error:
            raise InputError(f"not a taxonomy: {error}", source=str(source)) from None
        if not topics:
            raise InputError("the taxonomy has no topics", source=str(source))
        return cls(tuple(topics))

    @classmethod
    def default(cls, environment: Mapping[str, str] = os.environ) -> Taxonomy:
        """The file `LIKEWISE_TAXONOMY`, or the IPTC topics in the folder `LIKEWISE_DATA`."""
        given = environment.get("LIKEWISE_TAXONOMY")
        data = environment.get("LIKEWISE_DATA")
        path = Path(given) if given else Path(data) / _IPTC if data else None
        if path is None or not path.is_file():
            raise MissingError(
                "the approach clustered needs a taxonomy of topics, and none was found",
                hint="set LIKEWISE_TAXONOMY to a file: IPTC Media Topics (cv.iptc.org) as JSON, or any SKOS",
            )
        return cls.from_file(path)


def _from_json(value: Any) -> list[Topic]:
    if isinstance(value, dict) and "conceptSet" in value:
        concepts = value["conceptSet"]
        return [Topic(_english(concept["prefLabel"]), _english(concept.get("definition"))) for concept in concepts]
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return [Topic(name, text) for name, text in value.items()]
    raise ValueError("expected a conceptSet, or an object of names and definitions")


def _english(labels: Any) -> str:
    return next((text for tag, text in (labels or {}).items() if tag.startswith("en")), "")


def _from_skos(path: Path) -> list[Topic]:
    from rdflib import Graph, URIRef
    from rdflib.util import guess_format

    graph = Graph().parse(path, format=guess_format(path.name) or "turtle")
    definitions = {subject: str(text) for subject, text in graph.subject_objects(URIRef(f"{_SKOS}definition"))}
    labels = graph.subject_objects(URIRef(f"{_SKOS}prefLabel"))
    english = [(subject, label) for subject, label in labels if (getattr(label, "language", None) or "en")[:2] == "en"]
    return [Topic(str(label), definitions.get(subject, "")) for subject, label in sorted(english)]


class Classifier:
    """Assigns terms to topics.

    >>> from likewise.testing import TableMeasure
    >>> taxonomy = Taxonomy((Topic("transport"), Topic("energy")))
    >>> measure = TableMeasure({("transport transport", "car"): 0.6, ("energy energy", "car"): 0.2})
    >>> Classifier(measure, taxonomy).topics_of(["car", "unheard"], most=1).tolist()
    [[True, False], [True, True]]
    """

    def __init__(self, measure: Measure, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._prepared = measure.prepare([topic.text.strip() for topic in taxonomy.topics])

    def topics_of(self, terms: Sequence[str], *, most: int) -> NDArray[np.bool_]:
        """A row per term, a column per topic: its `most` nearest topics; a term near none belongs to all."""
        scores = np.nan_to_num(self._prepared.rows(terms))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        out = np.zeros(scores.shape, dtype=np.bool_)
        np.put_along_axis(out, best, np.take_along_axis(scores, best, axis=1) > 0, axis=1)
        out[~out.any(axis=1)] = True
        return out


class Clusters:
    """The topics of subscription terms and of event terms, with a cache."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._cache: dict[tuple[str, int], NDArray[np.bool_]] = {}

    def meet(self, subscribed: Sequence[str], published: Sequence[str]) -> NDArray[np.bool_]:
        """A row per event term, a column per subscription term: whether they share a topic [004 Alg 2]."""
        left = self._rows(published, TOPICS_OF_EVENTS).astype(np.float32)
        right = self._rows(subscribed, TOPICS_OF_SUBSCRIPTIONS).astype(np.float32)
        shared: NDArray[np.bool_] = left @ right.T > 0
        return shared

    def _rows(self, terms: Iterable[str], most: int) -> NDArray[np.bool_]:
        wanted = list(terms)
        new = [term for term in dict.fromkeys(wanted) if (term, most) not in self._cache]
        if new:
            if len(self._cache) > _CACHED:
                needed = {(term, most) for term in wanted}
                self._cache = {key: row for key, row in self._cache.items() if key in needed}
            for term, row in zip(new, self._classifier.topics_of(new, most=most), strict=True):
                self._cache[term, most] = row
        empty = np.zeros((0, len(self._classifier.taxonomy.topics)), dtype=np.bool_)
        return np.array([self._cache[term, most] for term in wanted]) if wanted else empty
