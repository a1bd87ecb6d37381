"""The experiment on human judgements."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError, MissingError, SpaceError
from likewise.evaluation.experiment import ExperimentSettings, experiments, find_experiment
from likewise.evaluation.experiments import relatedness
from likewise.evaluation.experiments.relatedness import Judgements
from likewise.semantics import Esa, Space, measure, write_space


@pytest.fixture
def space(tmp_path: Path) -> Space:
    texts = ["car bus road", "car bus", "car road", "cow grass milk", "cow milk", "road grass"]
    write_space(tmp_path / "tiny", list(zip("ABCDEF", texts, strict=True)))
    return Space.open(tmp_path / "tiny")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "relatedness"
    folder.mkdir(parents=True)
    (folder / "EN-WS-353-ALL.txt").write_text("car\tbus\t9.0\ncar\troad\t6.5\ncar\tcow\t1\ncow\tmilk\t8\n")
    return tmp_path / "data"


def test_agreement_is_the_rank_correlation(space: Space, data: Path) -> None:
    """People: 4 2.5.. car-bus > cow-milk > car-road > car-cow; cosines order cow-milk = 1 first, then car-bus."""
    sets = relatedness.read_all(data)
    assert [judgements.name for judgements in sets] == ["WS-353"]
    esa = Esa(space)
    cosines = [float(esa.matrix([a], [b])[0, 0]) for a, b in zip(sets[0].left, sets[0].right, strict=True)]
    assert cosines[3] > cosines[0] > cosines[1] > cosines[2] == 0
    assert sets[0].agreement(esa) == pytest.approx(1 - 6 * 2 / (4 * 15))


def test_the_run_gives_a_row_for_each_measure_and_space(space: Space, data: Path) -> None:
    messages: list[str] = []
    settings = ExperimentSettings(spaces=(str(space.path), str(space.path)), data=data, quick=True, say=messages.append)
    (report,) = relatedness.run(settings)
    assert [row["space"] for row in report.rows] == ["tiny", "tiny", "tiny + tiny"]
    assert report.rows[0]["WS-353"] == 0.8
    assert report.columns == ["measure", "space", "WS-353"]
    assert len(messages) == 3


def test_targets_stand_under_the_spaces_they_belong_to(space: Space, data: Path, tmp_path: Path) -> None:
    space.path.rename(tmp_path / "wordnet")
    (report,) = relatedness.run(ExperimentSettings(spaces=(str(_renamed(tmp_path)),), data=data, quick=True))
    assert report.rows[1]["WS-353"] == 0.60


def _renamed(tmp_path: Path) -> Path:
    """A space contains its name, so it is built again with the new one."""
    write_space(tmp_path / "wordnet", [("A", "car bus"), ("B", "cow milk")], overwrite=True)
    return tmp_path / "wordnet"


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("car\tbus\t9\ncar bus 9\n")
    with pytest.raises(InputError, match=r"x\.txt:2: not a judgement"):
        Judgements.read(tmp_path / "x.txt")


def test_missing_data_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="LIKEWISE_DATA"):
        relatedness.read_all(tmp_path)


def test_experiments_are_found_by_name() -> None:
    assert experiments()["relatedness"] is find_experiment("relatedness")
    with pytest.raises(Exception, match="did you mean 'relatedness'"):
        find_experiment("relatednes")


@pytest.mark.slow
@pytest.mark.parametrize("names", relatedness.TARGETS, ids=lambda names: names.replace(" ", ""))
def test_built_spaces_reach_their_targets(names: str) -> None:
    """The quality that the project promises, on the spaces of the shelf and the shared human judgements."""
    try:
        sets = relatedness.read_all()
        judge = measure("esa", spaces=names.split(" + "))
    except (MissingError, SpaceError) as error:
        pytest.skip(str(error))
    reached = {judgements.name: round(judgements.agreement(judge), 2) for judgements in sets}
    assert {name: min(reached[name], aim) for name, aim in relatedness.TARGETS[names].items()} == relatedness.TARGETS[
        names
    ]
