"""The data set: sizes, determinism, truth that follows from the words, themes, files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.tiny import TINY, tiny

from likewise.errors import BuildError, MissingError
from likewise.evaluation.datasets.files import write_thematic
from likewise.evaluation.datasets.thematic import (
    DatasetRecipe,
    ThematicDataset,
    build_thematic,
    relevant,
)
from likewise.language import Profile

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("LIKEWISE_DATA", "no-data")) / "eurovoc").is_dir(),
    reason="EuroVoc is not there: set LIKEWISE_DATA to the data folder",
)


@pytest.fixture(scope="module")
def whole() -> ThematicDataset:
    return build_thematic()


def meant(profile: Profile, data: ThematicDataset, attributes: dict[str, str]) -> bool:
    """Relevance from the words alone, the second definition of [000 sec 5.2.3]."""

    def may_say(role: str, term: str, approximate: bool) -> set[str]:
        return {term, *(data.expansion.of(role, term) if approximate else ())}  # type: ignore[arg-type]

    return all(
        any(
            attribute in may_say("attribute", p.attribute, p.attribute_approximate)
            and value in may_say("value", str(p.value), p.value_approximate)
            for attribute, value in attributes.items()
        )
        for p in profile.predicates
    )


def test_the_same_recipe_gives_the_same_set() -> None:
    first, second = tiny(), tiny()
    assert first.events == second.events
    assert first.profiles == second.profiles
    assert tiny(replace(TINY, seed=2)).events != first.events


@pytest.mark.parametrize("degree", [0.0, 0.5, 1.0])
def test_truth_by_construction_is_the_truth_of_the_words(degree: float) -> None:
    data = tiny().approximated(degree)
    for profile, row in zip(data.profiles, data.truth, strict=True):
        for event, is_relevant in zip(data.events, row, strict=True):
            assert is_relevant == meant(profile, data, {a: str(v) for a, v in event.tuples})


def test_full_approximation_is_isomorphic_to_exact_matching_of_seeds() -> None:
    data = tiny()
    for exact, row in zip(data.exact, data.truth, strict=True):
        wanted = {(p.attribute, p.value) for p in exact.predicates}
        assert row.tolist() == [wanted <= set(data.seeds[origin]) for origin in data.origins]


def test_the_degree_is_the_share_of_relaxed_terms() -> None:
    data = tiny().approximated(0.5)
    flags = [f for q in data.profiles for p in q.predicates for f in (p.attribute_approximate, p.value_approximate)]
    assert sum(flags) / len(flags) == pytest.approx(0.5)


def test_less_approximation_never_finds_more() -> None:
    data = tiny()
    assert (data.approximated(0.0).truth <= data.truth).all()


def test_other_words_for_an_interest_mean_the_same() -> None:
    data = tiny()
    other = data.reworded(1.0)
    assert other.profiles != data.profiles
    assert (other.truth == data.truth).all()
    for before, after in zip(data.profiles, other.profiles, strict=True):
        for p, q in zip(before.predicates, after.predicates, strict=True):
            assert q.attribute in {p.attribute, *data.expansion.of("attribute", p.attribute)}
            assert q.value in {p.value, *data.expansion.of("value", str(p.value))}
    exact = data.approximated(0.0)
    assert exact.reworded(1.0).profiles == exact.profiles


@pytest.mark.parametrize(("events", "subscriptions"), [(3, 2), (2, 10), (5, 5)])
def test_one_theme_contains_the_other(events: int, subscriptions: int) -> None:
    theme, wanted = tiny().themes(events, subscriptions, sample=3)
    assert (len(theme), len(wanted)) == (events, subscriptions)
    assert set(theme) <= set(wanted) or set(wanted) <= set(theme)
    assert tiny().themes(events, subscriptions, sample=3) == (theme, wanted)


def test_impossible_recipes_are_refused_when_made() -> None:
    with pytest.raises(BuildError, match="approximation"):
        DatasetRecipe(approximation=1.5)
    with pytest.raises(BuildError, match="at least 1"):
        DatasetRecipe(events=0)
    with pytest.raises(BuildError, match="at most"):
        tiny(replace(TINY, events=10**6))
    with pytest.raises(BuildError, match="theme tags"):
        tiny().themes(0, 0)


def test_without_the_data_the_error_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="LIKEWISE_DATA"):
        build_thematic(data=tmp_path)


def test_files_hold_the_whole_set(tmp_path: Path) -> None:
    data = tiny()
    write_thematic(data, tmp_path)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["attributes"] for event in events] == [dict(event.tuples) for event in data.events]
    header, *pairs = (tmp_path / "truth.tsv").read_text().splitlines()
    assert header == "subscription\tevent"
    assert len(pairs) == data.truth.sum()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["facts"]["relevant pairs"] == data.truth.sum()
    assert "~" in (tmp_path / "subscriptions.lw").read_text()
    assert "~" not in (tmp_path / "subscriptions-exact.lw").read_text()


@needs_data
def test_the_paper_s_sizes(whole: ThematicDataset) -> None:
    assert len(whole.events) == len({event.tuples for event in whole.events}) == 14_743
    assert len(whole.seeds) == 166
    assert len(whole.profiles) == len(set(whole.profiles)) == 94
    assert max(len(event.tuples) for event in whole.events) <= 10
    assert len(whole.top_terms) > 30


@needs_data
def test_the_words_really_differ(whole: ThematicDataset) -> None:
    """EuroVoc is sparse: without this check an empty expansion would look like a perfect matcher."""
    assert whole.facts["tuples replaced"] > 0.35
    assert whole.facts["terms with variants"] > 50
    assert 10_000 < whole.facts["equivalent exact subscriptions"] < 200_000
    assert whole.truth.any(axis=1).all()


@needs_data
def test_whole_truth_is_the_truth_of_the_words(whole: ThematicDataset) -> None:
    half = whole.approximated(0.5)
    rng = np.random.default_rng(1)
    for i in rng.integers(0, 94, 12):
        assert (relevant(half.profiles[i], half) == half.truth[i]).all()
        for j in [*rng.integers(0, len(half.events), 100), *half.truth[i].nonzero()[0][:20]]:
            terms = {a: str(v) for a, v in half.events[j].tuples}
            assert half.truth[i, j] == meant(half.profiles[i], half, terms)
