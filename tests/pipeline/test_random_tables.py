"""Random tables of any schema become the events that a plain loop makes of the same rows.

Each run counts how often every feature occurred, shows the counts (`pytest -rP`) and fails if one is missing, so the
test cannot silently stop covering something. `LIKEWISE_TABLES=200` tries more tables, `LIKEWISE_SEED=7` other ones.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from likewise.events import RecordMapping, value_of_text
from likewise.pipeline import events_from_columns
from likewise.pipeline.events.frame import EVENT_COLUMNS

pytestmark = pytest.mark.spark

TABLES = int(os.environ.get("LIKEWISE_TABLES", "4"))
USUAL = 34
SEED = int(os.environ.get("LIKEWISE_SEED", USUAL))
ROWS = 12
STREAMS = 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = ["12", "007", "+5", "-0.5", "1e3", "1e400", "true", "False", "NaN", "null", "1,5", "2026-02-03T04:05:06Z"]
TEXTS += [
    "room 1",
    " 3 ",
    "\t4\n",
    "",
    "  ",
    "größe",
    "日本",
    "it's",
    'say "so"',
    "a\x1fb",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]


def moment(random: Random) -> datetime:
    return EPOCH + timedelta(microseconds=random.randrange(10**15, 3 * 10**15))


LEAVES: dict[str, Callable[[Random], Any]] = {
    "string": lambda random: random.choice(TEXTS),
    "boolean": lambda random: random.random() < 0.5,
    "tinyint": lambda random: random.randrange(-128, 128),
    "smallint": lambda random: random.randrange(-(2**15), 2**15),
    "int": lambda random: random.randrange(-(2**31), 2**31),
    "bigint": lambda random: random.randrange(-(2**63), 2**63),
    "float": lambda random: random.choice([math.nan, 0.0, -0.0, random.randrange(-800, 800) / 8]),
    "double": lambda random: random.choice(
        [math.nan, 1e300, 5e-324, *(random.uniform(-9, 9) for _ in range(9)), -math.inf, math.inf]
    ),
    "decimal(12,3)": lambda random: Decimal(random.randrange(-(10**11), 10**11)).scaleb(-3),
    "decimal(38,0)": lambda random: Decimal(random.randrange(10**18)),
    "date": lambda random: moment(random).date(),
    "timestamp": moment,
    "timestamp_ntz": lambda random: moment(random).replace(tzinfo=None),
}
KEYS: dict[str, list[Any]] = {"string": ["k", "l m", "n.o"], "int": [1, -2], "boolean": [True, False]}
NAMES = ["a", "_b", "c.d", "e f", "g`h", "größe", "日本", "id", "time", "end", "theme", "attributes", "flaw", "score"]
NAMES += ["subscription", "_likewise_row", "_likewise_id", "Kind", "0", "x-y", "select"]
FIELDS = ["x", "Y", "z w", "_q"]
KINDS = [None, None, "text", "number", "boolean", "decimal comma", "time"]


@dataclass
class TableMaker:
    """Draws types, rows and mappings, and counts what it drew."""

    random: Random
    seen: Counter[str] = field(default_factory=Counter)

    def kind(self, depth: int = 3) -> tuple[str, Callable[[], Any]]:
        """A type as Spark writes it, and how to make values of it."""
        sort = self.random.choice(["leaf", "leaf", *(("array", "map", "struct") if depth else ())])
        if sort == "leaf":
            name = self.random.choice([*sorted(LEAVES), *["string"] * 6])
            return name, lambda: self.value(name, lambda: LEAVES[name](self.random))
        if sort == "struct":
            parts = {name: self.kind(depth - 1) for name in self.random.sample(FIELDS, self.random.randint(1, 3))}
            ddl = ", ".join(f"`{name}`: {inner}" for name, (inner, _) in parts.items())
            return f"struct<{ddl}>", lambda: self.value(
                "struct", lambda: {name: make() for name, (_, make) in parts.items()}
            )
        inner, make = self.kind(depth - 1)
        if sort == "array":
            label = f"array of {inner.partition('<')[0].partition('(')[0]}"
            return f"array<{inner}>", lambda: self.value(
                label, lambda: [make() for _ in range(self.random.randint(0, 3))]
            )
        key = self.random.choice(sorted(KEYS))
        label = f"map by {key}"
        keys = KEYS[key]
        return f"map<{key},{inner}>", lambda: self.value(
            label, lambda: {key: make() for key in self.random.sample(keys, self.random.randint(0, len(keys)))}
        )

    def value(self, label: str, make: Callable[[], Any]) -> Any:
        """A value or null, counted."""
        if self.random.random() < 0.2:
            self.seen[f"null {label}"] += 1
            return None
        made = make()
        self.seen[label] += 1
        if made in ([], {}):
            self.seen[f"empty {label.partition(' ')[0]}"] += 1
        if isinstance(made, float) and not math.isfinite(made):
            self.seen[str(made)] += 1
        return made

    def pick(self, label: str, *choices: Any) -> Any:
        """One of several choices, counted."""
        at = self.random.randrange(len(choices))
        self.seen[f"{label} {at}"] += 1
        return choices[at]


# A plain reading of the same rows, by the rules of the page.


def plainly(name: str, value: Any, kind: str | None = None) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in plainly(f"{name}.{written_key(key)}", inner, kind)]
    if isinstance(value, list):
        return [pair for inner in value for pair in plainly(name, inner, kind)]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []
    if isinstance(value, str):
        value = read_text(value, kind)
    elif isinstance(value, datetime):
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        value = value.isoformat()
    elif isinstance(value, Decimal):
        value = int(value) if value.as_tuple().exponent == 0 else float(value)
    return [] if value == "" else [(name, value)]


def written_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def read_text(text: str, kind: str | None) -> Any:
    if kind == "text":
        return text
    text = text.strip()
    if kind == "decimal comma":
        kind = None
        if re.fullmatch(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+", text):
            text = text.replace(".", "").replace(",", ".")
    whole = r"\d+" if kind == "number" else r"(0|[1-9]\d*)"
    if kind in (None, "number") and re.fullmatch(rf"[-+]?({whole}(\.\d*)?|\.\d+)([eE][-+]?\d+)?", text):
        number = int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        return number if math.isfinite(number) else text
    if kind in (None, "boolean") and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in (None, "time") and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text):
        return datetime.fromisoformat(text)
    return text


# The columns of id, time and theme: a type, a value for each row, and what the plain reading makes of it.

Role = tuple[str, list[Any], list[Any], dict[str, Any]]


def ids(maker: TableMaker) -> Role:
    texts = [maker.pick("id of text", f"e{row}", f"e {row}", "") for row in range(ROWS)]
    kind, values = maker.pick(
        "id of type", ("string", texts), ("bigint", [*range(ROWS)]), ("date", [date(2026, 1, 1)] * ROWS)
    )
    return kind, values, [str(value) or None for value in values], {}


def times(maker: TableMaker) -> Role:
    moments = [EPOCH + timedelta(seconds=1_600_000_000 + maker.random.randrange(10**8)) for _ in range(ROWS)]
    gone = [maker.random.random() < 0.2 for _ in moments]
    seconds = [int((moment - EPOCH).total_seconds()) for moment in moments]
    forms: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("timestamp", moments, {}),
        ("timestamp_ntz", [moment.replace(tzinfo=None) for moment in moments], {}),
        ("date", [moment.date() for moment in moments], {}),
        ("bigint", seconds, {}),
        ("bigint", [second * 1_000 for second in seconds], {}),
        ("bigint", [second * 1_000_000 for second in seconds], {}),
        ("bigint", [second * 1_000_000_000 for second in seconds], {"time_format": "ns"}),
        ("double", [second + 0.25 for second in seconds], {}),
        ("decimal(20,3)", [Decimal(second * 1_000) for second in seconds], {"time_format": "ms"}),
        ("string", [moment.isoformat() for moment in moments], {}),
        ("string", [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments], {}),
        ("string", [str(second) for second in seconds], {}),
        ("string", [f"{moment:%d/%m/%Y %H:%M:%S}" for moment in moments], {"time_format": "%d/%m/%Y %H:%M:%S"}),
        ("string", ["soon" for _ in moments], {}),
    ]
    kind, values, options = maker.pick("time of form", *forms)
    if kind == "date":
        moments = [datetime(moment.year, moment.month, moment.day, tzinfo=UTC) for moment in moments]
    if kind == "double":
        moments = [moment + timedelta(seconds=0.25) for moment in moments]
    expected: list[Any] = [
        NotATime if value == "soon" else moment for value, moment in zip(values, moments, strict=True)
    ]
    rows = zip(gone, values, expected, strict=True)
    nothing = math.nan if kind == "double" else None
    pairs = [(nothing, None) if missing else (value, moment) for missing, value, moment in rows]
    return kind, [value for value, _ in pairs], [moment for _, moment in pairs], options


NotATime = "not a time"


def themes(maker: TableMaker) -> Role:
    texts = ["energy, office", " a ,,b", "", None]
    lists: list[Any] = [["energy", None, " office "], [], None]
    kind, choices = maker.pick("theme of type", ("string", texts), ("array<string>", lists))
    values = [maker.random.choice(choices) for _ in range(ROWS)]
    plain = []
    for value in values:
        tags = value.split(",") if isinstance(value, str) else value or []
        plain.append([tag.strip() for tag in tags if tag and tag.strip()])
    return kind, values, plain, {}


def random_table(maker: TableMaker) -> tuple[str, list[tuple[Any, ...]], RecordMapping, list[str], list[Any]]:
    """A schema, rows, a mapping, columns to keep, and what each row is: id, time, theme, tuples, why it is no event."""
    names = maker.random.sample(NAMES, maker.random.randint(8, 16))
    drawn = [maker.kind() for _ in names]
    kinds = [kind for kind, _ in drawn]
    columns: list[list[Any]] = [[make() for _ in range(ROWS)] for _, make in drawn]
    maker.seen.update(f"name {name}" for name in names)
    arguments: dict[str, Any] = {}
    roles: dict[str, list[Any]] = {}
    for role, made in (("id", ids), ("time", times), ("theme", themes)):
        if maker.pick(f"{role} given", True, False):
            kind, values, roles[role], options = made(maker)
            nested = maker.pick(f"{role} nested", True, False)
            names += [f"role {role}"]
            kinds += [f"struct<inner: {kind}>" if nested else kind]
            columns += [[{"inner": value} for value in values] if nested else values]
            # Capitals do not matter to Spark.
            arguments |= {role: f"`ROLE {role}`.Inner" if nested else f"Role {role}", **options}
    plain = [at for at, name in enumerate(names) if not name.startswith("role ")]
    readings = {names[at]: maker.random.choice(KINDS) for at in plain if leaves_of(kinds[at]) == {"string"}}
    arguments["kinds"] = {name: kind for name, kind in readings.items() if kind}
    maker.seen.update(f"kind {kind}" for kind in arguments["kinds"].values())
    chosen = {names[at]: names[at] for at in plain}
    paths: dict[str, tuple[str, str]] = {}
    if maker.pick("attributes chosen", True, False):
        picked = maker.random.sample(plain, 3)
        chosen = {names[at]: maker.random.choice([names[at], f"renamed {at}"]) for at in picked}
        within = [at for at in plain if kinds[at].startswith(("struct<", "array<struct<"))]
        for at in maker.random.sample(within, min(2, len(within))):
            sort, _, rest = kinds[at].partition("struct<`")
            paths[f"field of {sort or 'struct'}"] = (names[at], rest.partition("`")[0])
        arguments["attributes"] = chosen | {quoted(*path): called for called, path in paths.items()}
        maker.seen.update(list(paths))
    free = [at for at in plain if names[at] not in EVENT_COLUMNS]
    kept = maker.random.sample(free, 2) if maker.pick("columns kept", True, False) else []
    rows = list(zip(*columns, strict=True))
    events = []
    for number, row in enumerate(rows):
        cells = dict(zip(names, row, strict=True))
        tuples = [pair for name, called in chosen.items() for pair in plainly(called, cells[name], readings.get(name))]
        for called, (name, step) in paths.items():
            tuples += plainly(called, inner_value(cells[name], step))
        key, time, theme = (roles[role][number] if role in roles else None for role in ("id", "time", "theme"))
        tests = {
            "the event has no attributes": not tuples,
            f"no {arguments.get('id')}": "id" in roles and key is None,
            f"{arguments.get('time')} is not a time": time is NotATime,
            "a number is infinite": any(value in (math.inf, -math.inf) for _, value in tuples),
        }
        reason = next((reason for reason, holds in tests.items() if holds), None)
        maker.seen["no event" if reason else "event"] += 1
        events.append((key, time, theme or [], tuples, reason))
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in zip(names, kinds, strict=True))
    return schema, rows, RecordMapping(**arguments), [names[at] for at in kept], events


def quoted(*steps: str) -> str:
    """A path as Spark writes it."""
    return ".".join(f"`{step.replace('`', '``')}`" for step in steps)


def inner_value(value: Any, step: str) -> Any:
    """A field of a struct, or of each struct in an array."""
    if isinstance(value, list):
        return [inner_value(each, step) for each in value]
    return None if value is None else value[step]


def leaves_of(kind: str) -> set[str]:
    """The types of single values within a type."""
    return {leaf for leaf in LEAVES if re.search(rf"\b{re.escape(leaf)}(?!\w)", re.sub(r"map<\w+,", "map<", kind))}


FEATURES = {
    *LEAVES,
    *(f"null {kind}" for kind in LEAVES),
    *("struct", "null struct", "empty array", "empty map", "nan", "-inf", "inf", "event", "no event"),
    *("field of struct", "field of array<", "columns kept 0", "columns kept 1"),
    *("array of struct", "array of array", "array of map", "array of string", "null array of struct"),
    *(f"map by {key}" for key in KEYS),
    *(f"kind {kind}" for kind in KINDS if kind),
    *(f"name {name}" for name in NAMES),
    *(f"{role} given {at}" for role in ("id", "time", "theme") for at in (0, 1)),
    *(f"{role} nested {at}" for role in ("id", "time", "theme") for at in (0, 1)),
}


def test_random_tables_are_read_as_a_plain_loop_reads_them(spark: Any) -> None:
    maker = TableMaker(Random(SEED))
    for number in range(TABLES):
        schema, rows, mapping, kept, wanted = random_table(maker)
        table = spark.createDataFrame(rows, schema)
        found = events_from_columns(table, mapping, keep=kept).collect()
        beside = table.select(*map(quoted, kept)).collect() if kept else [()] * len(rows)
        for row, (key, time, theme, tuples, reason), own, made in zip(rows, wanted, beside, found, strict=True):
            about = f"table {number}: {schema}\n{mapping}\n{row}"
            assert reason_of(made) == bare(reason), about
            assert repr([made[name] for name in kept]) == repr(list(own)), about
            if reason is None:
                read = [(entry.name, as_read(entry)) for entry in made.attributes]
                assert sorted(map(repr, read)) == sorted(map(repr, tuples)), about
                assert made.id == key if "id" in mapping.used else re.fullmatch("[0-9a-f]{16}", made.id), about
                assert (made.time and made.time.astimezone(UTC)) == time, about
                assert made.theme == theme, about
    print(*(f"{count:6}  {feature}" for feature, count in sorted(maker.seen.items())), sep="\n")
    # A few tables of another seed need not have everything.
    assert SEED != USUAL or sorted(FEATURES - maker.seen.keys()) == []


def test_random_tables_are_read_alike_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """With the same columns beside their events."""
    maker = TableMaker(Random(SEED + 1))
    for number in range(STREAMS):
        schema, rows, mapping, kept, _ = random_table(maker)
        folder = str(tmp_path / f"table{number}")
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(folder)
        table = spark.read.parquet(folder)
        stream = spark.readStream.schema(table.schema).parquet(folder)
        writer = events_from_columns(stream, mapping, keep=kept).writeStream.format("memory").queryName("streamed")
        writer.trigger(availableNow=True).start().awaitTermination()
        whole = events_from_columns(table, mapping, keep=kept).collect()
        assert repr(spark.table("streamed").collect()) == repr(whole), f"table {number}: {schema}\n{mapping}"


def reason_of(made: Any) -> str | None:
    return bare(made.flaw.reason) if made.flaw else None


def bare(reason: str | None) -> str | None:
    """A reason without the column that it names, which is spelt as the table spells it."""
    return reason and re.sub(r"\S*[Rr][Oo][Ll][Ee] \w+`?(\.\w+)?", "…", reason)


def as_read(entry: Any) -> Any:
    value = value_of_text(entry.value, entry.kind)
    return value.replace(fold=0) if isinstance(value, datetime) else value
