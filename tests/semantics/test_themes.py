"""Suggested tags belong to the text and tell it apart."""

from __future__ import annotations

import pytest

from likewise.semantics import Space, suggest_themes, write_space


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """Six articles about traffic and six about cooking; `thing` is everywhere."""
    traffic = ["road car bus", "car lane road", "bus road lane", "road car lane bus", "bus car", "lane road"]
    cooking = ["oven soup pan", "soup pan bread", "bread oven", "pan oven soup", "soup bread", "oven bread pan"]
    folder = tmp_path_factory.mktemp("themes") / "space"
    write_space(folder, [(f"T{i}", f"thing {text}") for i, text in enumerate(traffic + cooking)])
    return Space.open(folder)


def test_tags_come_from_the_field_of_the_text(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.semantics.themes.SMALLEST_BASIS", 1)
    tags = [each.tag for each in suggest_themes(space, {"car": 1, "lane": 1})]
    assert set(tags[:2]) == {"road", "bus"}
    assert not {"soup", "pan", "oven", "bread", "thing"} & set(tags)


def test_a_suggestion_says_why(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.semantics.themes.SMALLEST_BASIS", 1)
    road = next(each for each in suggest_themes(space, {"car": 3, "lane": 1}) if each.tag == "road")
    assert road.background == pytest.approx(5 / 12)
    assert road.covers > 0.6
    assert road.lift == pytest.approx(road.covers / road.background)
    assert set(road.terms) == {"car", "lane"}
    assert all(title.startswith("T") for title in road.concepts)


def test_no_more_tags_than_asked_and_none_for_unknown_words(space: Space) -> None:
    assert len(suggest_themes(space, {"car": 1, "lane": 1}, limit=1)) <= 1
    assert suggest_themes(space, {"zzyzx": 1}) == []
    assert suggest_themes(space, {}) == []


def test_rare_words_make_no_theme(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.semantics.themes.SMALLEST_BASIS", 100)
    assert suggest_themes(space, {"car": 1}) == []


def test_numbers_make_no_theme(tiny_space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    assert suggest_themes(tiny_space, {"parking": 2, "112": 1}) == []
    monkeypatch.setattr("likewise.semantics.themes.SMALLEST_BASIS", 1)
    found = suggest_themes(tiny_space, {"parking": 2, "energy": 1, "112": 1})
    assert found
    assert all(each.tag.isalpha() for each in found)
