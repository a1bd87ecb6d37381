"""Paper 002's experiment: events in other words, truth by construction, and matching of statements."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from likewise.charts import Spec
from likewise.cli.app import run as command
from likewise.errors import BuildError, MissingError
from likewise.evaluation import experiment
from likewise.evaluation.datasets.world_events import (
    DATABASE,
    ENCYCLOPAEDIA,
    SOURCES,
    WorldEvent,
    world_events,
    write_down,
)
from likewise.evaluation.experiment import ExperimentSettings
from likewise.evaluation.experiments import approximate
from likewise.evaluation.experiments.approximate import NEEDS, Figures, World
from likewise.evaluation.quality.statements import StatementMeasures, StatementScorer, exact_patterns
from likewise.events import Event
from likewise.testing import TableMeasure

FINAL = {
    "date": "2010-07-11",
    "home_team": "Netherlands",
    "away_team": "Spain",
    "home_score": "0",
    "away_score": "1",
    "tournament": "FIFA World Cup",
    "city": "Johannesburg",
    "country": "South Africa",
}
FRIENDLY = FINAL | {
    "home_team": "England", "away_team": "Brazil", "tournament": "Friendly", "city": "London", "country": "England",
}  # fmt: skip
SIEGE = {"label": "Siege of London (1066)", "date": "1066-11-01T00:00:00Z"}


def relevant(event: WorldEvent) -> list[int]:
    return [number for number, need in enumerate(NEEDS, start=1) if event.answers(need.means)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize(
    ("facts", "asked"), [(FINAL, [1, 2]), (FRIENDLY, [3, 4, 5, 6, 7]), (SIEGE, [3])], ids=["final", "friendly", "siege"]
)
def test_truth_does_not_depend_on_who_writes(source, facts, asked) -> None:  # type: ignore[no-untyped-def]
    chance = Random(1)
    written = [write_down(facts, str(number), source, chance=chance) for number in range(20)]
    assert len({event.statements for event in written}) > 1
    assert all(relevant(event) == asked for event in written)


def test_the_second_source_never_says_football_match() -> None:
    kinds = {kind for editor in DATABASE.matches for kind in editor.types}
    assert "FootballMatch" not in kinds
    assert all("FootballMatch" in editor.types for editor in ENCYCLOPAEDIA.matches)


def written_data(folder: Path) -> Path:
    (folder / "events").mkdir()
    rows = [",".join(FINAL), *(",".join(facts.values()) for facts in 6 * [FINAL, FRIENDLY])]
    (folder / "events" / "football-results.csv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "events" / "wikidata_historicEvents.json").write_text(
        '[{"label": "Siege of London (1066)", "date": "1066-11-01T00:00:00Z"}]', encoding="utf-8"
    )
    return folder


def test_the_same_seed_gives_the_same_events(tmp_path: Path) -> None:
    data = written_data(tmp_path)
    assert world_events(data, seed=3) == world_events(data, seed=3) != world_events(data, seed=4)


def test_missing_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="LIKEWISE_DATA"):
        world_events(tmp_path)


# --- statements --------------------------------------------------------------------------------------

EVENTS = [
    Event("a", (("team", "Spain"), ("team", "Netherlands"), ("location", "Johannesburg"), ("name", "final"))),
    Event("b", (("club", "Brazil"), ("location", "London"), ("score", "1"), ("date", "2010"))),
]
WANTED = [[("team", "Spain"), ("place", "Africa")], [("place", "London")]]
ESA = TableMeasure(
    {
        ("team", "club"): 0.3,
        ("place", "location"): 0.2,
        ("place", "name"): 0.1,
        ("place", "date"): 0.15,
        ("africa", "johannesburg"): 0.5,
        ("spain", "brazil"): 0.1,
    }
)
SIMILAR = TableMeasure(
    {("place", "location"): 0.6, ("place", "name"): 0.4, ("team", "club"): 0.7, ("team", "score"): 0.1}
)


def test_scores_are_those_of_the_paper() -> None:
    """m = 5: location is the first of its event, so fP = min(1, 5 * 0.2), and fV = 0.5; team and Spain are equal."""
    scorer = StatementScorer(EVENTS, WANTED)
    scores = scorer.score(StatementMeasures.hybrid(ESA, SIMILAR))
    assert scores[0].tolist() == pytest.approx([(1 + 1.0 * 0.5) / 2, (min(1, 5 * 0.3) * 0.1 + 0) / 2])
    assert scores[1].tolist() == pytest.approx([0, 1.0 * 1.0])
    plain = scorer.score(StatementMeasures.of(ESA))
    assert plain[0].tolist() == pytest.approx([(1 + 0.2 * 0.5) / 2, 0.3 * 0.1 / 2])


def test_outside_the_top_m_nothing_counts() -> None:
    nearer = TableMeasure({("place", "name"): 0.9, ("place", "location"): 0.5})
    scorer = StatementScorer(EVENTS[:1], [[("place", "Johannesburg")]])
    measures = StatementMeasures.hybrid(ESA, nearer)
    assert scorer.score(measures, top=1).tolist() == [[0]]
    assert scorer.score(measures, top=2)[0, 0] == pytest.approx(1 * 0.2)


def test_patterns_are_the_product_of_what_events_say() -> None:
    pairs = {"a": {("p", "x"), ("q", "x")}, "b": {("p", "1"), ("p", "2"), ("q", "1")}}
    assert exact_patterns(pairs, ["a", "b"]) == 2 * 3
    assert exact_patterns(pairs, ["a", "c"]) == 0


# --- the experiment ----------------------------------------------------------------------------------


@pytest.fixture
def figures(tmp_path: Path) -> Figures:
    # The small data all go to the first source; the second writes them down too.
    [first, _] = world_events(written_data(tmp_path), seed=1).values()
    second = [
        write_down(facts, f"d{n}", DATABASE, chance=Random(n)) for n, facts in enumerate((FINAL, FRIENDLY, SIEGE))
    ]
    both = {"encyclopaedia": first, "database": second}
    worlds = [World(name, events, tmp_path, seed=1) for name, events in both.items()]
    plain = StatementMeasures.of(ESA)
    matchers = {"jiang-conrath": plain, "wikipedia esa": plain, "hybrid": StatementMeasures.hybrid(ESA, SIMILAR)}
    return Figures(worlds, matchers, ExperimentSettings(out=tmp_path / "charts"))


def test_every_figure_and_table_is_there(figures: Figures, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Spec] = {}
    monkeypatch.setattr(experiment, "save", lambda spec, path: drawn.setdefault(path.stem, spec))
    reports = figures.reports(range(1, 3))
    assert list(drawn) == [f"approximate-figure-{number}" for number in (5, 6, 7, 8, 9, 11, 10)]
    assert all(spec["data"]["values"] for spec in drawn.values())
    titles = " ".join(report.title for report in reports)
    assert all(f"table {number}]" in titles or f"and {number}]" in titles for number in (4, 5, 6, 7, 8))
    [maxima] = [report for report in reports if report.title.startswith("Maximal F1, database")]
    assert [row["F1 (paper)"] for row in maxima.rows] == [0.4460, 0.7073, 0.7633]


def test_events_come_back_from_rdf_as_they_were_meant(figures: Figures) -> None:
    world = figures.worlds[0]
    assert len(world.scorer.events) == len(world.events) == 13
    assert world.truth.sum(axis=1).tolist() == [6, 6, 7, 6, 6, 6, 6]
    assert "football match" in world.scorer.terms.values[1]
    assert {"team", "location"} & set(world.scorer.terms.attributes[1])


@pytest.mark.parametrize(
    "options", [{"share": "0"}, {"tops": "0,1"}, {"measures": "telepathy"}, {"colour": "blue"}], ids=str
)
def test_wrong_options_are_refused_before_the_work(options: dict[str, str]) -> None:
    with pytest.raises(BuildError):
        approximate.run(ExperimentSettings(options=options))


def test_help_of_an_experiment_teaches_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["evaluate", "approximate", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--set seeds=1,2 " in text
    assert "likewise evaluate approximate --quick" in text
