"""A small thematic data set and fixed measures, for tests of the experiments."""

from __future__ import annotations

from tests.evaluation.test_expansion import SMALL

from likewise.evaluation.datasets.eurovoc import Eurovoc
from likewise.evaluation.datasets.expansion import slots
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, generate
from likewise.evaluation.quality.approaches import Laboratory
from likewise.matching import Taxonomy, Topic
from likewise.semantics import Evidence
from likewise.testing import TableMeasure

TOPS = tuple(f"top {i}" for i in range(40))
TINY = DatasetRecipe(events=200, seeds=40, subscriptions=20)


class Written(TableMeasure):
    """Has the name of a known measure, so that it is treated like that."""

    name = "combined"


def tiny(recipe: DatasetRecipe = TINY) -> ThematicDataset:
    return generate(recipe, thesaurus=Eurovoc(SMALL.concepts, TOPS), devices=("kettle", "fridge"))


def knowing(data: ThematicDataset, *, synonym: float = 0.6, sibling: float = 0.5) -> TableMeasure:
    """A measure that knows every synonym of the data set, and relates all terms of a role moderately."""
    terms = sorted({slot for seed in data.seeds for slot in slots(seed)})
    pairs = {(term, other): sibling for role, term in terms for also, other in terms if role == also and term < other}
    for (_, term), others in data.expansion.variants.items():
        pairs.update({(term, other): synonym for other in others})
    return Written(pairs)


def laboratory(data: ThematicDataset) -> Laboratory:
    """Every measure is the fixed one."""
    names = (
        "concept",
        "wordnet",
        "wikipedia",
        "both",
        "euclidean",
        "thematic",
        "jiang-conrath",
        "embedding",
        "sentence",
        "all",
    )
    # Evidence without spaces, which may be missing.
    evidence = {f"evidence {known}": Evidence([], encoder=known == "all") for known in ("wordnet", "both", "all")}
    taxonomy = Taxonomy((Topic("Galway"), Topic("Spain")))
    return Laboratory(thesaurus=SMALL, taxonomy=taxonomy, _made={**dict.fromkeys(names, knowing(data)), **evidence})
