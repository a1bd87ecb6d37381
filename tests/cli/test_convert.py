"""`likewise convert`: tables become events, and events change their format."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import LikewiseError
from likewise.events import read_events

TABLE = """\
sensor,at,celsius,note
kitchen,2026-01-01T10:00:00Z,21.5,
cellar,2026-01-01 10:05:00,7,"damp, cold"
attic,soon,3,
hall,2026-01-01T10:07:00Z
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("readings.csv").write_text(TABLE)


def run(*arguments: str) -> SimpleNamespace:
    return call("convert", *arguments)


def call(*arguments: str) -> SimpleNamespace:
    done = CliRunner().invoke(build(), list(arguments))
    if isinstance(done.exception, LikewiseError):
        return SimpleNamespace(code=2, out=done.stdout, err=str(done.exception))
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr)


def lines(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_rows_become_events_and_bad_rows_do_not_stop_them() -> None:
    done = run("readings.csv", "--time", "at", "--add", "type=temperature", "--theme", "heating", "--out", "e.jsonl")
    assert done.code == 2
    assert "readings.csv:4: at 'soon' is not an ISO 8601 time" in done.err
    assert "readings.csv:5: the row has 2 cells, the header 4" in done.err
    first, second = lines("e.jsonl")
    assert first == {
        "id": "readings.csv:2",
        "time": "2026-01-01T10:00:00Z",
        "theme": ["heating"],
        "attributes": {"sensor": "kitchen", "celsius": 21.5, "type": "temperature"},
    }
    assert second["attributes"] == {"sensor": "cellar", "celsius": 7, "note": "damp, cold", "type": "temperature"}


def test_bad_rows_are_kept() -> None:
    done = run("readings.csv", "--time", "at", "--out", "e.jsonl", "--dead-letters", "bad.jsonl", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {"events": 2, "bad": 2, "file": "e.jsonl"}
    assert [letter["line"] for letter in lines("bad.jsonl")] == [4, 5]


def test_columns_are_chosen_and_named() -> None:
    run("readings.csv", "--keep", "sensor=room", "--keep", "celsius", "--id", "at", "--out", "e.jsonl")
    assert lines("e.jsonl")[0] == {
        "id": "2026-01-01T10:00:00Z",
        "attributes": {"room": "kitchen", "celsius": 21.5},
    }


def test_a_mistake_leaves_what_stands_there() -> None:
    Path("e.jsonl").write_text("precious")
    done = run("readings.csv", "--time", "when", "--out", "e.jsonl")
    assert (done.code, done.err) == (
        2,
        "readings.csv has no column 'when'\n  hint: it has sensor, at, celsius, note",
    )
    assert Path("e.jsonl").read_text() == "precious"
    assert run("e.jsonl", "--out", "e.jsonl").code == 2
    assert Path("e.jsonl").read_text() == "precious"


def test_events_change_their_format_and_come_back_equal() -> None:
    Path("e.jsonl").write_text('{"id":"urn:e1","time":"2026-01-01T10:00:00Z","attributes":{"type":"rain"}}\n')
    for form, name in (("turtle", "e.ttl"), ("cloudevents", "e.ce.json"), ("ntriples", "e.nt"), ("json", "e.json")):
        assert run("e.jsonl", "--to", form, "--out", name).code == 0
        assert run(name, "--out", "back.jsonl").code == 0
        assert lines("back.jsonl") == lines("e.jsonl")


def test_fields_are_named_for_records_that_are_not_events_yet() -> None:
    Path("e.jsonl").write_text('{"attributes":{"type":"rain"}}\n')
    assert "already has events" in run("e.jsonl", "--time", "at", "--out", "x.jsonl").err
    assert "--add takes NAME=VALUE" in run("readings.csv", "--add", "type", "--out", "x.jsonl").err


def test_flat_json_is_mapped_and_the_mapping_kept() -> None:
    Path("flat.jsonl").write_text('{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5, "note": null}\n')
    done = run("flat.jsonl", "--save-mapping", "m.yaml", "--out", "x.jsonl")
    assert "guessed mapping: time = ts" in done.err
    [event] = read_events("x.jsonl")
    assert event.tuples == (("deviceId", "t1"), ("temp", 21.5))
    assert Path("m.yaml").read_text() == "time: ts\n"
    again = run("flat.jsonl", "--mapping", "m.yaml", "--out", "y.jsonl")
    assert "guessed" not in again.err
    assert Path("x.jsonl").read_bytes() == Path("y.jsonl").read_bytes()
    assert "--mapping excludes" in run("flat.jsonl", "--mapping", "m.yaml", "--time", "ts", "--out", "z.jsonl").err


def test_other_commands_read_tables_too() -> None:
    Path("s.lw").write_text("a: {type = rain}")
    Path("t.csv").write_text("id,time,type\na,2026-01-01T00:00:00Z,rain\nb,2026-01-01T00:00:01Z,sun\n")
    done = CliRunner().invoke(build(), ["match", "t.csv", "s.lw", "--json"])
    assert '"event":"a"' in done.stdout
    assert '"event":"b"' not in done.stdout


def test_several_fields_of_time_and_their_clocks() -> None:
    lines = (
        '{"ts": 1772355600, "x": 1}',
        '{"zeitpunkt": "01.03.2026 10:01", "x": 2}',
        '{"at": "2026-03-01 09:02", "x": 3}',
    )
    Path("makers.jsonl").write_text("\n".join(lines))
    clocks = ("--time-format", "zeitpunkt=%d.%m.%Y %H:%M", "--zone", "zeitpunkt=Europe/Berlin", "--zone", "UTC")
    fields = ("--time", "ts", "--time", "zeitpunkt", "--time", "at")
    done = run("makers.jsonl", *fields, *clocks, "--save-mapping", "m.yaml", "--out", "x.jsonl")
    assert done.code == 0, done.err
    times = [json.loads(line)["time"] for line in Path("x.jsonl").read_text().splitlines()]
    assert times == [f"2026-03-01T09:0{minute}:00Z" for minute in range(3)]
    run("makers.jsonl", "--mapping", "m.yaml", "--out", "y.jsonl")
    assert Path("y.jsonl").read_bytes() == Path("x.jsonl").read_bytes()
    guessed = run("makers.jsonl", "--time-format", "zeitpunkt=%d.%m.%Y %H:%M", "--out", "z.jsonl").err
    assert "guessed mapping: time = ts or at or zeitpunkt (%d.%m.%Y %H:%M)," in guessed


LOGS = {
    "door.logfmt": 'ts=1772355600 room=2.14 msg="door open"\nno pair\nts=1772355660 room=2.14 msg="fire alarm"\n',
    "door.syslog": "<34>1 2026-03-01T09:00:00Z - - - - - door open\n<x>\n<34>Mar  1 09:00:00 gate fire alarm\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_go_through_every_command(name: str) -> None:
    """Bad lines become dead letters with their numbers, and the exit code is set."""
    Path(name).write_text(LOGS[name])
    Path("s.lw").write_text('alarm: {msg~ = "fire alarm"~}\nsame: {message = "fire alarm"}\n')
    Path("p.lw").write_text("two: {ts = 0} then {ts = 1} within 1 minute\n")
    commands = (("convert", name, "--out", "x.jsonl"), ("match", name, "s.lw"), ("detect", name, "p.lw"))
    for command in (*commands, ("vocabulary", name, "--out", "v.txt")):
        printed = call(*command)
        assert (printed.code, f"{name}:2: " in printed.err) == (2, True), printed
        assert call(*command, "--dead-letters", "bad.jsonl").code == 0
    assert len(lines("x.jsonl")) == 2
    assert {letter["line"] for letter in lines("bad.jsonl")} == {2}
    assert "fire alarm" in Path("v.txt").read_text()


def test_a_date_and_a_time_of_day_in_two_columns_are_joined() -> None:
    """By the guess, which is shown and saved, or by the option; every command reads the same events."""
    rows = "Datum;Uhrzeit;Temp\n16.11.2026;08:00;21,5\n16.11.2026;;21,7\n25.10.2026;12:00;3,5\n"
    Path("keller.csv").write_text(rows)
    done = run("keller.csv", "--zone", "Europe/Berlin", "--save-mapping", "m.yaml", "--out", "a.jsonl")
    assert "guessed mapping: time = Datum+Uhrzeit (%d.%m.%Y %H:%M)" in done.err
    assert (done.code, "keller.csv:3: Uhrzeit is missing, so Datum+Uhrzeit is no time" in done.err) == (2, True)
    printed = ("--time", "Datum+Uhrzeit", "--zone", "Europe/Berlin", "--kind", "Temp=decimal comma")
    run("keller.csv", *printed, "--out", "b.jsonl")
    run("keller.csv", "--mapping", "m.yaml", "--out", "c.jsonl")
    assert [line["time"] for line in lines("a.jsonl")] == ["2026-11-16T07:00:00Z", "2026-10-25T11:00:00Z"]
    assert lines("a.jsonl") == lines("b.jsonl") == lines("c.jsonl")
    Path("s.lw").write_text("warm: {Temp > 20}\n")
    found = call("match", "keller.csv", "s.lw", "--mapping", "m.yaml", "--dead-letters", "bad.jsonl", "--json")
    assert (found.code, json.loads(found.out.splitlines()[0])["event"]) == (0, "keller.csv:2")
