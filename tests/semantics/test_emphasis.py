"""How much concepts count within a theme."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from likewise.calibration import THEME_FLOOR, THEME_SHARPNESS
from likewise.semantics import Space, write_space
from likewise.semantics.measures.thematic import Emphasis

TRAFFIC = ["road car", "car lane", "road lane bus", "bus ferry"]
COOKING = [f"oven soup bread{i}" for i in range(12)]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """Four articles about traffic among sixteen; `road` stands in two of them, `ferry` in one."""
    folder = tmp_path_factory.mktemp("emphasis") / "space"
    write_space(folder, [(f"T{i}", text) for i, text in enumerate(TRAFFIC + COOKING)])
    return Space.open(folder)


def test_concepts_of_the_field_count_though_they_lack_the_tag(space: Space) -> None:
    """`car lane` does not say road, but cars and lanes are on roads; soup is not."""
    weights = Emphasis(space).of(["road"])
    assert weights is not None
    assert weights.max() == pytest.approx(1)
    by_title = {space.title(at): weight for at, weight in enumerate(weights.tolist())}
    assert by_title["T1"] > 5 * THEME_FLOOR
    assert [by_title[f"T{i + len(TRAFFIC)}"] for i in range(len(COOKING))] == pytest.approx(
        [THEME_FLOOR] * len(COOKING)
    )


def test_weights_by_hand(tmp_path: Path) -> None:
    """Spelling `sea` out: it stands in A alone, wholly (p = 1 of q = 1/5), and so does `ship`; `lake` not at all."""
    texts = ["sea ship", "ship", "lake", "wood", "field"]
    write_space(tmp_path / "s", list(zip("ABCDE", texts, strict=True)))
    space = Space.open(tmp_path / "s")
    found = Emphasis(space).of(["sea"])
    # Only words of at most a quarter of the concepts spell themes out, so `ship`, in two of five, does not.
    apart = sqrt(1 * log(5))
    near = np.array([apart, 0, 0, 0, 0]) / apart
    np.testing.assert_allclose(found, THEME_FLOOR + (1 - THEME_FLOOR) * near**THEME_SHARPNESS, rtol=1e-6)


def test_a_theme_that_no_frequent_word_spells_out_counts_by_its_own_words(tmp_path: Path) -> None:
    write_space(tmp_path / "s", [("A", "sea ship"), ("B", "sea"), ("C", "lake lake")])
    found = Emphasis(Space.open(tmp_path / "s")).of(["sea"])
    assert found is not None
    assert found[2] == pytest.approx(THEME_FLOOR)
    assert min(found[:2]) > 10 * THEME_FLOOR


@pytest.mark.parametrize("theme", [[], ["zzyzx"], ["", "of"]])
def test_without_a_known_tag_all_concepts_count_alike(space: Space, theme: list[str]) -> None:
    assert Emphasis(space).of(theme) is None


def test_order_and_repetition_of_tags_do_not_matter(space: Space) -> None:
    emphasis = Emphasis(space)
    one, two = emphasis.of(["road", "soup"]), emphasis.of(["soup", "road", "soup"])
    assert one is not None
    np.testing.assert_array_equal(one, two)


def test_every_weight_is_above_0_and_at_most_1(tiny_space: Space) -> None:
    for theme in (["car"], ["energy", "power"], ["car", "zzyzx"]):
        weights = Emphasis(tiny_space).of(theme)
        assert weights is not None
        assert THEME_FLOOR * 0.999 <= weights.min() <= weights.max() <= 1
