"""Measures by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.errors import BuildError, SpaceError
from likewise.semantics import (
    Combined,
    Competitors,
    Measure,
    Space,
    Thesaurus,
    measure,
    measure_names,
    needs_space,
    wrap_names,
)


def test_every_name_makes_a_measure(tiny_space: Space, wordnet: object) -> None:
    for name in measure_names():
        if name != "embedding":
            assert isinstance(measure(name, spaces=[tiny_space]), Measure)


def test_every_name_takes_a_contrast(tiny_space: Space) -> None:
    made = measure("esa+contrast", spaces=[tiny_space], competitors=["energy"], temperature=0.1)
    assert made.name == "esa+contrast"
    given = measure("thematic+contrast", spaces=[tiny_space], competitors=Competitors.of(["energy"]))
    assert given.name == "thematic+contrast"


@pytest.mark.parametrize("wrap", wrap_names())
def test_every_wrap_goes_around_every_measure(tiny_space: Space, wordnet: object, wrap: str) -> None:
    for name in measure_names():
        if name != "embedding":
            made = measure(f"{name}+{wrap}", spaces=[tiny_space], competitors=["energy"], background=["energy"])
            assert isinstance(made, Measure)
            assert made.matrix(["car"], ["car"])[0, 0] == 1


def test_wraps_go_around_each_other_from_the_inside_out(tiny_space: Space, wordnet: object) -> None:
    names = {"competitors": ["energy"], "background": ["energy"]}
    made = measure("esa+coded+opposed+rank+contrast", spaces=[tiny_space], **names)
    assert made.name == "esa+rank+contrast"
    assert made.matrix(["car on"], ["car off"])[0, 0] == 0
    assert made.matrix(["car 1"], ["car 2"])[0, 0] == 0


def test_options_reach_the_measure(tiny_space: Space) -> None:
    papers = measure("esa", spaces=[tiny_space], weighting="augmented", pruning=None)
    assert not np.allclose(
        papers.matrix(["car"], ["road"]), measure("esa", spaces=[tiny_space]).matrix(["car"], ["road"])
    )
    boolean = measure("concept", thesaurus=Thesaurus({"1": ["a car"], "2": ["bus"]}, [("1", "2")]), grades="boolean")
    assert boolean.matrix(["a car"], ["bus"])[0, 0] == 1


def test_spaces_may_be_named_by_path(tiny_space: Space) -> None:
    by_path = measure("esa", spaces=[tiny_space.path])
    words = ["car", "energy"]
    np.testing.assert_array_equal(
        by_path.matrix(words, words), measure("esa", spaces=[tiny_space]).matrix(words, words)
    )


def test_several_spaces_are_combined(tiny_space: Space) -> None:
    assert measure("esa", spaces=[tiny_space, tiny_space]).name == "combined"


def test_related_adds_encoders_at_half_and_evidence_at_a_quarter_of_the_weight(
    tiny_space: Space, wordnet: object
) -> None:
    words = ["car", "energy", "garage"]
    related = measure("related", spaces=[tiny_space])
    assert isinstance(related, Combined)
    names = [part.name for part in related.parts]
    assert (names[0], names[-1]) == ("esa", "evidence")
    parts = [np.sqrt(part.matrix(words, words)) for part in related.parts]
    shares = [1.0, *[0.5] * (len(parts) - 2), 0.25]
    expected = sum(share * part for share, part in zip(shares, parts, strict=True)) / sum(shares)
    np.testing.assert_allclose(related.matrix(words, words), expected, atol=1e-6)
    without_space = measure("related")
    assert isinstance(without_space, Combined)
    assert [part.name for part in without_space.parts] == names[1:]


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(BuildError, match="did you mean 'thematic'"):
        measure("tematic")
    with pytest.raises(BuildError, match="known: combined, concept"):
        measure("qqqq")


def test_what_is_missing_is_said(tiny_space: Space, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="needs a space"):
        measure("esa")
    with pytest.raises(BuildError, match="needs competitors"):
        measure("esa+contrast", spaces=[tiny_space])
    with pytest.raises(BuildError, match="needs a background"):
        measure("esa+rank", spaces=[tiny_space])
    with pytest.raises(BuildError, match="did you mean 'opposed'"):
        measure("esa+oposed", spaces=[tiny_space])
    with pytest.raises(BuildError, match="does not take these options"):
        measure("esa", spaces=[tiny_space], colour="red")
    with pytest.raises(SpaceError):
        measure("esa", spaces=[tmp_path / "none"])


def test_which_measures_need_a_space() -> None:
    without = ["concept", "embedding", "evidence", "jiang-conrath", "related", "sentence"]
    assert [name for name in measure_names() if not needs_space(name)] == without
    assert needs_space("esa+contrast")
