"""`likewise check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from likewise.cli.app import build

EXAMPLES = Path(__file__).parents[2] / "examples" / "subscriptions"


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(build(), ["check", *arguments], input=stdin)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.lw")), ids=lambda path: path.name)
def test_the_examples_are_good(path: Path) -> None:
    done = run(str(path))
    assert (done.exit_code, done.stderr) == (0, "")


def test_the_canonical_form_is_printed_and_stays_the_same() -> None:
    first = run("-", stdin="alert: {power,computers}, {device~: laptop~}  top 3 threshold 0.6 # mine")
    assert first.stdout == "alert: {power, computers} {device~ = laptop~} threshold 0.6 top 3\n"
    assert run("-", stdin=first.stdout).stdout == first.stdout


def test_a_misspelt_keyword_has_the_caret_under_it() -> None:
    done = run("-", stdin="good: {a= 1}\nbad: {a= 1} thershold 0.6\n")
    assert done.exit_code == 2
    assert done.stdout == "good: {a = 1}\n"
    shown = done.stderr.splitlines()
    assert shown[0] == "error: <stdin>:2:13: unexpected `thershold`"
    assert shown[2].index("^") == shown[1].index("thershold")
    assert "hint: did you mean `threshold`?" in done.stderr


def test_every_error_of_every_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.lw").write_text("x: {a= }\ny: {b= 1} top 0\n")
    (tmp_path / "b.lw").write_text("z: {a= 1}\n")
    done = run(str(tmp_path / "a.lw"), str(tmp_path / "b.lw"), str(tmp_path / "none.lw"))
    assert done.exit_code == 2
    assert [line.split(":")[-3:-1] for line in done.stderr.splitlines() if line.startswith("error")][:2] == [
        ["1", "8"],
        ["2", "15"],
    ]
    assert "none.lw: no such file" in done.stderr
    assert "z: {a = 1}" in done.stdout


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there is no subscription in it"),
        (b"# only a comment\n", "there is no subscription in it"),
        (b"a: {x= 1}\nb: {x= \xff}\n", "<stdin>:2: not UTF-8"),
        (b"a: b then {x= 1}\nb: a or {x= 2}\n", "in a circle: a → b → a"),
    ],
)
def test_bad_files(data: bytes, message: str) -> None:
    done = run("-", "--quiet", stdin=data)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert run("-", stdin=b"\xef\xbb\xbfa: {x= 1}").stdout == "a: {x = 1}\n"


def test_unknown_names_are_a_note_and_no_error() -> None:
    done = run("-", stdin="p: a then b\na: {x= 1}")
    assert done.exit_code == 0
    assert done.stderr == "note: <stdin>: `p` refers to `b`, which is not defined here\n"


def test_json_has_structure_and_errors() -> None:
    done = run("-", "--json", stdin="a: {slot > 0} top 2\nb: {slot > }")
    found = json.loads(done.stdout)
    assert done.exit_code == 2
    [entry] = found["subscriptions"]
    assert (entry["name"], entry["text"], entry["options"]["top_k"]) == ("a", "a: {slot > 0} top 2", 2)
    assert entry["body"]["predicates"] == [{"kind": "predicate", "attribute": "slot", "operator": ">", "value": 0}]
    [error] = found["errors"]
    assert (error["line"], error["column"], error["expected"]) == (2, 12, ["a value"])


def test_patterns_that_can_never_be_decided(tmp_path: Path) -> None:
    path = tmp_path / "patterns.lw"
    path.write_text("a: {type = a}\np: a then not {type = b}\nq: a then elsewhere\n")
    result = run(str(path))
    assert result.exit_code == 2
    assert "p: a negation at the edge of a sequence needs a window" in result.stderr
    assert "`q` refers to `elsewhere`" in result.stderr


def test_a_circle_hides_no_other_mistake_and_nothing_that_rests_on_it_is_good() -> None:
    text = "d: d then {x= 1}\nh: d then {x= 3}\nb: {kind > abc}\ng: {x= 1}\np: q or {x= 1}\nq: p or {x= 1}\n"
    done = run("-", stdin=text)
    assert (done.exit_code, done.stdout) == (2, "g: {x = 1}\n")
    assert [line.partition(": ")[2][:12] for line in done.stderr.splitlines() if line.startswith("error")] == [
        "<stdin>:1:1:",
        "<stdin>:3:5:",
        "<stdin>:5:1:",
    ]
