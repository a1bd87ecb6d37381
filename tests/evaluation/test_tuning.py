"""Labels, tuning and its command: the best approach and threshold on a user's own pairs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.charts import save
from likewise.cli.app import build
from likewise.errors import BuildError, InputError, LikewiseError
from likewise.evaluation.charts import precision_recall
from likewise.evaluation.quality.labels import Labels, read_labels
from likewise.evaluation.quality.tuning import Candidate, candidates, tune
from likewise.events import Event
from likewise.language import parse
from likewise.matching import Matcher
from likewise.testing import TableMeasure

EVENTS = [
    Event.of({"type": "parking"}, id="e1"),
    Event.of({"type": "car park"}, id="e2"),
    Event.of({"type": "harbour"}, id="e3"),
]
WISH = parse("s1: {type = parking~}")
LABELS = Labels({("s1", "e1"): True, ("s1", "e2"): True, ("s1", "e3"): False}, complete=False)
NEAR = TableMeasure({("parking", "car park"): 0.6, ("parking", "harbour"): 0.4})
TRIED = [
    Candidate("exact", lambda: Matcher(approach="exact")),
    Candidate("approximate", lambda: Matcher(NEAR, approach="approximate")),
]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_best_approach_comes_first_with_its_threshold() -> None:
    best, other = tune(EVENTS, WISH, LABELS, tried=TRIED)
    assert (best.approach, best.f1, best.precision, best.recall) == ("approximate", 1.0, 1.0, 1.0)
    assert best.threshold == pytest.approx(0.5)  # the default, which lies between wrong and right ones
    assert best.subscriptions["s1"] == (1.0, pytest.approx(0.5))
    assert other.f1 == pytest.approx(2 * 1 * 0.5 / 1.5)


def test_pairs_without_a_label_do_not_count() -> None:
    few = Labels({("s1", "e1"): True}, complete=False)
    assert [tuned.f1 for tuned in tune(EVENTS, WISH, few, tried=TRIED)] == [1.0, 1.0]


def test_two_columns_are_the_whole_truth(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path / "l.tsv", "subscription\tevent\ns1\te1\n"))
    assert labels.complete
    by_name = {tuned.approach: tuned for tuned in tune(EVENTS, WISH, labels, tried=TRIED)}
    assert by_name["approximate"].threshold == pytest.approx(0.8)  # between 0.6 and 1


def test_labels_from_json_lines(tmp_path: Path) -> None:
    text = (
        '{"subscription": "s1", "event": "e1", "relevant": true}\n{"subscription":"s1","event":"e3","relevant":false}'
    )
    labels = read_labels(write(tmp_path / "l.jsonl", text))
    assert labels.pairs == {("s1", "e1"): True, ("s1", "e3"): False}
    assert not labels.complete


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s1\te1\tperhaps\n", "perhaps"),
        ("s1 e1 1\n", "not a label"),
        ('{"event": "e1"}\n', "not a label"),
        ("\n", "no labels"),
    ],
)
def test_bad_labels_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_labels(write(tmp_path / "labels", text))


def test_labels_of_unknown_things_are_refused() -> None:
    with pytest.raises(InputError, match="unknown event 'e9'"):
        tune(EVENTS, WISH, Labels({("s1", "e9"): True}, complete=False), tried=TRIED)
    with pytest.raises(InputError, match="no pair is labelled relevant"):
        tune(EVENTS, WISH, Labels({("s1", "e1"): False}, complete=False), tried=TRIED)


def test_patterns_cannot_be_tuned() -> None:
    with pytest.raises(BuildError, match="single events"):
        tune(EVENTS, parse("p: ({type = a}; {type = b}) within 5 min"), LABELS, tried=TRIED)


def test_what_is_missing_is_said_and_left_out() -> None:
    messages: list[str] = []
    broken = Candidate("broken", lambda: Matcher(approach="approximate"))
    assert len(tune(EVENTS, WISH, LABELS, tried=[*TRIED, broken], say=messages.append)) == 2
    assert any("broken" in line for line in messages)
    with pytest.raises(LikewiseError, match="no approach"):
        tune(EVENTS, WISH, LABELS, tried=[broken])


def test_themes_are_tried_only_where_events_have_some() -> None:
    names = [candidate.name for candidate in candidates(EVENTS, spaces=["wordnet"])]
    assert "thematic" not in names
    assert {"exact", "contrast", "evidence", "embedding+contrast"} <= set(names)


def test_a_background_is_tried_where_there_are_events_enough() -> None:
    few, many = ([candidate.name for candidate in candidates(EVENTS * times)] for times in (1, 64))
    assert "evidence+background" not in few
    assert "evidence+background" in many


def test_charts_are_written_by_their_ending(tmp_path: Path) -> None:
    spec = precision_recall(
        {tuned.approach: tuned.curve for tuned in tune(EVENTS, WISH, LABELS, tried=TRIED)}, title="t"
    )
    assert "<svg" in save(spec, tmp_path / "c.svg").read_text()
    assert save(spec, tmp_path / "c.json").read_text().startswith("{")
    with pytest.raises(BuildError, match="gif"):
        save(spec, tmp_path / "c.gif")


def test_the_command(tmp_path: Path) -> None:
    lines = "".join(f'{{"id": "{e.id}", "attributes": {{"type": "{e.tuples[0][1]}"}}}}\n' for e in EVENTS)
    files = [
        str(write(tmp_path / "events.jsonl", lines)),
        str(write(tmp_path / "wishes.lw", "s1: {type = parking~}\n")),
        "--labels",
        str(write(tmp_path / "labels.tsv", "s1\te1\t1\ns1\te2\tno\n")),
        "--approach",
        "exact",
    ]
    shown = CliRunner().invoke(build(), ["tune", *files, "--chart", str(tmp_path / "pr.html")])
    assert shown.exit_code == 0, shown.output
    assert "best: approach exact, threshold 0.500" in shown.output
    assert "--approach exact --threshold 0.5" in shown.output
    assert (tmp_path / "pr.html").exists()
    machine = CliRunner().invoke(build(), ["tune", *files, "--json"])
    assert '"f1":1.0' in machine.output


def test_the_data_set_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    if not (Path(os.environ.get("LIKEWISE_DATA", "no-data")) / "eurovoc").is_dir():
        pytest.skip("EuroVoc is not there: set LIKEWISE_DATA to the data folder")
    size = ["--events", "200", "--subscriptions", "10", "--approximation", "0.5"]
    shown = CliRunner().invoke(build(), ["dataset", "thematic", "--out", str(tmp_path / "d"), *size, "--json"])
    assert shown.exit_code == 0, shown.output
    assert len((tmp_path / "d" / "events.jsonl").read_text().splitlines()) == 200
    assert len(parse((tmp_path / "d" / "subscriptions.lw").read_text())) == 10
