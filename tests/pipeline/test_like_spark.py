"""Nothing silent, and arguments, names and errors as Spark's users know them."""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
import warnings
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.pipeline.plans import LONGEST, TABLE, frames, longest_line
from tests.pipeline.traces import START, trace, write_files

from likewise import pipeline
from likewise.errors import BuildError, InputError, ParseError
from likewise.events import Event, RecordMapping
from likewise.matching import Background
from likewise.pipeline import (
    FileSink,
    FixedRecipe,
    LikewiseWarning,
    Stream,
    check,
    detect,
    events_from_columns,
    join_by_meaning,
    match,
    microseconds,
    read_events,
    register_related,
    trouble,
)
from likewise.pipeline.detection.batch import DetectOptions, batch_places
from likewise.pipeline.detection.stream import (
    BOUNDED,
    STORES_MEMORY,
    configure_state_store,
    cores_of,
    layout_of,
    refuse_change,
    with_few_stores,
)
from likewise.pipeline.session import PARTITIONS
from likewise.recipe import Recipe
from likewise.semantics import Model, write_space

PAIR = "pair: {type = a} as x then {type = b} as y within 30 seconds where x.room = y.room"
NOW = {"availableNow": True}


def test_durations_are_texts_or_timedeltas() -> None:
    assert microseconds("90 seconds") == microseconds(timedelta(seconds=90)) == 90_000_000
    with pytest.raises(BuildError, match="negative"):
        microseconds(timedelta(seconds=-1))
    with pytest.raises(BuildError, match="not a length of time"):
        microseconds("soon")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: match(None, "x: {a = b}", treshold=0.5), "match() got an unexpected .* Did you mean 'threshold'?"),
        (lambda: match(None, "x: {a = b}", space="wordnet"), "Did you mean 'spaces'?"),
        (lambda: detect(None, PAIR, latenes="1 s"), "Did you mean 'lateness'?"),
        (lambda: join_by_meaning(None, None, on="a", bets=1), "Did you mean 'best'?"),
        (lambda: read_events(None, "in", colums=None), "Did you mean 'columns'?"),
        (lambda: events_from_columns(None, None, computd={}), "Did you mean 'computed'?"),
        (lambda: register_related(None, measures="esa"), "Did you mean 'measure'?"),
        (lambda: Stream(None, None, None, "here", tigger=NOW), "Stream() got an unexpected .* Did you mean 'trigger'?"),
        (lambda: check(None, space="wordnet"), "Did you mean 'spaces'?"),
        (lambda: RecordMapping(tiem="at"), "RecordMapping() got an unexpected .* Did you mean 'time'?"),
    ],
)
def test_a_misspelt_option_is_a_type_error_with_the_nearest_name(call: Any, message: str) -> None:
    with pytest.raises(TypeError) as error:
        call()
    assert message.rpartition(".* ")[2] in str(error.value)


def test_what_is_no_frame_is_named() -> None:
    for wrong in ("events.jsonl", None, [1]):
        for call in (
            lambda wrong=wrong: match(wrong, "x: {a = b}"),
            lambda wrong=wrong: detect(wrong, PAIR),
            lambda wrong=wrong: join_by_meaning(wrong, wrong, on="a"),
        ):
            with pytest.raises(BuildError, match="needs a DataFrame of Spark, not"):
                call()


def test_lateness_and_watermark_are_one_thing() -> None:
    with pytest.raises(BuildError, match="two names of one thing"):
        detect(None, PAIR, lateness="1 s", watermark="1 s")


def test_subscriptions_are_texts_mappings_or_ready() -> None:
    forms: list[Any] = [
        "hot: {temp > 30}\ncold: {temp < 5}",
        ["hot: {temp > 30}", "cold: {temp < 5}"],
        {"hot": "{temp > 30}", "cold": "{temp < 5}"},
    ]
    recipes = [Recipe.of(form) for form in forms]
    assert recipes[0] == recipes[1] == recipes[2]
    assert [subscription.name for subscription in Recipe.of(["{a = 1}", "x: {b = 1}"]).subscriptions] == ["s1", "x"]
    with pytest.raises(ParseError, match="taken"):
        Recipe.of(["x: {a = 1}", "x: {b = 1}"])


@pytest.mark.parametrize("name", ["hot room", "größe (m²)", "a: b", 'say "hot"', "where", "7"])
def test_a_name_in_a_mapping_is_any_text(name: str) -> None:
    assert [subscription.name for subscription in Recipe.of({name: "{temp > 30}"}).subscriptions] == [name]
    with pytest.raises(BuildError, match="a name cannot be empty"):
        Recipe.of({"": "{temp > 30}"})


def test_a_subscription_that_is_no_text_is_named() -> None:
    for wrong in (3, None):
        with pytest.raises(BuildError, match=r"'hot' is (int|NoneType), not text"):
            match(None, {"hot": wrong})  # type: ignore[dict-item]  # the mistake itself


@pytest.mark.parametrize("nothing", [[], {}, "# only a comment {\n"])
def test_matching_without_a_subscription_is_refused(nothing: Any) -> None:
    with pytest.raises(BuildError, match="no subscription to match"):
        match(None, nothing)


def test_a_mapping_of_columns_is_no_dictionary(tmp_path: Path) -> None:
    wrong: Any = {"id": "key"}
    for call in (lambda: events_from_columns(None, wrong), lambda: read_events(None, tmp_path, columns=wrong)):
        with pytest.raises(BuildError, match="cannot be dict"):
            call()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        read_events(None, tmp_path / "nowhere")


@pytest.mark.spark
def test_subscriptions_come_as_a_frame(spark: Any) -> None:
    events = spark.sql("select 'e' as id, map('temp', 31) as attributes")
    texts = [("hot room", "{temp > 30}"), (None, "cold: {temp < 5}")]
    table = spark.createDataFrame(texts, "name string, subscription string")
    assert [row.subscription for row in match(events, table).collect()] == ["hot room"]
    with pytest.raises(BuildError, match="has only name"):
        match(events, table.select("name"))


def test_types_in_signatures_are_exported() -> None:
    """Every type of this package that a public signature names can be imported from it."""
    folder = Path(pipeline.__file__).parent
    sources = "".join(path.read_text() for path in folder.rglob("*.py"))
    ours = set(re.findall(r"^(?:class (\w+)|(\w+): TypeAlias)", sources, re.M))
    named = set[str]()
    for name in pipeline.__all__:
        value = getattr(pipeline, name)
        public = [method for key, method in vars(value).items() if key[0] != "_"] if inspect.isclass(value) else [value]
        for function in [*public, getattr(value, "__init__", None)]:
            annotations = inspect.get_annotations(inspect.unwrap(function)) if inspect.isfunction(function) else {}
            named |= {word for annotation in annotations.values() for word in re.findall(r"\w+", str(annotation))}
    assert {"Span", "Keep", "Subscriptions"} <= named
    assert (named & {word for pair in ours for word in pair if word}) - set(pipeline.__all__) == set()


@pytest.mark.spark
def test_a_stream_takes_subscriptions_in_any_form_and_paths(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(8), size=8)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    frame = spark.sql("select 'a' as Name, '{type = a}' as Subscription")
    known = Background.of([])
    forms: list[Any] = ["a: {type = a}", {"a": "{type = a}"}, frame, Recipe.of("a: {type = a}")]
    for number, form in enumerate(forms):
        out = tmp_path / f"out{number}"
        stream = Stream(events, form, FileSink(out), tmp_path / f"state{number}", trigger=NOW, background=known)
        stream.start().awaitTermination()
        assert {row.subscription for row in spark.read.parquet(str(out)).collect()} == {"a"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "detection"}, "cannot return 'detection'"),
        ({"what": "matches"}, "no subscription to match"),
        ({"sink": "out"}, "a sink cannot be 'out'"),
        ({"background": "strem"}, "'strem' is no background"),
        ({"source": "a: {type = a}", "keep": ["tenat"]}, "no column 'tenat'"),
        ({"events": "in"}, "needs a DataFrame of Spark, not str"),
        ({"lateness": "1 s", "watermark": "1 s"}, "two names of one thing"),
        ({"source": Recipe.of(PAIR), "measure": "esa"}, "a Recipe has its own options, so measure cannot be given"),
        ({"measure": "esa"}, "esa needs a space"),
    ],
)
def test_a_stream_refuses_mistakes_before_it_starts(
    spark: Any, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    write_files(tmp_path / "in", trace(8), size=8)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    given = {"events": events, "source": PAIR, "sink": FileSink(tmp_path / "out"), "checkpoint": tmp_path / "state"}
    with pytest.raises(BuildError, match=message):
        Stream(**{**given, **options}).start()  # type: ignore[arg-type]  # mistakes among them


@pytest.mark.spark
def test_a_stream_takes_the_options_of_matching(spark: Any, tmp_path: Path) -> None:
    """As `match` takes them; a recipe has its own."""
    write_files(tmp_path / "in", trace(8), size=8)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    found = {}
    for threshold in (0.5, 1.0):
        out = tmp_path / str(threshold)
        options: dict[str, Any] = {"measure": "evidence", "threshold": threshold, "background": None, "trigger": NOW}
        Stream(events, {"a": "{type~ = as~}"}, FileSink(out), out / "state", **options).start().awaitTermination()
        found[threshold] = spark.read.parquet(f"{out}/batch=0").count()
        whole = match(read_events(spark, tmp_path / "in"), {"a": "{type~ = as~}"}, threshold=threshold, background=None)
        assert found[threshold] == whole.count()


@pytest.mark.spark
def test_the_state_store_keeps_what_the_session_sets(spark: Any) -> None:
    before = {key: spark.conf.get(key, None) for key in (BOUNDED, STORES_MEMORY)}
    try:
        for own, wanted in (({}, "32"), ({STORES_MEMORY: "500"}, "500"), ({BOUNDED: "false"}, None)):
            for key in before:
                spark.conf.unset(key)
            for key, value in own.items():
                spark.conf.set(key, value)
            configure_state_store(spark)
            assert spark.conf.get(STORES_MEMORY, None) == wanted
            assert spark.conf.get(BOUNDED, None) == own.get(BOUNDED, "true")
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.spark
def test_plans_name_our_nodes(spark: Any) -> None:
    """In a stream, Spark itself names the step that has state."""
    events = spark.sql("select 'e' as id, current_timestamp() as time, map('type', 'a') as attributes")
    plans = [frame._jdf.queryExecution().toString() for frame in (match(events, "x: {type = a}"), detect(events, PAIR))]
    assert "LikewiseMatch" in plans[0]
    assert "LikewiseRoute" in plans[1]
    assert "LikewiseDetect" in plans[1]
    rows = spark.readStream.format("rate").load()
    stream = rows.selectExpr("string(value) as id", "timestamp as time", "map('type', 'a') as attributes")
    plans = [frame._jdf.queryExecution().toString() for frame in (match(stream, "x: {type = a}"), detect(stream, PAIR))]
    assert "LikewiseMatch" in plans[0]
    assert "LikewiseRoute" in plans[1]


@pytest.mark.spark
def test_plans_fit_on_a_screen(spark: Any, tmp_path: Path) -> None:
    """In batch and stream."""
    spark.sql(TABLE).write.parquet(str(tmp_path / "table"))
    table = spark.read.parquet(str(tmp_path / "table"))
    stream = spark.readStream.schema(table.schema).parquet(str(tmp_path / "table"))
    for rows in (table, stream):
        lengths = {name: longest_line(frame) for name, frame in frames(rows).items()}
        assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.spark
@pytest.mark.parametrize("untimed", [1, 5])
def test_events_without_a_time_are_counted_in_a_warning(spark: Any, untimed: int) -> None:
    """Also where none has a time."""
    rows = spark.range(5).selectExpr("'e' || id as id", f"if(id < {untimed}, null, now()) as time")
    events = rows.selectExpr("*", "map('type', 'a') as attributes")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert detect(events, PAIR).count() == 0
        for _ in range(100):
            if seen:
                break
            time.sleep(0.1)
    texts = [str(warning.message) for warning in seen if issubclass(warning.category, LikewiseWarning)]
    known = "1 event has" if untimed == 1 else "5 events have"
    assert [text.partition(";")[0] for text in texts] == [f"{known} no time and took no part in detection"]


@pytest.mark.spark
def test_a_checkpoint_refuses_other_buckets_and_patterns_and_goes_on_with_its_own(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """With others, what was begun would be looked for in other places and never found."""
    inbox, out = tmp_path / "in", str(tmp_path / "out")
    first = Event("1", (("type", "a"), ("room", "r")), (), START, START)
    second = Event("2", (("type", "b"), ("room", "r")), (), START + 1, START + 1)

    def run(buckets: int, pattern: str = PAIR) -> None:
        events = read_events(spark, inbox, format="jsonl", stream=True).withColumn("tenant", F.lit("acme"))
        recipe = FixedRecipe(Recipe.of(pattern))
        stream = Stream(events, recipe, FileSink(out), checkpoint, trigger=NOW, buckets=buckets, keep=["tenant"])
        stream.start().awaitTermination()

    write_files(inbox, [first], size=1)
    run(2)
    write_files(inbox, [second], size=1, first=1)
    with pytest.raises(Exception, match="the checkpoint was made with buckets 2, and now it is 3") as error:
        run(3)
    assert error.value.__notes__ == ["The reason: the checkpoint was made with buckets 2, and now it is 3"]
    with pytest.raises(Exception, match="the pattern 'pair' is another one than in the checkpoint"):
        run(2, PAIR.replace("30", "40"))
    run(2)
    found = [[(member.id, member.tenant) for member in row.events] for row in spark.read.parquet(out).collect()]
    assert found == [[("1", "acme"), ("2", "acme")]]


def test_a_checkpoint_depends_on_what_its_state_holds() -> None:
    """Where hits meet, how they were scored, and the columns that members carry; not on how late events may be."""
    recipe = Recipe.of(PAIR)
    usual = layout_of(recipe, DetectOptions())
    for other in (DetectOptions(buckets=3), DetectOptions(spread=False)):
        assert layout_of(recipe, other) != usual
    assert layout_of(recipe, DetectOptions(), {"tenant": "string"}) != usual
    assert layout_of(Recipe.of(PAIR, options={"threshold": 0.7}), DetectOptions()) != usual
    assert layout_of(recipe, DetectOptions(lateness=5, max_ahead=7)) == usual


def test_a_checkpoint_depends_on_the_model_where_that_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update with other weights must not go on with hits that the former ones scored."""
    texts = ("p: {type~ = a~} as x then {type = b} as y within 1 minute", PAIR)
    before = [layout_of(Recipe.of(text), DetectOptions()) for text in texts]
    other = dataclasses.replace(Model.shipped(), prior=Model.shipped().prior + 1)
    monkeypatch.setattr(Model, "shipped", classmethod(lambda _: other))
    after = [layout_of(Recipe.of(text), DetectOptions()) for text in texts]
    assert [name for name in before[0] if before[0][name] != after[0][name]] == ["model"]
    assert before[1] == after[1]


def test_a_checkpoint_refuses_a_changed_pattern_and_lets_others_come_and_go() -> None:
    now = layout_of(Recipe.of(PAIR), DetectOptions())
    for patterns in ({"pair": "1"}, {"pair": "1", "more": "2"}, {"more": "2"}):
        refuse_change({**now, "patterns": {"pair": "1"}}, now, patterns)
    with pytest.raises(BuildError, match="the pattern 'pair' is another one than in the checkpoint"):
        refuse_change({**now, "patterns": {"pair": "1"}}, now, {"pair": "2"})


@pytest.mark.parametrize("nothing", [None, 5, pd.DataFrame({"subscription": ["{type = a}"]})], ids=str)
def test_what_is_no_subscription_is_refused(nothing: Any) -> None:
    for call in (match, detect):
        with pytest.raises(BuildError, match=f"subscriptions cannot be {type(nothing).__name__}"):
            call(None, nothing)


@pytest.mark.spark
def test_a_second_watermark_is_refused_when_the_query_is_built(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(10), size=10)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    timed = events.withWatermark("time", "1 minute")
    for option in ("lateness", "heartbeat"):
        with pytest.raises(BuildError, match=f"already have a watermark, so {option} cannot be given"):
            detect(timed, PAIR, **{option: "10 seconds"})
    with pytest.raises(BuildError, match="a watermark on another column"):
        detect(events.withColumn("seen", F.col("time")).withWatermark("seen", "1 minute"), PAIR)
    with pytest.raises(BuildError, match="a second one would drop them all"):
        detect(events, PAIR).withWatermark("time", "1 minute")
    found = detect(events, PAIR)
    chained = found.where("probability > 0").toDF(*found.columns)
    grouped = found.groupBy("pattern").agg(F.max("time").alias("time"))
    for made in (found.select("time"), chained, found.alias("x").drop("start"), grouped):
        with pytest.raises(BuildError, match="a second one would drop them all"):
            made.withWatermark("time", "1 minute")


def rows_of(frame: Any, folder: Path) -> list[Any]:
    """What a stream gives of all that is there."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out")).trigger(**NOW)
    writer.option("checkpointLocation", str(folder / "state")).start().awaitTermination()
    return list(frame.sparkSession.read.parquet(str(folder / "out")).collect())


@pytest.mark.spark
def test_detection_goes_by_the_watermark_of_its_events(spark: Any, tmp_path: Path) -> None:
    """Duplicates are dropped before it in the same query, and an event later than the watermark is a dead letter."""
    moments = {"a1": 0, "b1": 5, "a2": 300, "b2": 305, "a-late": 1, "end": 900}
    events = [
        Event(name, (("type", name[0]), ("room", "r")), (), START + at * 1_000_000, START + at * 1_000_000)
        for name, at in moments.items()
    ]
    write_files(tmp_path / "in", [*events[:4], *events[:4]], size=8)
    write_files(tmp_path / "in", events[4:], size=2, first=1)
    stream = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
    timed = stream.withWatermark("time", "30 seconds")
    found = rows_of(detect(timed, PAIR, buckets=1, dead_letters=True, keep="*"), tmp_path / "timed")
    assert [row.flaw.reason for row in found if row.flaw] == ["late by 274 s for pair"]
    assert sum(row.flaw is None for row in found) > 2
    single = timed.dropDuplicatesWithinWatermark(["id"])
    found = rows_of(detect(single, PAIR, buckets=1), tmp_path / "single")
    assert sorted(member.id for row in found for member in row.events) == ["a1", "a2", "b1", "b2"]


@pytest.mark.spark
def test_windows_of_events_are_events_of_the_same_stream(spark: Any, tmp_path: Path) -> None:
    """They come when the watermark has passed them, and are not late for that."""
    moments = [*range(0, 120, 4), *range(120, 200, 20), *range(200, 260, 4), 900]
    events = [Event(f"e{at}", (("type", "a"),), (), START + at * 1_000_000, None) for at in moments]
    write_files(tmp_path / "in", events, size=14)
    busy = "busy: {n >= 5} as x then {n >= 5} as y within 20 seconds"

    def found(rows: Any) -> Any:
        counts = rows.groupBy(F.window("time", "20 seconds")).agg(F.count("*").alias("n"))
        timed = counts.select(F.window_time("window").alias("time"), F.create_map(F.lit("n"), "n").alias("attributes"))
        return detect(timed.withColumn("id", F.col("time").cast("string")), busy).select("events.id")

    stream = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
    streamed = rows_of(found(stream.withWatermark("time", "5 seconds")), tmp_path)
    whole = found(read_events(spark, tmp_path / "in", format="jsonl")).collect()
    assert sorted(row.id for row in streamed) == sorted(row.id for row in whole)
    assert len(whole) > 5


@pytest.mark.spark
@pytest.mark.parametrize("mapped", [False, True])
def test_matches_keep_the_watermark_of_their_events(spark: Any, tmp_path: Path, mapped: bool) -> None:
    """So windows over them need no second one, which Spark would refuse."""
    write_files(tmp_path / "in", [*trace(60)], size=30)
    if mapped:
        kinds = "id string, time timestamp, attributes struct<type: string>"
        table = spark.readStream.schema(kinds).json(str(tmp_path / "in")).withWatermark("time", "1 second")
        events = events_from_columns(table, RecordMapping(id="id", time="time", attributes={"attributes.type": "type"}))
    else:
        events = read_events(spark, tmp_path / "in", stream=True).withWatermark("time", "1 second")
    found = match(events, "s: {type = a}", with_explanation=mapped)
    counts = rows_of(found.groupBy(F.window("time", "10 seconds")).count(), tmp_path)
    whole = match(read_events(spark, tmp_path / "in"), "s: {type = a}")
    windows = whole.groupBy(F.window("time", "10 seconds")).count().collect()
    assert 0 < len(windows) - len(counts) <= 2  # the last are still open
    assert set(counts) < set(windows)


@pytest.mark.spark
def test_a_view_of_a_stream_says_what_slows_it_down(spark: Any, tmp_path: Path) -> None:
    """Queries in SQL are Spark's own, with the number of state stores that the session has."""
    write_files(tmp_path / "in", trace(10), size=10)
    found = detect(read_events(spark, tmp_path / "in", format="jsonl", stream=True), PAIR)
    before = spark.conf.get(PARTITIONS)
    try:
        spark.conf.set(PARTITIONS, "200")
        with pytest.warns(LikewiseWarning, match="200 state stores"):
            found.where("probability > 0").createOrReplaceTempView("found")
        spark.conf.set(PARTITIONS, "2")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.createOrReplaceTempView("found")
        counts = rows_of(spark.sql("select pattern, probability from found where probability > 0"), tmp_path)
        assert len(counts) == detect(read_events(spark, tmp_path / "in", format="jsonl"), PAIR).count()
    finally:
        spark.conf.set(PARTITIONS, before)
        spark.catalog.dropTempView("found")


@pytest.mark.spark
def test_two_detections_stand_in_one_batch_query(spark: Any) -> None:
    events = spark.sql("""select 'e' || id as id, timestamp_seconds(id) as time,
        map('type', if(id % 2 = 0, 'a', 'b')) as attributes from range(10)""")
    pairs = [
        detect(events, f"{first}{second}: {{type = {first}}} as p then {{type = {second}}} as q within 1 second")
        for first, second in ("ab", "ba")
    ]
    counts = pairs[0].union(pairs[1]).groupBy("pattern").count()
    assert {row.pattern: row["count"] for row in counts.collect()} == {"ab": 5, "ba": 4}


@pytest.mark.spark
def test_two_detections_in_one_stream_are_refused_when_the_query_is_built(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(10), size=10)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    first, second = detect(events, PAIR), detect(events, PAIR.replace("30", "40"))
    again = first.selectExpr("pattern as id", "time", "map('type', pattern) as attributes")
    calls: list[Any] = [
        lambda: first.union(second),
        lambda: first.select("time").unionByName(other=second.select("time")),
        lambda: first.where("probability > 0").join(second, "pattern"),
        lambda: detect(again, PAIR),
        lambda: detect(events.selectExpr("id", "time", "map('type', id) as attributes").union(again), PAIR),
    ]
    for call in calls:
        with pytest.raises(BuildError, match="a streaming query cannot detect twice"):
            call()
    assert first.where("probability > 0").union(first.where("probability = 0")).isStreaming


@pytest.mark.spark
def test_a_query_over_matches_has_as_many_stores_as_cores(spark: Any, tmp_path: Path) -> None:
    """Each of Spark's 200 stores would be opened in every batch."""
    write_files(tmp_path / "in", trace(10), size=10)
    found = match(read_events(spark, tmp_path / "in", format="jsonl", stream=True), "x: {type = a}").select("event_id")
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "200")
    try:
        writer = found.dropDuplicates(["event_id"]).writeStream.format("noop").trigger(**NOW)
        query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
        query.awaitTermination()
        assert spark.conf.get(PARTITIONS) == "200"
    finally:
        spark.conf.set(PARTITIONS, before)
    assert query.recentProgress[0]["stateOperators"][0]["numShufflePartitions"] == cores_of(spark) < 200


def test_a_new_stream_has_as_many_stores_as_cores_unless_the_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session itself keeps its number, also where the start fails."""
    monkeypatch.setattr("likewise.pipeline.detection.stream.cores_of", lambda _: 3)
    held, seen = {PARTITIONS: "200"}, list[str]()
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=held.get, set=held.__setitem__))

    def start(path: str) -> str:
        seen.append(held[PARTITIONS])
        if not path:
            raise ValueError("no place")
        return path

    assert with_few_stores(session, start)("out") == "out"
    with pytest.raises(ValueError, match="no place"):
        with_few_stores(session, start)("")
    assert held == {PARTITIONS: "200"}
    held[PARTITIONS] = "64"
    with_few_stores(session, start)("out")
    assert seen == ["3", "3", "64"]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"spark.master": "local[2]", PARTITIONS: "200"}, 8),
        ({"spark.master": "local[16]", PARTITIONS: "200"}, 32),
        ({"spark.master": "local[2]", PARTITIONS: "64"}, 32),
        ({"spark.master": "local[2]", PARTITIONS: "3"}, 3),
        ({"spark.master": "spark://host:7077", PARTITIONS: "200"}, 32),
        ({PARTITIONS: "200"}, 32),
    ],
)
def test_a_local_batch_has_a_few_places_for_each_core(settings: dict[str, str], wanted: int) -> None:
    """Unless the session sets the number of partitions."""
    assert batch_places(SimpleNamespace(get=lambda key, default=None: settings.get(key, default)), 32) == wanted


@pytest.mark.spark
def test_windows_over_detections_work_in_foreach_batch(spark: Any, tmp_path: Path) -> None:
    """The way that the refusal names."""
    write_files(tmp_path / "in", trace(60), size=60)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True)
    counts: list[int] = []

    def windows(rows: Any, _: int) -> None:
        counts.extend(row["count"] for row in rows.groupBy(F.window("time", "1 minute")).count().collect())

    writer = detect(events, PAIR, watermark="0 seconds", buckets=1).writeStream.foreachBatch(windows)
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "200")
    try:
        query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(**NOW).start()
        assert spark.conf.get(PARTITIONS) == "200"
    finally:
        spark.conf.set(PARTITIONS, before)
    query.awaitTermination()
    (store,) = query.recentProgress[0]["stateOperators"]
    assert store["numShufflePartitions"] == 2
    whole = detect(read_events(spark, tmp_path / "in", format="jsonl"), PAIR).count()
    assert sum(counts) == whole > 0


@pytest.mark.spark
def test_a_session_is_checked_on_driver_and_workers(spark: Any, tmp_path: Path) -> None:
    assert check(spark) == []
    here, *there = check(spark, spaces=str(tmp_path))
    assert here == f"driver: there is no space at {tmp_path}"
    assert [re.sub("on .*?:", "on …:", line) for line in there] == [f"worker on …: {tmp_path} is not there"]


@pytest.mark.spark
def test_a_check_tells_what_differs_on_workers(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions, Python, and the checksums of spaces: a line each. Workers do not see what is changed here."""
    space = tmp_path / "tiny"
    write_space(space, [("Fire", "smoke heat"), ("Rain", "water cloud")])
    assert check(spark, spaces=space) == []
    monkeypatch.setattr(trouble, "PACKAGES", ("numba",))
    monkeypatch.setattr(trouble, "_version", lambda _: "0.1")
    monkeypatch.setattr(trouble, "_python", lambda: "2.7")
    monkeypatch.setattr(trouble, "space_digest", lambda _: "other")
    lines = [
        re.fullmatch(r"worker on \S+: (\S+) is \S+, the driver has (\S+)", line) for line in check(spark, spaces=space)
    ]
    assert [line and line.groups() for line in lines] == [(str(space), "other"), ("numba", "0.1"), ("python", "2.7")]


def test_a_check_names_an_old_java_and_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where workers cannot run anything, for which Spark gives many lines."""

    def fail(*_: int) -> None:
        raise PySparkException("Traceback …\nModuleNotFoundError: No module named 'likewise'\n\tat org.apache.spark")

    for java, old in (("1.8", True), ("11", True), ("17", False), ("21", False)):
        system = SimpleNamespace(getProperty=lambda _, java=java: java)
        jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
        session: Any = SimpleNamespace(_jvm=jvm, range=fail)
        monkeypatch.setattr(trouble, "_version", lambda name: "" if name == "numba" else "1")
        assert check(session) == [
            "driver: numba is not installed",
            *([f"driver: Java {java} is too old; Spark needs Java 17 or later"] if old else []),
            "workers: they cannot run this: ModuleNotFoundError: No module named 'likewise'",
        ]
