"""Data sets from any thesaurus: read, turned into events, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import BuildError, InputError, MissingError
from likewise.evaluation.datasets.skos import read_skos
from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic

FAMILIES = {
    "vehicle": ["car", "lorry", "bicycle"],
    "animal": ["dog", "cat", "horse"],
    "colour": ["red", "green", "blue"],
    "fruit": ["apple", "pear", "cherry"],
    "metal": ["iron", "copper", "gold"],
    "sport": ["football", "tennis", "rowing"],
    "weather": ["rain", "snow", "fog"],
    "furniture": ["chair", "table", "cupboard"],
}
OTHERS = {"car": "automobile", "lorry": "truck", "dog": "hound", "rain": "rainfall", "chair": "seat", "gold": "bullion"}
RECIPE = DatasetRecipe(seed=3, events=60, seeds=20, subscriptions=10)


@pytest.fixture
def thesaurus(tmp_path: Path) -> Path:
    lines = ["@prefix s: <http://www.w3.org/2004/02/skos/core#> .", "@prefix : <urn:> ."]
    for above, below in FAMILIES.items():
        lines.append(f':{above} a s:Concept ; s:prefLabel "{above}"@en .')
        for name in below:
            other = f' ; s:altLabel "{OTHERS[name]}"@en' if name in OTHERS else ""
            lines.append(f':{name} s:prefLabel "{name}"@en, "x"@fr ; s:broader :{above}{other} .')
    path = tmp_path / "own.skos"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_skos_file_is_read_with_its_links_in_both_directions(thesaurus: Path) -> None:
    found = read_skos(thesaurus)
    assert found.variants("lorry", relations=("synonym",)) == ("truck",)
    assert set(found.variants("animal", relations=("narrower",))) == {"dog", "cat", "horse"}
    assert "fruit" in found.top_terms


def test_events_are_made_of_the_thesaurus(thesaurus: Path) -> None:
    recipe = DatasetRecipe(**{**_fields(RECIPE), "thesaurus": str(thesaurus), "typed": True})
    data = build_thematic(recipe)
    assert data.events == build_thematic(recipe).events
    assert all(seed[0][0] == "type" for seed in data.seeds)
    assert all(value in FAMILIES[name] for seed in data.seeds for name, value in seed[1:-2])
    assert all(dict(seed).keys() >= {"site", "room"} for seed in data.seeds), "what events have in common"
    assert all(any(p.attribute == "type" for p in profile.predicates) for profile in data.exact), "typed"
    assert data.truth.any(axis=1).all()


@pytest.mark.skipif("LIKEWISE_DATA" not in os.environ, reason="LIKEWISE_DATA names no folder of appliances")
def test_city_events_are_said_in_the_words_of_another_thesaurus() -> None:
    """As with EuroVoc, only the replacements differ; the original words are those of the city."""
    recipe = DatasetRecipe(**{**_fields(RECIPE), "thesaurus": "wordnet", "city": True})
    data, usual = build_thematic(recipe), build_thematic(DatasetRecipe(**_fields(RECIPE)))
    assert data.seeds == usual.seeds
    assert data.expansion != usual.expansion
    assert data.truth.any(axis=1).all()


def test_the_command_makes_them(thesaurus: Path, tmp_path: Path) -> None:
    sizes = ["--events", "60", "--seeds", "20", "--subscriptions", "10"]
    out = tmp_path / "made"
    result = CliRunner().invoke(
        build(), ["dataset", "thematic", "--thesaurus", str(thesaurus), *sizes, "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert len((out / "events.jsonl").read_text().splitlines()) == 60


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("none.ttl", None, MissingError),
        ("broken.ttl", "this is no turtle", InputError),
        ("empty.ttl", "", InputError),
        ("small.ttl", '<urn:a> <http://www.w3.org/2004/02/skos/core#prefLabel> "a b" .', BuildError),
    ],
)
def test_what_cannot_be_made_into_events_is_refused(tmp_path: Path, name: str, text: str | None, error: type) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(error) as raised:
        build_thematic(DatasetRecipe(**{**_fields(RECIPE), "thesaurus": str(tmp_path / name)}))
    assert raised.value.hint


def _fields(recipe: DatasetRecipe) -> dict[str, object]:
    return {"seed": recipe.seed, "events": recipe.events, "seeds": recipe.seeds, "subscriptions": recipe.subscriptions}
