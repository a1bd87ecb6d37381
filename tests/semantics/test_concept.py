"""Thesauri from WordNet, YAML and RDF, and the boolean and graded measure over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import BuildError, InputError, MissingError
from likewise.semantics import Concept, Thesaurus, WordNet

SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://x/1> skos:prefLabel "electrical energy"@en, "énergie électrique"@fr ; skos:altLabel "power"@en .
<http://x/2> skos:prefLabel "wind energy"@en ; skos:broader <http://x/1> .
<http://x/3> skos:prefLabel "fish"@en .
"""
YAML = """
concepts:
  1: {prefLabel: {en: electrical energy, fr: énergie}, altLabel: {en: [power]}, related: [c_2]}
  c_2: {prefLabel: {en: wind energy}}
  3: {prefLabel: {en: fish}}
"""


@pytest.mark.parametrize(("name", "text"), [("energy.ttl", SKOS), ("energy.yaml", YAML)])
def test_skos_files_give_synonyms_and_related_terms(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    measure = Concept(Thesaurus.from_file(tmp_path / name))
    scores = measure.matrix(["Electrical_Energy"], ["power", "wind energy", "fish", "énergie électrique"])
    assert scores.tolist() == [[1.0, 0.5, 0.0, 0.0]]
    assert [each.concept for each in measure.reason("power", "wind energy")] == ["electrical energy – wind energy"]


def test_another_language_is_read_when_asked(tmp_path: Path) -> None:
    (tmp_path / "energy.ttl").write_text(SKOS, encoding="utf-8")
    thesaurus = Thesaurus.from_file(tmp_path / "energy.ttl", language="fr")
    assert list(thesaurus.names()) == ["energi electriqu"]


@pytest.mark.parametrize(("grades", "expected"), [("boolean", 1.0), ("graded", 0.3), ("synonyms", 0.0)])
def test_grades_say_what_related_terms_count(grades: str, expected: float) -> None:
    thesaurus = Thesaurus({"1": ["car", "auto"], "2": ["vehicle"]}, [("1", "2")])
    scores = Concept(thesaurus, grades=grades, related=0.3).matrix(["car"], ["auto", "vehicle"])
    assert scores[0].tolist() == pytest.approx([1.0, expected])


def test_a_link_counts_in_both_directions() -> None:
    thesaurus = Thesaurus({"1": ["car"], "2": ["vehicle"]}, [("1", "2"), ("1", "elsewhere"), ("2", "2")])
    assert Concept(thesaurus).matrix(["vehicle"], ["car"])[0, 0] == 0.5


def test_wordnet_gives_synonyms_and_neighbours(wordnet: WordNet) -> None:
    measure = Concept(Thesaurus.from_wordnet(wordnet))
    assert measure.matrix(["car"], ["automobile", "cab", "fish"]).tolist() == [[1.0, 0.5, 0.0]]
    assert measure.matrix(["dogs"], ["canine"])[0, 0] == 0.5


def test_eurovoc_is_read_whole(data: Path) -> None:
    thesaurus = Thesaurus.from_file(data / "eurovoc" / "eurovoc.yaml")
    assert len(thesaurus) == 7317
    assert Concept(thesaurus).matrix(["Ireland"], ["Eire"])[0, 0] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.yaml", "just text"),
        ("x.yaml", "concepts: [1, 2"),
        ("x.ttl", "<a> <b>"),
        ("x.ttl", "<http://a> <http://b> 1 ."),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"x\."):
        Thesaurus.from_file(tmp_path / name)


def test_a_missing_file_says_what_may_be_given(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="SKOS"):
        Thesaurus.from_file(tmp_path / "none.rdf")


@pytest.mark.parametrize("options", [{"related": 2.0}, {"grades": "some"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(BuildError):
        Concept(Thesaurus({}, []), **options)
