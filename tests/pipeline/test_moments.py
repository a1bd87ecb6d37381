"""Times in cells are read as Spark's cast reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pipeline.events.timestamps import from_local, read_moment, read_moments, zone_named

SHAPES = """
2020|2020-|2020-1|2020-01-01 |2020-1-1T|2020-01-01T10|2020-01-01T10:|2020-01-01T10:3|2020-01-01 10:30Z
2020-01-01 10:30:00 Z|2020-01-01 10:30:00.|2020-01-01 10:30:00.1234567+01|2020-01-01 10:30:00+1:3
2020-01-01 10:30:00+0130|2020-01-01 10:30:00+013|2020-01-01 10:30:00+01:30:15|2020-01-01 10:30:00UTC+1
2020-01-01 10:30:00 Europe/Dublin|2020-01-01 10:30:00 PST|T|2020-01-01 10:30:00utc|+2020-01-01|-2020-01-01|+10:30
12020-01-01|1234567-01-01|294247-01-10|294248-01-10|0000-01-01|2020-02-30|2020-13-01|2020-01-01T24:00:00
2020-01-01T23:59:60|20200101|2020-01-01T10:30:00+18:00|2020-01-01T10:30:00+18:01|2020-01-01  10:30:00
2020-01-01T10:30:00GMT0|2020-01-01T10:30:00+|2020-01-01T10:30:00.5.5|1900-01-01T00:00:00 Europe/Dublin
-0001-01-01T00:00:00 Europe/Dublin|12000-07-01T00:00:00 Europe/Dublin|2020-03-29T01:30:00 Europe/Dublin|soon
1900-02-29T00:00:00Z|2020-01-01 10:30:00 posix/UTC|2020-01-01T10:30:00+010203|2020-01-01T10:30:00+01:02:3
2020-01-01T10:30:00+01:60|2000-02-29T00:00:00Z
"""
CELLS = [each for line in SHAPES.strip().splitlines() for each in line.split("|")]
ZONES = ["Europe/Dublin", "+05:30", "Africa/Monrovia"]


@pytest.mark.spark
def test_every_shape_is_read_as_spark_reads_it(spark: Any) -> None:
    pytest.importorskip("pyspark")
    table = spark.createDataFrame(pa.table({"cell": CELLS})).coalesce(1)
    spark_reads = table.selectExpr("unix_micros(try_cast(cell as timestamp)) at").toArrow()["at"].to_pylist()
    mine = read_moments(pa.array(CELLS), UTC).cast(pa.int64()).to_pylist()
    assert dict(zip(CELLS, mine, strict=True)) == dict(zip(CELLS, spark_reads, strict=True))


def test_nine_digits_or_more_are_seconds_since_1970() -> None:
    cells = ["1600000000", "123456789.1234565", "16000000000", "20200101", "1600000000000", "1600000000."]
    assert [read_moment(each, UTC) for each in cells] == [
        1_600_000_000_000_000,
        123_456_789_123_457,
        16_000_000_000_000_000,
        None,
        None,
        None,
    ]


def test_a_time_of_day_is_one_of_today() -> None:
    midnight = read_moment(f"{datetime.now(UTC):%Y-%m-%d}", UTC)
    assert midnight is not None
    assert read_moment("T1:00", UTC) in (midnight + 3_600_000_000, midnight + 90_000_000_000)


@given(st.datetimes(datetime(1, 1, 2), datetime(9998, 12, 31)), st.sampled_from(ZONES))
def test_clocks_of_zones_are_those_of_the_library(moment: datetime, name: str) -> None:
    """The common shape, in the zone of the session, and with an offset of its own."""
    zone = zone_named(name)
    assert zone is not None
    text = moment.isoformat(" ", "microseconds")
    cells = pa.array([text, f"{text.replace(' ', 'T')}-01:30", None])
    local, offset, nothing = read_moments(cells, zone).cast(pa.int64()).to_pylist()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    plain = moment.replace(tzinfo=UTC) - epoch
    own = moment.replace(tzinfo=zone).utcoffset()
    assert own is not None
    assert local == (plain - own) // datetime.resolution
    assert offset == plain // datetime.resolution + 90 * 60_000_000
    assert nothing is None


def test_many_times_of_a_zone_share_the_work() -> None:
    zone = zone_named("Europe/Dublin")
    assert zone is not None
    cells = pa.array([f"2020-03-29 0{hour}:{minute:02}:30" for hour in range(4) for minute in range(60)])
    local = read_moments(cells, UTC).cast(pa.int64()).to_numpy()
    assert from_local(local, zone).tolist() == read_moments(cells, zone).cast(pa.int64()).to_pylist()
    one_by_one = [read_moment(each, zone) for each in cells.to_pylist()]
    assert from_local(local, zone).tolist() == one_by_one
