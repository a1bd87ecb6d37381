"""`likewise match` on files, pipes and bad input."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import LikewiseError

EVENT = {
    "id": "e1",
    "theme": ["energy", "appliances", "building"],
    "attributes": {
        "type": "increased energy consumption event",
        "measurement unit": "kilowatt hour",
        "device": "computer",
        "office": "room 112",
    },
}
INTEREST = "{power, computers} {type= increased energy consumption event, device= computer, office= room 112}\n"


@pytest.fixture
def files(tmp_path):
    events, interest = tmp_path / "events.jsonl", tmp_path / "interest.txt"
    events.write_text(json.dumps(EVENT) + "\n")
    interest.write_text(INTEREST)
    return str(events), str(interest)


@pytest.fixture(autouse=True)
def _no_spaces(monkeypatch):
    monkeypatch.setenv("LIKEWISE_SPACES", "no-such-folder")


def run(*arguments, stdin=""):
    """The command in this process, with the errors that `main` turns into exit code 2."""
    done = CliRunner().invoke(build(), ["match", *arguments], input=stdin)
    if isinstance(done.exception, LikewiseError):
        return SimpleNamespace(returncode=2, stdout=done.stdout, stderr=str(done.exception))
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def test_the_papers_example_prints_the_mapping(files):
    done = run(*files)
    assert done.returncode == 0, done.stderr
    assert "s1 matches e1" in done.stdout
    assert "s1 matches e1 with 100 %: 3 predicates hold exactly" in done.stdout


def test_machine_output_from_stdin(files):
    done = run("-", files[1], "--json", stdin=json.dumps(EVENT))
    printed = json.loads(done.stdout)
    assert (printed["subscription"], printed["event"], printed["score"]) == ("s1", "e1", 1.0)
    assert [c["attribute"] for c in printed["mappings"][0]["correspondences"]] == ["type", "device", "office"]


def test_explain_says_why_and_why_not(files, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(EVENT) + "\n" + json.dumps({"id": "e2", "attributes": {"office": "room 112"}}))
    done = run(str(other), files[1], "--explain")
    assert "s1 matches e1" in done.stdout
    assert "s1 does not match e2" in done.stdout
    assert "no tuple answers it" in done.stdout


def test_a_reason_is_given_once_and_far_events_are_counted(files, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(EVENT | {"id": f"e{n}"}) + "\n" for n in range(3)))
    with other.open("a") as file:
        file.writelines(json.dumps({"id": f"f{n}", "attributes": {"office": "room 112"}}) + "\n" for n in range(7))
    printed = run(str(other), files[1], "--explain").stdout
    assert [printed.count(f"s1 matches e{n}") for n in range(3)] == [1, 1, 1]
    assert printed.count("  • type = ") == 1
    assert printed.count("does not match f") == 3
    assert "4 more events far from every subscription" in printed


def test_bad_records_go_to_dead_letters_and_good_ones_go_on(files, tmp_path):
    letters = tmp_path / "bad.jsonl"
    done = run("-", files[1], "--json", "--dead-letters", str(letters), stdin="{broken\n" + json.dumps(EVENT))
    assert done.returncode == 0
    assert json.loads(done.stdout)["event"] == "e1"
    assert json.loads(letters.read_text())["line"] == 1


def test_without_dead_letters_a_bad_record_is_told_and_counts_and_the_good_ones_go_on(files):
    done = run("-", files[1], "--json", stdin="{broken\n" + json.dumps(EVENT))
    assert done.returncode == 2
    assert json.loads(done.stdout)["event"] == EVENT["id"]
    assert "<stdin>:1" in done.stderr
    assert "--dead-letters" in done.stderr


def test_a_bad_subscription_is_told_and_the_good_ones_go_on(files, tmp_path):
    mixed = tmp_path / "mixed.lw"
    mixed.write_text("bad: {type = x} thershold 0.5\n" + Path(files[1]).read_text())
    done = run(files[0], str(mixed), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout.splitlines()[0])["event"] == EVENT["id"]
    assert "did you mean `threshold`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("-", "-"), "", "both"),
        (("EVENTS", "missing.txt"), "", "no such file"),
        (("EVENTS", "-"), "{type~ = energy~} approach approximate", "~"),
        (("EVENTS", "-"), "{type = }", "^"),
        (("EVENTS", "-"), "", "no subscriptions"),
        (("EVENTS", "INTEREST", "--approach", "exakt"), "", "did you mean 'exact'"),
    ],
)
def test_bad_usage_exits_2_with_a_message(files, arguments, stdin, message):
    known = {"EVENTS": files[0], "INTEREST": files[1]}
    done = run(*(known.get(word, word) for word in arguments), stdin=stdin)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_the_same_on_spark(spark, files):
    """The same JSON and the same text; the first events are the background in both."""
    kinds = ("automobile", "alarm", "rain")
    more = ({"type": kinds[n % 3], "country": "Kingdom of Spain"} for n in range(70))
    with Path(files[0]).open("a") as out:
        out.writelines(
            json.dumps({"id": f"m{n}", "attributes": attributes}) + "\n" for n, attributes in enumerate(more)
        )
    with Path(files[1]).open("a") as out:
        out.write("\nnoise: {type~ = car~, country~ = Spain~} threshold 0.01\n")
    for options in (("--json", "--top", "2"), ()):
        here, there = run(*files, *options), run(*files, "--spark", *options)
        assert there.returncode == 0, there.stderr
        assert there.stdout == here.stdout
    assert EVENT["id"] in here.stdout


def test_the_best_events_of_each_subscription(files):
    assert "1. e1  score 1.000" in run(*files, "--rank", "3").stdout
    printed = json.loads(run(*files, "--rank", "3", "--json").stdout)
    assert printed == {"subscription": "s1", "ranking": [{"event": "e1", "score": 1.0}]}


@pytest.mark.parametrize("kind", ["html", "png"])
def test_why_as_a_chart(files, tmp_path, kind):
    pytest.importorskip("vl_convert")
    chart = tmp_path / f"why.{kind}"
    done = run(*files, "--chart", str(chart))
    assert done.returncode == 0, done.stderr
    raw = chart.read_bytes()
    assert raw.startswith(b"\x89PNG") if kind == "png" else b"room 112" in raw


def test_an_aggregation_that_is_none(files):
    assert "unknown aggregation 'sum'" in run(*files, "--aggregation", "sum").stderr
