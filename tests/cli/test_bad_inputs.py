"""More than two hundred bad inputs: each gives our error with exit code 2, and no input file changes."""

from __future__ import annotations

import gzip
import lzma
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from likewise.cli.app import run

GOOD_EVENT = '{"id": "1", "time": "2026-01-01T10:00:00Z", "attributes": {"type": "presence"}}'

SUBSCRIPTIONS = r"""
{type = }|{= x}|{type}|{type = x|type = x}|{type = x} threshold|{type = x} threshold 2|{type = x} threshold -1
{type = x} thershold 0.5|{type = x} top 0|{type = x} top x|{type = x} approach|{type = x} approach exakt
{type > abc}|{type >= "x"}|{n in [5, 1]}|{n in [1, abc]}|{n in }|{n in [1}|{n > 1e999}|{n > nan}|{type = "open}
{}|{a}{b}{c = d}|a:|a: b:|: {x = 1}|{type == == x}|{type = x,, y = z}|{type = x} within 5 minutes
{x = 1} {y = 2} {w = 3}
{type ~~ x}|{type = x} aggregation sum|{type = x} aggregation|profile(|profile()|event type|event type "x
{type = x} threshold 0.5 threshold 0.6|{"" = x}|{type = "\ud800"}|"": {x = 1}|{n >}|{n < 1 < 2}|{n = [1, 2]}
"""
PATTERNS = r"""
a then|then a|a then then b|a and|or a|a xor b|not a|a then not b|not a for|not a for 0 s|a then b within
a then b within 0 minutes|a then b within 5 parsecs|a then b within -1 s|a then b within 99999999999999999999 d
p then a within 1 s|a and not b|(a then b|a then b)|last a|3 a within|2..1 times a within 1 s
a as x then a as x
a as x then b as y where x.r = z.r|a as x then b as y where x.r|a as x then b where
a as x then b as y where x.r in y.r
a during|a meets b within x|every 5|at 25:00|every 0 s|a then missing within 1 s where|a[0]|a then b consume twice
"""
EVENTS = r"""
{
[]
[1, 2]
5
"text"
null
true
{"attributes": {}}
{"attributes": []}
{"attributes": {"type": {"nested": {"deep": []}}}, "id": ""}
{"attributes": {"type": NaN}}
{"attributes": {"type": Infinity}}
{"attributes": {"type": -Infinity}}
{"attributes": {"type": 1e999}}
{"attributes": {"type": 01}}
{"attributes": {"type": "\ud800"}}
{"attributes": {"type": "x"}, "time": "tomorrow"}
{"attributes": {"type": "x"}, "time": "25:00"}
{"attributes": {"type": "x"}, "time": "2026-13-01T00:00:00Z"}
{"attributes": {"type": "x"}, "time": []}
{"attributes": {"type": "x"}, "time": {"at": 1}}
{"attributes": {"type": "x"}, "time": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
{"attributes": {"type": "x"}, "id": 5.5}
{"attributes": {"type": "x"}, "id": []}
{"attributes": {"type": "x"}, "theme": "text", "x": 1}
{"attributes": {"type": "x"}, "theme": [1]}
{"attributes": {"type": "x"}} trailing
{"attributes": {"type": "x"},}
{'attributes': {'type': 'x'}}
{"attributes": {"": "x"}}
{"attributes": "x"}
<html>
a,b,c
"""
BYTES = [
    b"\xff\xfe",
    b"\x00\x00",
    b'{"attributes": {"type": "\xe9"}}\n',
    b"\x1f\x8bnot gzip",
    b"BZhnot",
    b"",
    b"\n\n",
    b"\xef\xbb\xbf",
]
LOGFMT = ["=x", 'a="b', 'a=b"c', '"a"=1', "   = ", "words only", 'a="\\', 'k="v"x']
SYSLOG = """
<>x|<999>x|<1|<34>1|<34>1 x y z|<34>1 - - - - - [a|<34>1 - - - - - [a b=c] x|<34>1 2026-99-01T00:00:00Z h a - - - m
Foo 10 10:00:00 h a: m|Feb 31 10:00:00 h a: m|<34>Mar  1 25:00:00 h a: m|<-1>1 - - - - - -
"""
MAPPINGS = """
time: {a: b}|time: [1]|zone: [UTC]|time_format: 7|{time: [a, b], zone: {c: UTC}}|time: ''|attributes: [1]
constants: {a: {b: 1}}|kinds: {a: colour}|id: [[a]]|theme: 7
"""
COMMANDS = """
match e.jsonl s.lw --time ts --time zeit|match flat.jsonl s.lw --time ts --zone at=UTC|match flat.jsonl s.lw --zone =UTC
match flat.jsonl s.lw --format logfmt|match flat.jsonl s.lw --format syslog|convert t.csv --out o --time x --time y
stream s.lw --checkpoint c --from path=flat.jsonl --glossary missing.txt
stream s.lw --checkpoint c --source broker --from database=x --time ts
match|match e.jsonl|match missing.jsonl s.lw|match e.jsonl missing.lw|match folder s.lw|match e.jsonl folder
match e.jsonl s.lw --threshold 2|match e.jsonl s.lw --threshold x|match e.jsonl s.lw --top 0
match e.jsonl s.lw --rank 0
match e.jsonl s.lw --approach exakt|match e.jsonl s.lw --aggregation sum|match e.jsonl s.lw --no-such-option
match e.jsonl s.lw --space nowhere --approach approximate|match e.jsonl approximate.lw
match e.jsonl s.lw --chart why.pdf
match e.jsonl s.lw --chart folder|match e.jsonl s.lw --rank 1 --explain|match e.jsonl s.lw --background missing.txt
match e.jsonl s.lw --measure nothing
match e.jsonl s.lw --settings missing.toml
match e.jsonl s.lw --settings bad.toml|match e.jsonl s.lw --settings unknown.toml
match e.jsonl s.lw --settings wrong.toml
match e.jsonl s.lw --out x.pdf|match e.jsonl s.lw --out folder|match e.jsonl s.lw --out no/such/x.parquet
match e.jsonl s.lw --dead-letters folder|match e.jsonl s.lw --dead-letters no/such/x
match e.jsonl s.lw --dead-letters s.lw
match - s.lw --follow|match folder s.lw --follow|match missing.jsonl s.lw --follow|match e.jsonl s.lw extra
match e.jsonl s.lw --spark --explain|match - - |match "" s.lw|match e.jsonl ""
detect|detect e.jsonl|detect missing.jsonl p.lw|detect e.jsonl missing.lw|detect e.jsonl p.lw --lateness soon
detect e.jsonl p.lw --lateness "-1 s"|detect e.jsonl p.lw --max-ahead never|detect e.jsonl p.lw --limit 0
detect e.jsonl p.lw --full sometimes|detect e.jsonl p.lw --until tomorrow|detect e.jsonl p.lw --relatedness 3
detect e.jsonl p.lw --snapshot folder|detect e.jsonl p.lw --snapshot s.lw|detect e.jsonl p.lw --chart x.png
detect e.jsonl p.lw --out found.parquet|detect e.jsonl p.lw --spark --explain|detect e.jsonl p.lw --chart p.lw
check|check missing.lw|check folder|check e.jsonl|convert|convert e.jsonl|convert missing.csv --out o
convert e.jsonl --out o --to excel|convert t.csv --out o --time nothing|convert t.csv --out o --id nothing
convert t.csv --out o --add x|convert t.csv --out folder|convert t.csv --out no/such/o|convert e.jsonl --out e.jsonl
convert folder --out o|vocabulary|vocabulary missing.jsonl|vocabulary e.jsonl --limit 0
vocabulary e.jsonl --out folder
vocabulary folder|themes|themes missing.jsonl|themes e.jsonl --subscription "{a = b}"|themes --subscription "{a = "
themes e.jsonl -n 0|themes e.jsonl|relate|relate a|relate a b --measure nothing|relate a b --space nowhere
nearest|nearest a|nearest a --space nowhere|space|space info|space info nowhere|space list nowhere
space build|space build --corpus missing.jsonl --out x
tune|tune e.jsonl s.lw|tune e.jsonl s.lw --labels missing.tsv|tune e.jsonl s.lw --labels folder
tune e.jsonl s.lw --labels bad.tsv|tune e.jsonl s.lw --labels l.tsv --approach nothing
tune e.jsonl s.lw --labels l.tsv --chart x.pdf|join|join t.csv t.csv|join t.csv missing.csv --on name
join t.csv t.csv --on nothing|join t.txt t.csv --on name|join t.csv folder --on name
join t.csv t.csv --on name --how sideways|join t.csv t.csv --on name --best 0
join t.csv t.csv --on name --measure nothing
stream|stream s.lw|stream missing.lw --checkpoint c --from path=folder|stream s.lw --checkpoint c --source kafka
stream s.lw --checkpoint c|stream s.lw --checkpoint c --from path=missing|stream s.lw --checkpoint c --from path
stream s.lw --checkpoint c --from path=folder --sink nowhere
stream s.lw --checkpoint c --from path=folder --sink files
stream s.lw --checkpoint c --source mqtt --from topic=x|stream s.lw --checkpoint c --source socket
stream s.lw --checkpoint c --from path=folder --every 5s --once
stream s.lw --checkpoint c --from path=folder --what news
evaluate|evaluate nothing|evaluate relatedness --set x|bench|bench nothing|dataset|dataset thematic
dataset thematic --out x --data missing|dataset homes --out x --data missing|dataset aarhus --out x --data missing
dataset homes --out x --house Q|why|why missing.jsonl s.lw|why e.jsonl missing.lw|why "{" s.lw|why e.jsonl "{a = "
why e.jsonl s.lw --event nobody|why e.jsonl s.lw --name nobody|no-such-command|--no-such-option|demo --events 1
"""


RECORDS = """
--time date+nothing|--time date+|--time date+time+x|--time date+time --time-format %d.%m.%Y|--time date --time-format %Q
--time time --time-format %H:%M|--time date --time-format %Y-%Y|--zone Mars/Olympus|--zone ../../etc/passwd|--time ""
--time date+time --zone date+time=Nowhere/X|--kind x=colour|--kind nothing=text|--keep nothing|--keep =x|--end time
--separator ""|--separator ";;"|--separator '"'|--separator é|--theme a --theme-field x|--theme-field nothing
--mapping s.lw|--mapping folder|--format excel|--format parquet|--format avro|--save-mapping clock.csv
"""
"""Options that do not fit a table of a date, a time of day and a number."""
FILES: dict[str, bytes] = {
    "cut.jsonl.gz": gzip.compress(GOOD_EVENT.encode() * 50)[:-12],
    "twice.jsonl.gz": gzip.compress(gzip.compress(GOOD_EVENT.encode())),
    "cut.jsonl.xz": lzma.compress(GOOD_EVENT.encode())[:-9],
    "no.jsonl.zst": b"\x28\xb5\x2f\xfdjunk",
    "wide.jsonl": GOOD_EVENT.encode("utf-16"),
    "wide.csv": "a,b\n1,2\n".encode("utf-16"),
    "latin.csv": "Gerät;Wert\nKühlung;1\n".encode("latin-1"),
    "open.csv": b'"a,b\n1,2\n',
    "ragged.csv": b"a,b\n1\n1,2,3\n",
    "junk.parquet": b"PAR1junkPAR1",
    "short.parquet": b"PAR1",
    "junk.avro": b"Obj\x01junk",
    "half.json": b'[{"a": 1},',
    "deep.json": b"[" * 100_000,
    "deep.jsonl": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "digits.jsonl": b'{"attributes": {"a": ' + b"9" * 5000 + b"}}",
    "name.jsonl": b'{"attributes": {"' + b"k" * 70_000 + b'": 1}}',
    "overlong.jsonl": b'{"attributes": {"a": "\xc0\xaf"}}',
    "cloud.jsonl": b'{"specversion": "1.0", "type": "x"}\n',
    "torn.nt": b"<a> <b> .\n",
    "torn.ttl": b"@prefix : <x .\n:a :b :c .\n",
}
SETTINGS = """
space = 7|threshold = nan|threshold = -0.1|glossary = 'missing.txt'|measure = 'nothing'|[approach]|threshold = true
"""
LABELS = [b"a\t1\tmaybe\n", b"a\tnobody\t1\n", b"a\t1\t0\n", b"\xff\t1\t1\n", b'{"subscription": 1}\n']
LABELS += [b'{"subscription": "a", "event": "1", "relevant": "x"}\n']
GLOSSARIES = [b"=", b"a =", b"a", b"\xff = b", b"a = a"]
NESTS = {
    "loop.yaml": "a: &a [*a]\n",
    "code.yaml": "time: !!python/object/apply:os.system ['true']\n",
    "tab.yaml": "a:\n\t- x\n",
}


def cells(text: str, *, lines: bool = False) -> list[str]:
    parts = text.strip().splitlines() if lines else text.strip().replace("\n", "|").split("|")
    return [part for part in parts if part.strip()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "e.jsonl": GOOD_EVENT + "\n",
        "s.lw": "a: {type = presence}\n",
        "p.lw": "a: {type = presence}\nb: a then a within 1 minute\n",
        "t.csv": "name,size\nlift,1\n",
        "t.txt": "lift",
        "l.tsv": "a\t1\t1\n",
        "bad.tsv": "nothing at all\n",
        "bad.toml": "threshold = = 1\n",
        "unknown.toml": "treshold = 0.5\n",
        "wrong.toml": 'threshold = "high"\n',
        "folder/note.txt": "a note",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_SPACES", "no-such-folder")
    return tmp_path


def cases(folder: Path) -> Iterator[list[str]]:
    """The arguments of each bad command, after writing the files that they name."""
    for number, text in enumerate(cells(SUBSCRIPTIONS)):
        name = f"bad-{number}.lw"
        (folder / name).write_text(text + "\n")
        yield ["check", name]
        if number % 4 == 0:
            yield ["match", "e.jsonl", name]
    for number, text in enumerate(cells(PATTERNS)):
        name = f"pattern-{number}.lw"
        (folder / name).write_text(f"a: {{type = x}}\nb: {{type = y}}\np: {text}\n")
        yield ["check", name]
    lines = [line.encode() for line in cells(EVENTS, lines=True)]
    for number, line in enumerate([*lines, *BYTES]):
        name = f"bad-{number}.jsonl"
        (folder / name).write_bytes(line)
        yield ["match", name, "s.lw"]
    for kind, records in (("logfmt", LOGFMT), ("syslog", cells(SYSLOG))):
        for number, text in enumerate(records):
            (folder / f"bad-{number}.{kind}").write_text(f"{text}\n")
            yield ["match", f"bad-{number}.{kind}", "s.lw"]
    (folder / "flat.jsonl").write_text('{"ts": 1, "x": 2}\n')
    for number, text in enumerate(cells(MAPPINGS)):
        (folder / f"bad-{number}.yaml").write_text(text)
        yield ["match", "flat.jsonl", "s.lw", "--mapping", f"bad-{number}.yaml"]
    yield from (shlex.split(line) for line in cells(COMMANDS))
    yield from more_cases(folder)


def more_cases(folder: Path) -> Iterator[list[str]]:
    """Broken files, and files of options."""
    (folder / "clock.csv").write_text("date,time,x\n2026-11-16,08:00,1\n")
    yield from (["convert", "clock.csv", "--out", "o", *shlex.split(printed)] for printed in cells(RECORDS))
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
        yield ["match", name, "s.lw"]
    for number, text in enumerate(cells(SETTINGS)):
        (folder / f"settings-{number}.toml").write_text(text)
        yield ["match", "e.jsonl", "s.lw", "--settings", f"settings-{number}.toml"]
    for number, data in enumerate(LABELS):
        (folder / f"labels-{number}.tsv").write_bytes(data)
        yield ["tune", "e.jsonl", "s.lw", "--approach", "exact", "--labels", f"labels-{number}.tsv"]
    for number, data in enumerate(GLOSSARIES):
        (folder / f"glossary-{number}.txt").write_bytes(data)
        yield ["relate", "a", "b", "--glossary", f"glossary-{number}.txt"]
    for name, text in NESTS.items():
        (folder / name).write_text(text)
        yield ["convert", "clock.csv", "--out", "o", "--mapping", name]
    for printed in ("--score ''", "--score name", "--approach exact", "--on =", "--settings settings-1.toml"):
        yield ["join", "t.csv", "t.csv", "--on", "name", *shlex.split(printed)]
    yield ["relate", "", "b"]


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_bad_inputs_are_errors_of_ours_and_touch_nothing(folder: Path, capfd: Any) -> None:
    every = list(cases(folder))
    assert len(every) >= 350
    before = content(folder)
    wrong = []
    for arguments in every:
        try:
            code = run(arguments)
        except Exception as error:
            code = repr(error)  # type: ignore[assignment]
        printed = capfd.readouterr().err
        if code != 2 or not (printed.strip() or len(arguments) < 2) or "Traceback" in printed:
            wrong.append(f"{shlex.join(arguments)}: {code} {printed[:200]}")
    assert not wrong, "\n".join(wrong)
    after = content(folder)
    assert {path: after.get(path) for path in before} == before
