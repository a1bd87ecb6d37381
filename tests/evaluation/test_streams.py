"""Streams of homes and of Aarhus as events, from small files in the same format."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from likewise.errors import MissingError
from likewise.evaluation.datasets.streams import aarhus_events, home_events

TRAFFIC = """status,avgMeasuredTime,avgSpeed,extID,medianMeasuredTime,TIMESTAMP,vehicleCount,_id,REPORT_ID
OK,125,87,860,125,2014-08-01T08:00:00,3,1,158565
OK,125,12,860,125,2014-08-01T07:55:00,9,2,158565
OK,125,12,860,125,2014-08-01T07:55:00,9,2,158565
"""
PARKING = """vehiclecount,updatetime,_id,totalspaces,garagecode,streamtime
0,2014-05-22 09:09:04.145,1,65,NORREPORT,2014-11-03 16:18:44
39,2014-08-01 07:57:00.5,2,65,NORREPORT,2014-11-03 16:18:44
70,2014-08-01 09:00:00,3,65,NORREPORT,2014-11-03 16:18:44
"""
WEATHER = "hum,tempm,wspdm,TIMESTAMP\n56,18,7.4,2014-08-01T00:00:00\n,18.0,7.4,2014-08-01T00:20:00\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    homes, city = tmp_path / "streams" / "homes", tmp_path / "streams" / "aarhus"
    homes.mkdir(parents=True)
    city.mkdir()
    (homes / "HF_sensorMapA-ids.txt").write_text("8,Fridge,KitchStor\n12,Front door,Outside")
    (homes / "houseA-ss.txt").write_text(
        "25-Feb-2008 09:33:47\t25-Feb-2008 17:21:12\t12\t\n25-Feb-2008 09:36:43\t25-Feb-2008 09:37:04\t8\t\n"
        "25-Feb-2008 09:36:43\t25-Feb-2008 09:37:04\t99\t\n"
    )
    (city / "trafficMetaData.csv").write_text("REPORT_ID,POINT_1_STREET\n158565,Søftenvej\n")
    with tarfile.open(city / "streams.tar.xz", "w:xz") as tar:
        for name, text in (
            ("AarhusTrafficData158565.stream", TRAFFIC),
            ("AarhusParkingData.stream", PARKING),
            ("AarhusWeatherData0.stream", WEATHER),
            ("UserLocationService.stream", "user|1,2"),
        ):
            raw = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
    return tmp_path


def test_activations_have_a_start_and_an_end_and_come_in_order_of_their_end(data: Path) -> None:
    fridge, door = home_events(data, ["A"])
    assert fridge.attributes == {"type": ["activation"], "house": ["A"], "sensor": ["fridge"], "room": ["kitchen"]}
    assert (fridge.end - fridge.start) == 21_000_000
    assert door.attributes["sensor"] == ["front door"]


def test_the_city_is_one_stream_in_order_without_repeated_rows(data: Path) -> None:
    found = list(aarhus_events(data))
    assert [event.id for event in found] == ["w00000", "w00001", "t158565-2", "p2", "t158565-1", "p3"]
    assert found[2].attributes["street"] == ["Søftenvej"]
    assert [event.attributes["occupied"] for event in (found[3], found[5])] == [[60], [100]]
    assert "humidity" not in found[1].attributes


def test_missing_data_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="LIKEWISE_DATA"):
        list(home_events(tmp_path))
