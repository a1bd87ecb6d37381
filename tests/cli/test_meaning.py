"""relate, nearest, themes and evaluate, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.semantics import write_space

TEXTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Traffic", "car vehicle street road traffic speed"),
    ("Power station", "energy power electricity coal station"),
    ("Energy use", "energy consumption usage electricity meter appliance"),
    ("Laptop", "laptop computer notebook battery power screen"),
    ("Computer", "computer laptop processor memory office electricity"),
    ("Street", "street garage parking car vehicle traffic"),
    ("Meter", "energy electricity meter power"),
]


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return build()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_space(tmp_path / "spaces" / "wordnet", TEXTS)
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path / "spaces"))
    return tmp_path / "spaces"


def run(app: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, LikewiseError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_relate_gives_the_score_and_the_shared_concepts(app: typer.Typer, shelf: Path) -> None:
    """000 sec 3.1: parking is nearer to garage than to energy."""
    near = json.loads(run(app, "relate", "parking", "garage", "--measure", "esa", "--json"))
    far = json.loads(run(app, "relate", "parking", "energy", "--measure", "esa", "--json"))
    assert near["score"] > far["score"]
    assert near["reasons"][0]["concept"] in {"Car park", "Garage", "Street"}
    assert "Garage" in run(app, "relate", "parking", "garage", "--measure", "esa")


def test_relate_adds_up_evidence_and_reads_a_glossary(app: typer.Typer, shelf: Path, tmp_path: Path) -> None:
    found = json.loads(run(app, "relate", "temperature", "temp", "--json"))
    assert (found["measure"], found["score"] > 0.8) == ("evidence", True)
    assert "short for" in run(app, "relate", "room temperature", "rm temp")
    assert json.loads(run(app, "relate", "conference room", "war room zz", "--json"))["score"] < 0.5
    (tmp_path / "own.txt").write_text("zz9 = conference room\n")
    options = ["--glossary", str(tmp_path / "own.txt"), "--json"]
    assert json.loads(run(app, "relate", "conference room", "zz9", *options))["score"] > 0.9
    with pytest.raises(LikewiseError, match="takes no glossary"):
        run(app, "relate", "a", "b", "--measure", "esa", *options)


def test_relate_projects_by_themes(app: typer.Typer, shelf: Path) -> None:
    found = json.loads(run(app, "relate", "parking", "garage", "--theme", "street", "--theme-b", "car", "--json"))
    assert found["measure"] == "thematic"
    assert found["subscription_theme"] == ["street"]
    assert found["event_theme"] == ["street", "car"]


def test_relate_contrasts_and_reads_thesauri(app: typer.Typer, shelf: Path, tmp_path: Path) -> None:
    options = ["--measure", "esa+contrast", "--competitor", "garage", "--json"]
    assert json.loads(run(app, "relate", "street", "parking", *options))["measure"] == "esa+contrast"
    (tmp_path / "t.yaml").write_text("concepts: {1: {prefLabel: {en: car}, altLabel: {en: [auto]}}}")
    options = ["--measure", "concept", "--thesaurus", str(tmp_path / "t.yaml"), "--json"]
    assert json.loads(run(app, "relate", "car", "auto", *options))["score"] == 1


def test_nearest_lists_words_with_reasons(app: typer.Typer, shelf: Path) -> None:
    found = json.loads(run(app, "nearest", "parking", "-n", "3", "--json"))
    assert found["nearest"][0]["word"] == "garage"
    assert found["nearest"][0]["concepts"]
    assert "garage" in run(app, "nearest", "parking", "--why")


def test_themes_of_a_subscription_and_of_events(app: typer.Typer, shelf: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("likewise.semantics.themes.SMALLEST_BASIS", 1)
    found = json.loads(run(app, "themes", "--subscription", "{type = parking~, place~ = street~}", "--json"))
    assert {"car", "vehicle"} & {tag["tag"] for tag in found["tags"]}
    (tmp_path / "e.jsonl").write_text('{"id":"1","attributes":{"type":"parking","place":["street","garage"],"n":4}}\n')
    assert "{" in run(app, "themes", str(tmp_path / "e.jsonl"))


def test_themes_needs_one_source(app: typer.Typer, shelf: Path) -> None:
    with pytest.raises(BuildError, match="either a file of events or --subscription"):
        run(app, "themes")


def test_without_a_space_the_command_to_build_one_is_said(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path / "none"))
    with pytest.raises(MissingError, match="likewise space build --corpus wordnet --out wordnet"):
        run(app, "relate", "parking", "garage", "--measure", "esa")


def test_without_wordnet_the_first_space_is_read(app: typer.Typer, shelf: Path) -> None:
    (shelf / "wordnet").rename(shelf / "other")
    assert json.loads(run(app, "nearest", "parking", "--json"))["nearest"]


def test_evaluate_lists_and_runs_experiments(app: typer.Typer, shelf: Path, tmp_path: Path) -> None:
    assert "relatedness" in run(app, "evaluate", "list")
    assert "relatedness" in json.loads(run(app, "evaluate", "list", "--json"))
    folder = tmp_path / "data" / "relatedness"
    folder.mkdir(parents=True)
    (folder / "EN-RG-65.txt").write_text("parking\tgarage\t9\nparking\tenergy\t1\n")
    options = ["--data", str(tmp_path / "data"), "--quick"]
    assert "RG-65" in run(app, "evaluate", "relatedness", *options)
    report = json.loads(run(app, "evaluate", "relatedness", *options, "--json"))["reports"][0]
    assert report["rows"][0]["RG-65"] == 1.0


def test_a_setting_has_a_key_and_a_value(app: typer.Typer, shelf: Path) -> None:
    with pytest.raises(BuildError, match="KEY=VALUE"):
        run(app, "evaluate", "relatedness", "--set", "seed")


@pytest.mark.parametrize(("setting", "message"), [("foo=1", "has no option 'foo'"), ("seeds=some", "--set: invalid")])
def test_settings_that_would_have_no_effect_are_refused(
    app: typer.Typer, shelf: Path, setting: str, message: str
) -> None:
    with pytest.raises(BuildError, match=message):
        run(app, "evaluate", "matching", "--set", setting)


def test_a_glossary_adds_to_the_spaces(app: typer.Typer, shelf: Path, tmp_path: Path) -> None:
    """It replaced them, so that scores fell even without words of the glossary."""
    (tmp_path / "e.csv").write_text("what\ngarage\n")
    (tmp_path / "s.lw").write_text("s: {what = parking~} threshold 0.0001\n")
    (tmp_path / "g.txt").write_text("zzt = temperature\n")
    command = ("match", str(tmp_path / "e.csv"), str(tmp_path / "s.lw"), "--json", "--space", str(shelf / "wordnet"))
    plain, printed = (
        json.loads(run(app, *command, *more).splitlines()[0])["score"]
        for more in ((), ("--glossary", str(tmp_path / "g.txt")))
    )
    assert printed == plain


def test_tune_and_join_take_a_glossary(app: typer.Typer, shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("id,what\n1,zzt high\n2,window\n")
    (tmp_path / "s.lw").write_text("s: {what = temperature high~}\n")
    (tmp_path / "l.tsv").write_text("subscription\tevent\trelevant\ns\t1\t1\ns\t2\t0\n")
    (tmp_path / "g.txt").write_text("zzt = temperature\n")
    (tmp_path / "r.csv").write_text("name\ntemperature high\n")
    events, wanted, words = (str(tmp_path / name) for name in ("e.csv", "s.lw", "g.txt"))
    labels = ("--labels", str(tmp_path / "l.tsv"), "--id", "id", "--approach", "evidence", "--json")
    found = json.loads(run(app, "tune", events, wanted, *labels, "--glossary", words))
    assert found["best"]["f1"] == 1.0
    assert found["settings"]["glossary"] == words
    sides = (events, str(tmp_path / "r.csv"), "--on", "what=name", "--json")
    assert "zzt high" in run(app, "join", *sides, "--glossary", words)
    with pytest.raises(BuildError, match="no glossary"):
        run(app, "join", *sides, "--glossary", words, "--measure", "esa")
