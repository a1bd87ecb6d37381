"""Any table becomes events: every type, every name, no silent loss, and refusals when the plan is built."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from likewise.errors import BuildError, InputError
from likewise.events import RecordMapping, parse_instant, to_instant, value_of_text, zone_of
from likewise.events.table_columns import value_of_cell
from likewise.pipeline import as_events, dead_letters, detect, events_from_columns, match, read_events

pytestmark = pytest.mark.spark


def tuples(frame: Any) -> list[list[tuple[str, Any]]]:
    return [
        [(entry.name, value_of_text(entry.value, entry.kind)) for entry in row.attributes or ()]
        for row in frame.collect()
    ]


@pytest.mark.parametrize("missing", ["array<string>", "map<string,int>", "struct<a:int>", "int", "void"])
def test_null_of_any_type_is_absence(spark: Any, missing: str) -> None:
    """One column without a value never costs the event."""
    kind = "null" if missing == "void" else f"cast(null as {missing})"
    table = spark.sql(f"select 'e' as id, 'a' as type, {kind} as gone")
    events = events_from_columns(table, RecordMapping(id="id"))
    assert tuples(events) == [[("type", "a")]]
    assert dead_letters(events).count() == 0


def test_empty_and_not_a_number_are_absence_and_infinity_is_refused(spark: Any) -> None:
    rows = "select 'e' as id, 1 as x, array() as no, double('NaN') as nan, '' as blank, cast(%s as double) as y"
    good = events_from_columns(spark.sql(rows % "2"), RecordMapping(id="id"))
    assert tuples(good) == [[("x", 1), ("y", 2.0)]]
    bad = events_from_columns(spark.sql(rows % "'Infinity'"), RecordMapping(id="id"))
    assert [row.reason for row in dead_letters(bad).collect()] == ["a number is infinite"]
    times = "select double('NaN') as id, 'x' as type, double('NaN') as at union all select 7, 'x', 1767261600"
    rows = events_from_columns(spark.sql(times), RecordMapping(id="id", time="at", attributes=["type"]))
    (known,) = rows.where("flaw is null").selectExpr("id", "unix_seconds(time) as time").collect()
    assert (known.id, known.time) == ("7.0", 1767261600)
    assert [row.reason for row in dead_letters(rows).collect()] == ["no id"]
    (untimed,) = events_from_columns(spark.sql(times).where("isnan(at)"), RecordMapping(time="at")).collect()
    assert (untimed.time, untimed.flaw) == (None, None)


def test_tags_of_a_theme_keep_their_digits(spark: Any) -> None:
    """Only blanks around a tag go."""
    table = spark.sql("select 'e' as id, 'a' as type, array('0 hour', ' 1st floor', '2', null, '\t') as tags")
    (row,) = events_from_columns(table, RecordMapping(id="id", theme="tags")).collect()
    assert row.theme == ["0 hour", "1st floor", "2"]


def test_texts_are_of_their_kind_or_stay_texts(spark: Any) -> None:
    """As the cells of a CSV file in one process."""
    texts = ["23,5", "1.234,5", "7", "yes", "FALSE", "007", "1e400", "9" * 26, "NaN", "\t4 ", "2026-01-01T10:00:00Z"]
    table = spark.createDataFrame([(text,) for text in texts], "x string")
    for kind in (None, "text", "number", "decimal comma", "boolean", "time"):
        mapping = RecordMapping(kinds={} if kind is None else {"x": kind})
        found = tuples(events_from_columns(table, mapping))
        assert found == [[("x", value_of_cell(text, kind))] for text in texts]


def test_attributes_may_be_a_struct(spark: Any, tmp_path: Path) -> None:
    """As Spark's own reader of JSON finds them."""
    (tmp_path / "e.jsonl").write_text('{"id": "e", "attributes": {"temp": 31, "code": "007", "in": {"x": [1, 2]}}}\n')
    frame = spark.read.json(str(tmp_path))
    assert sorted(tuples(as_events(frame))[0]) == [("code", "007"), ("in.x", 1), ("in.x", 2), ("temp", 31)]
    assert [row.event_id for row in match(frame, "hot: {temp > 30, code = 007}").collect()] == ["e"]


def test_columns_that_cannot_be_written_as_text_do_no_harm(spark: Any) -> None:
    table = spark.sql(
        "select 'e' as id, 'v' as x, st_geogfromwkb(X'0101000000000000000000F03F0000000000000040') as geo"
    )
    assert tuples(events_from_columns(table, RecordMapping(attributes=["x"]))) == [[("x", "v")]]
    with pytest.raises(BuildError, match=r"'geo' is geography.*cannot be an id"):
        events_from_columns(table, RecordMapping(id="geo", attributes=["x"]))


def test_structs_maps_and_arrays_are_flattened_by_path(spark: Any) -> None:
    table = spark.sql("""select 'e' as id, named_struct('name', 'n', 'deep', named_struct('v', 2.5D)) as device,
        map('k', 1, 'l', 2) as m, array('p', 'q') as arr, array(named_struct('z', 1), named_struct('z', 2)) as items""")
    assert tuples(events_from_columns(table, RecordMapping(id="id"))) == [
        [
            ("device.name", "n"),
            ("device.deep.v", 2.5),
            ("m.k", 1),
            ("m.l", 2),
            ("arr", "p"),
            ("arr", "q"),
            ("items.z", 1),
            ("items.z", 2),
        ]
    ]


def test_decimals_dates_and_timestamps_keep_their_meaning(spark: Any) -> None:
    table = spark.sql("""select 'e' as id, cast(1.50 as decimal(10,2)) as price, date'2026-01-02' as day,
        timestamp'2026-01-01 10:00:00.5' as at, timestamp_ntz'2026-01-01 10:00:00' as local""")
    assert tuples(events_from_columns(table, RecordMapping(id="id"))) == [
        [
            ("price", 1.5),
            ("day", "2026-01-02"),
            ("at", datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC)),
            ("local", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ]
    ]


def test_odd_names_are_names(spark: Any) -> None:
    """A leading underscore, dots, blanks, backticks, and names that we use ourselves."""
    names = ["_c", "a.b", "two words", "tick`tock", "flaw", "_row", "_likewise_id", "time"]
    table = spark.createDataFrame([tuple(range(8))], ", ".join(f"`{name.replace('`', '``')}` int" for name in names))
    assert tuples(events_from_columns(table, RecordMapping())) == [[(name, at) for at, name in enumerate(names)]]


def test_columns_are_found_as_spark_finds_them(spark: Any) -> None:
    """Without regard to capitals, and by a path."""
    table = spark.sql("select 'E1' as Id, named_struct('name', 'x') as device, 7 as raw")
    mapping = RecordMapping(id="ID", attributes=["Device.Name", "RAW"])
    assert tuples(events_from_columns(table, mapping)) == [[("Device.Name", "x"), ("raw", 7)]]
    renamed = RecordMapping(id="id", attributes={"device.name": "device", "double": "double"})
    doubled = events_from_columns(table, renamed, computed={"double": F.col("raw") * 2})
    assert tuples(doubled) == [[("device", "x"), ("double", 14)]]


def test_paths_in_backticks_are_read_as_spark_reads_them(spark: Any) -> None:
    """A dot within them parts nothing; the attribute is named without them."""
    table = spark.sql("select 'e' as `i d`, named_struct('x.y', 1, 'q`q', 2) as `s.t`, 3 as `a.b`")
    mapping = RecordMapping(id="`i d`", attributes=["`s.t`.`x.y`", "`s.t`.`q``q`", "`a.b`"])
    events = events_from_columns(table, mapping)
    assert [row.id for row in events.collect()] == ["e"]
    assert tuples(events) == [[("s.t.x.y", 1), ("s.t.q`q", 2), ("a.b", 3)]]


def test_columns_of_one_name_are_refused_when_the_plan_is_built(spark: Any) -> None:
    for names in ("1 as a, 2 as a", "1 as a, 2 as A"):
        with pytest.raises(BuildError, match="two columns 'a' and"):
            events_from_columns(spark.sql(f"select 'e' as id, {names}"), RecordMapping(id="id"))


def test_fields_of_one_name_are_refused_when_the_plan_is_built(spark: Any) -> None:
    """They may still be kept."""
    twins = spark.sql("select 'e' as id, 'v' as type, array(named_struct('x', 1, 'X', 2)) as s")
    with pytest.raises(BuildError, match="'s' has two fields 'x' and 'X'"):
        events_from_columns(twins, RecordMapping(id="id"))
    with pytest.raises(BuildError, match=r"'attributes\.t' has two fields"):
        match(twins.selectExpr("id", "named_struct('t', s) as attributes"), "a: {t.x = 1}")
    events = events_from_columns(twins, RecordMapping(id="id", attributes=["type"]), keep=["s"])
    (row,) = match(events, "a: {type = v}", keep="*").collect()
    assert [list(item) for item in row.s] == [[1, 2]]


def test_a_column_that_only_looks_like_ours_is_named(spark: Any) -> None:
    table = spark.sql("select 'e' as id, map('a', 'b') as attributes, 'scratched' as flaw")
    for call in (lambda: dead_letters(table), lambda: match(table, "x: {a = b}")):
        with pytest.raises(BuildError, match="the column flaw is string"):
            call()


def test_dead_letters_must_be_asked_for(spark: Any) -> None:
    events = spark.sql("select 'e' as id, timestamp'2026-01-01' as time, map('a', 'b') as attributes")
    with pytest.raises(BuildError, match="no dead letters") as error:
        dead_letters(detect(events, "p: {a = b} as x then {a = b} as y within 1 minute"))
    assert "dead_letters=True" in str(error.value)


def test_texts_of_any_collation_are_texts(spark: Any) -> None:
    table = spark.sql("""select 'e' collate unicode as id, '2026-01-01T10:00:00Z' collate unicode as at,
        '5' collate utf8_lcase as n, array('X' collate unicode) as xs, map('k', 'v' collate unicode) as m,
        array('T' collate unicode) as tags, 'a, b' collate unicode as more""")
    for theme, tags in (("tags", ["T"]), ("more", ["a", "b"])):
        events = events_from_columns(table, RecordMapping(id="id", time="at", theme=theme, attributes=["n", "xs", "m"]))
        assert tuples(events) == [[("n", 5), ("xs", "X"), ("m.k", "v")]]
        assert [(row.time.year, row.theme) for row in events.collect()] == [(2026, tags)]


def test_an_event_without_an_id_is_known_by_its_content(spark: Any, tmp_path: Path) -> None:
    """In a frame and in Parquet that workers read, and its kept columns go with it."""
    table = spark.sql("""select nullif(i, 'null') as id, timestamp'2026-01-01 10:00:00' as time,
        map('a', n) as attributes, n as tenant from values ('null', 1), ('', 2), ('e', 3) as t(i, n)""")
    as_events(table).drop("flaw").write.parquet(str(tmp_path / "in.parquet"))
    direct = read_events(spark, tmp_path / "in.parquet")
    frames = (
        match(table, "x: {a > 0}", keep="*"),
        match(direct, "x: {a > 0}"),
        match(direct.where("true"), "x: {a > 0}"),
    )
    ids = [sorted(row.event_id for row in frame.collect()) for frame in frames]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids[0])) == 3
    assert "e" in ids[0]
    assert sorted(row.tenant for row in frames[0].collect()) == [1, 2, 3]


def test_columns_are_computed_while_files_are_read(spark: Any, tmp_path: Path) -> None:
    """Of Parquet and of CSV; what cannot be computed is refused when the plan is built."""
    (tmp_path / "t.csv").write_text("id,a,b\n1,3,4\n")
    spark.sql("select '1' as id, 3 as a, 4 as b").write.parquet(str(tmp_path / "t.parquet"))
    mapping = RecordMapping(id="key", attributes=["sum"])
    computed = {"sum": F.expr("int(a) + int(b)"), "key": F.concat("id", F.lit("-k"))}
    for name in ("t.csv", "t.parquet"):
        events = read_events(spark, tmp_path / name, columns=mapping, computed=computed)
        assert [row.id for row in events.collect()] == ["1-k"]
        assert tuples(events) == [[("sum", 7)]]
    for computed, message in (({"sum": F.col("c")}, "cannot be made"), ({"sum": "a + b"}, "is no Column")):
        with pytest.raises(BuildError, match=message):
            read_events(spark, tmp_path / "t.parquet", columns=RecordMapping(id="id"), computed=computed)
    with pytest.raises(BuildError, match="computed columns have names"):
        events_from_columns(spark.sql("select 1 as a"), RecordMapping(), computed=[F.col("a")])  # type: ignore[arg-type]  # the mistake itself
    with pytest.raises(BuildError, match="computed from those of a table"):
        read_events(spark, tmp_path / "t.parquet", computed=computed)


def test_nested_fields_of_id_and_time_are_no_attributes(spark: Any) -> None:
    """As in one process."""
    table = spark.sql("""select named_struct('ts', 1767261600, 'room', 'r') as Meta, map('key', 'e', 'k', 'v') as m""")
    events = events_from_columns(table, RecordMapping(id="m.key", time="meta.TS"))
    assert [(row.id, row.time.year) for row in events.collect()] == [("e", 2026)]
    assert tuples(events) == [[("Meta.room", "r"), ("m.k", "v")]]


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("1767261600", {}),
        ("1767261600000", {}),
        ("1767261600000000", {}),
        ("1767261600000L", {"time_format": "ms"}),
        ("'1767261600000000'", {"time_format": "us"}),
        ("1767261600.0D", {"time_format": "s"}),
        ("'2026-01-01T10:00:00Z'", {"time_format": "s"}),
        ("cast(1767261600.0 as double)", {}),
        ("cast(1767261600 as decimal(12,0))", {}),
        ("'1767261600'", {}),
        ("'01/01/2026 10.00'", {"time_format": "%d/%m/%Y %H.%M"}),
        ("'1/1/2026 at 10'", {"time_format": "%d/%m/%Y at %H"}),
        ("'20260101T100000Z'", {"time_format": "%Y%m%dT%H%M%SZ"}),
        ("'2026-01-01 11:00:00.000+0100'", {"time_format": "%Y-%m-%d %H:%M:%S.%f%z"}),
        ("'2026-01-01T10:00:00Z'", {}),
        ("timestamp_ntz'2026-01-01 10:00:00'", {}),
    ],
)
def test_times_of_every_form(spark: Any, cell: str, options: dict[str, str]) -> None:
    table = spark.sql(f"select 'e' as id, {cell} as at, 'x' as type")
    (row,) = events_from_columns(table, RecordMapping(id="id", time="at", **options)).collect()
    assert row.flaw is None
    assert to_instant(row.time.astimezone(UTC)) == 1_767_261_600_000_000


TIMES = """
2020-01-01|2020-01-01T10:30|2020-01-01 10:30:00|2020-01-01T10:30:00.5Z|2020-01-01T10:30:00.123456+01:00
2020-01-01T10:30:00+0130|2020-01-01T10:30:00+01|2020-02-30|2020-13-01T00:00:00Z|2020-01-01T24:00:01
 2020-01-01T10:30:00Z|10:30|T10:30|10:30:00|2020-1-2|20200101|2020|1600000000|1600000000.25|1600000000000|1600000000000000|-5|1.5e9|soon
"""


def test_times_as_text_are_read_as_in_one_process(spark: Any) -> None:
    """ISO 8601 and numbers since 1970, those without a zone in the session's."""
    texts = TIMES.strip().replace("\n", "|").split("|")
    table = spark.createDataFrame([(text, text) for text in texts], "at string, text string")
    rows = events_from_columns(table, RecordMapping(time="at", kinds={"text": "text"}, attributes=["text"])).collect()
    read = {row.attributes[0].value: to_instant(row.time.astimezone(UTC)) for row in rows if row.flaw is None}
    zone = zone_of(spark.conf.get("spark.sql.session.timeZone"))
    wanted = {}
    for text in texts:
        with contextlib.suppress(InputError):
            wanted[text] = parse_instant("at", text, zone=zone)
    assert read == wanted


def test_a_unit_is_given_where_the_size_of_numbers_misleads(spark: Any) -> None:
    """Early milliseconds look like seconds."""
    table = spark.sql("select 'e' as id, 86400000 as at, 'x' as type")
    for unit, day in (({}, 27), ({"time_format": "ms"}, 2), ({"time_unit": "ms"}, 2)):
        mapping = RecordMapping(id="id", time="at", **unit)
        (row,) = events_from_columns(table, mapping).collect()
        assert row.time.day == day
        assert mapping.event({"id": "e", "at": 86400000, "type": "x"}, default_id="e").start == to_instant(
            row.time.astimezone(UTC)
        )


@pytest.mark.parametrize("cell", ["-99999999999999", "'-62135596801'", "timestamp'+12000-01-01'", "9e300D"])
def test_times_before_year_1_and_after_9999_are_refused(spark: Any, cell: str) -> None:
    """As in one process."""
    table = spark.sql(f"select 'e' as id, {cell} as at, 'x' as type")
    letters = dead_letters(events_from_columns(table, RecordMapping(id="id", time="at"))).collect()
    assert [row.reason for row in letters] == ["at is not a time"]


def test_a_time_of_day_is_no_time(spark: Any) -> None:
    table = spark.sql("select 'e' as id, '10:15' as at, 'x' as type")
    letters = dead_letters(events_from_columns(table, RecordMapping(id="id", time="at"))).collect()
    assert [row.reason for row in letters] == ["at is not a time"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (RecordMapping(id="device"), "'device' is struct<.*cannot be an id"),
        (RecordMapping(time="flag"), "'flag' is boolean: it cannot be a time"),
        (RecordMapping(id="idd"), "no column 'idd'"),
        (RecordMapping(attributes=["device.nam"]), "no field 'nam'"),
        (RecordMapping(theme="m"), "cannot be a theme"),
        (RecordMapping(id="id"), "'raw' is binary: it cannot be an attribute"),
        (RecordMapping(id="id", attributes=["keyed"]), "'keyed.key' is struct<a:int>: it cannot name attributes"),
        (RecordMapping(id="id", zone="Europe/Dublin"), "in the zone of its session"),
        (RecordMapping(id="id", complete=False), "not guessed on Spark"),
    ],
)
def test_wrong_columns_are_refused_when_the_plan_is_built(spark: Any, mapping: RecordMapping, message: str) -> None:
    table = spark.sql(
        """select 'e' as id, named_struct('name', 1) as device, true as flag, map('a', 1) as m, binary('x') as raw,
        map(named_struct('a', 1), 'x') as keyed"""
    )
    with pytest.raises(BuildError, match=message):
        events_from_columns(table, mapping)


def test_pairs_of_name_and_number_keep_their_numbers(spark: Any) -> None:
    """Without a kind, the type of the values tells."""
    frame = spark.sql("select 'e' as id, array(named_struct('value', 31, 'name', 'temp')) as attributes")
    assert [row.subscription for row in match(frame, "hot: {temp > 30}").collect()] == ["hot"]


def test_an_infinite_number_in_a_map_is_refused_too(spark: Any) -> None:
    frame = spark.sql("select 'e' as id, map('temp', double('Infinity')) as attributes")
    assert [row.reason for row in dead_letters(frame).collect()] == ["a number is infinite"]
    assert match(frame, "hot: {temp > 30}").count() == 0


def test_a_map_of_numbers_keeps_its_numbers(spark: Any) -> None:
    frame = spark.sql("select 'e' as ID, map('temp', 31, 'hum', null) as attributes")
    assert tuples(as_events(frame)) == [[("temp", 31)]]
    assert [row.event_id for row in match(frame, "hot: {temp > 30}").collect()] == ["e"]


def test_an_event_without_attributes_is_a_dead_letter(spark: Any) -> None:
    frame = spark.sql("select 'e' as id, cast(null as map<string, int>) as attributes")
    assert [row.reason for row in dead_letters(frame).collect()] == ["the event has no attributes"]


@pytest.mark.parametrize("columns", ["array('x') as id", "'e' as id, '2026' as time", "'e' as id, 'x' as theme"])
def test_a_frame_of_events_with_wrong_types_is_refused_when_built(spark: Any, columns: str) -> None:
    with pytest.raises(BuildError, match=r"the column .* is"):
        match(spark.sql(f"select {columns}, map('a', 'b') as attributes"), "x: {a = b}")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("map(array(1), 'b')", "'attributes.key' is array<int>: it cannot name attributes"),
        ("array(named_struct('name', binary('a'), 'value', 'b'))", "'attributes.name' is binary"),
        ("array(named_struct('name', 'a', 'value', array('b'), 'kind', 'text'))", "'attributes.value' is array"),
    ],
)
def test_attributes_of_wrong_types_are_refused_when_built(spark: Any, attributes: str, message: str) -> None:
    """Not in a worker."""
    with pytest.raises(BuildError, match=message):
        match(spark.sql(f"select 'e' as id, {attributes} as attributes"), "x: {a = b}")


KEPT = """select 'e' || id as id, timestamp_seconds(1767261600 + id) as time,
    map('type', if(id = 0, 'a', 'b')) as attributes,
    'acme' as tenant, id as `row number`, cast(1.25 as decimal(6,2)) as price, array(1, null) as list,
    timestamp'2026-01-01 10:00:00.123456' as seen, named_struct('a', cast(null as int)) as nested,
    cast(null as int) as gone
    from range(2)"""


@pytest.mark.parametrize("explained", [True, False])
def test_columns_go_through_matching(spark: Any, explained: bool) -> None:
    frame = spark.sql(KEPT)
    found = match(frame, "x: {type = a}", keep="*", with_explanation=explained)
    own = [name for name in frame.columns if name not in ("id", "time", "attributes")]
    assert found.columns[6:] == own
    wanted = frame.where("id = 'e0'").select("id", *(f"`{name}`" for name in own)).collect()
    assert found.select("event_id", *(f"`{name}`" for name in own)).collect() == [tuple(row) for row in wanted]


def test_columns_go_through_detection_with_each_member(spark: Any) -> None:
    frame = spark.sql(KEPT)
    found = detect(
        frame, "p: {type = a} as x then {type = b} as y within 1 minute", keep=["tenant", "row number", "seen"]
    )
    (row,) = found.collect()
    members = [(member.role, member.id, member.tenant, member["row number"]) for member in row.events]
    assert members == [("x", "e0", "acme", 0), ("y", "e1", "acme", 1)]
    assert {member.seen for member in row.events} == {frame.head().seen}


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "America/New_York"])
def test_columns_go_through_streams(spark: Any, tmp_path: Path, zone: str) -> None:
    """Matches and detections of a stream have them too, state included, in any zone of the session."""
    spark.sql(KEPT).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    pattern = "p: {type = a} as x then {type = b} as y within 1 minute"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        jobs = {"m": match(stream, "x: {type = a}", keep=["tenant"]), "d": detect(stream, pattern, keep="*", buckets=1)}
        for name, job in jobs.items():
            writer = job.writeStream.format("memory").queryName(f"kept_{name}").trigger(availableNow=True)
            writer.option("checkpointLocation", str(tmp_path / name)).start().awaitTermination()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [tuple(row) for row in spark.sql("select event_id, tenant from kept_m").collect()] == [("e0", "acme")]
    (row,) = spark.sql("select events.id as ids, events.price as prices, events.seen as seen from kept_d").collect()
    assert (row.ids, row.prices) == (["e0", "e1"], [Decimal("1.25")] * 2)
    assert row.seen == [row.seen[0]] * 2 == [table.seen for table in spark.sql(KEPT).collect()]
    (times,) = spark.sql("select transform(events, e -> unix_seconds(e.start)) as at from kept_d").collect()
    assert times.at == [1767261600, 1767261601]


def test_columns_of_every_type_go_through(spark: Any) -> None:
    """Maps of other keys than text, nulls within, times of any age, and texts that look like our marks."""
    table = spark.sql("""select 'e' as id, map('type', 'x') as attributes, map(1, 'a', 2, null) as numbered,
        array(map(date'2026-01-02', named_struct('deep', map(2.5D, true)))) as nested, map('a', null, 'b', 2) as plain,
        cast(null as map<int, int>) as gone, named_struct('p', cast(null as int)) as hollow, double('NaN') as nan,
        cast(12345678901234567890.123456789 as decimal(38,9)) as exact, timestamp_ntz'0001-01-01 00:00:00.1' as old,
        timestamp'2026-01-01 00:00:00.123456' as fine, binary('x') as bytes, '\u001e\u001e{}' as mark, '' as empty,
        'n' as `odd ``n.ame`, interval 1 day as span""")
    (row,) = table.drop("attributes").collect()
    for explained in (True, False):
        (found,) = match(table, "s: {type = x}", with_explanation=explained, keep="*").collect()
        assert repr([found[name] for name in row.asDict() if name != "id"]) == repr(list(row)[1:])
        assert found.event_id == "e"


def test_kept_times_are_exact_in_any_zone(spark: Any) -> None:
    """Before there were time zones, those of a session were seconds off a whole minute."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = spark.sql("select 'e' as id, map('type', 'x') as attributes, timestamp'1850-06-01 12:00:00' as born")
        found = match(table, "s: {type = x}", keep="*").selectExpr("string(born) as born").collect()
        assert [row.born for row in found] == ["1850-06-01 12:00:00"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_sessions_whose_timestamps_have_no_zone(spark: Any, tmp_path: Path) -> None:
    """Times of events, matches and detections keep their zone, in batch and stream."""
    keys = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}
    before = {key: spark.conf.get(key) for key in keys}
    records = [
        {"id": str(second), "time": f"2026-01-01T10:00:0{second}Z", "attributes": {"type": "a"}} for second in range(3)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pair = "p: {type = a} as x then {type = a} as y within 1 second"
    try:
        for key, value in keys.items():
            spark.conf.set(key, value)
        table = spark.sql("select 'e' as id, timestamp_seconds(1767261600) as at, 'a' as type")
        events = events_from_columns(table, RecordMapping(id="id", time="at"))
        assert match(events, "x: {type = a}").selectExpr("unix_micros(time) as t").head().t == 1_767_261_600_000_000
        written = spark.sql("select 'e' as id, '01.01.2026 11:00 +0100' as at, 'a' as type")
        offset = RecordMapping(id="id", time="at", time_format="%d.%m.%Y %H:%M %z")
        (row,) = events_from_columns(written, offset).selectExpr("unix_micros(time) as t").collect()
        assert row.t == 1_767_261_600_000_000
        assert dead_letters(detect(events, pair, dead_letters=True)).count() == 0
        stream = read_events(spark, tmp_path, format="jsonl", stream=True)
        writer = detect(stream, pair).writeStream.format("memory").queryName("zoned").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "_state")).start().awaitTermination()
        times = spark.sql("select unix_micros(time) - 1767261600000000 as t, events[0].id as id from zoned").collect()
        assert sorted((row.id, row.t) for row in times) == [("0", 1_000_000), ("1", 2_000_000)]
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def test_kept_columns_are_checked_when_built(spark: Any) -> None:
    frame = spark.sql("select 'e' as id, map('a', 'b') as attributes, 1 as score, 2 as tenant")
    for keep in (["score"], "*"):
        with pytest.raises(BuildError, match="'score' cannot be kept"):
            match(frame, "x: {a = b}", keep=keep)
    for keep in ([F.col("tenant")], F.col("tenant"), [3]):
        with pytest.raises(BuildError, match=r"named by text, not by (Column|int)"):
            match(frame, "x: {a = b}", keep=keep)  # type: ignore[arg-type]  # the mistake itself
    with pytest.raises(BuildError, match="named by text"):
        RecordMapping(id="id", attributes=[F.col("score") * 2])  # type: ignore[list-item]  # the mistake itself
    nested = frame.select("*", F.struct("tenant").alias("meta"))
    with pytest.raises(BuildError, match=r"'meta\.tenant' is a field"):
        match(nested, "x: {a = b}", keep=["meta.tenant"])
    span = frame.withColumn("span", F.expr("interval 1 month"))
    with pytest.raises(BuildError, match=r"'span' is interval month: it cannot be kept"):
        match(span.drop("score"), "x: {a = b}", keep="*")
    with pytest.raises(BuildError, match="no column 'tennant'") as error:
        match(frame, "x: {a = b}", keep=["tennant"])
    assert "did you mean 'tenant'" in str(error.value)


def test_a_table_keeps_columns_beside_its_events(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,temp,tenant\n1,31,acme\n2,3,other\n")
    events = read_events(spark, tmp_path, columns=RecordMapping(id="id", attributes=["temp"]), keep=["tenant"])
    found = match(events, {"hot": "{temp > 30}"}, keep="*")
    assert [(row.event_id, row.tenant) for row in found.collect()] == [("1", "acme")]


def test_a_folder_is_read_by_its_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"id": "e", "attributes": {"a": 1}}\n')
    assert read_events(spark, tmp_path).count() == 1
    (tmp_path / "two.csv").write_text("a\n1\n")
    with pytest.raises(BuildError, match="several formats: csv, jsonl"):
        read_events(spark, tmp_path)
    (tmp_path / "two.csv").rename(tmp_path / "_two.csv")
    (tmp_path / "_log").mkdir()
    (tmp_path / "_log" / "0.json").write_text("{}")
    (tmp_path / "one.jsonl").rename(tmp_path / "ONE.JSONL")
    assert read_events(spark, tmp_path).count() == 1


def test_any_header_of_csv_is_read_by_spark_too(spark: Any, tmp_path: Path) -> None:
    """With kept columns, Spark reads the file: backticks, and names that it would use itself."""
    (tmp_path / "t.csv").write_text("id,a`b,_broken,_source\ne,1,x,y\n")
    events = read_events(spark, tmp_path, columns=RecordMapping(id="id"), keep=["a`b"])
    assert tuples(events) == [[("a`b", 1), ("_broken", "x"), ("_source", "y")]]
    assert [row["a`b"] for row in events.collect()] == ["1"]
