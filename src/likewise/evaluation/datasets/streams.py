"""Real streams as events: sensor activations of two homes, and the traffic and car parks of Aarhus."""

from __future__ import annotations

import contextlib
import csv
import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from likewise.errors import MissingError
from likewise.events import Event, to_instant

_ROOMS: Final = {
    "KitchHeat": "kitchen",
    "KitchStor": "kitchen",
    "Kitchen": "kitchen",
    "Toilet": "toilet",
    "BathroomDoor": "bathroom",
    "Bathroom": "bathroom",
    "Outside": "hall",
    "SleepDoor": "bedroom",
    "Sleep": "bedroom",
}
# House B labels half of its sensors in Dutch; these are their English names.
_SENSORS: Final = {
    "press bed  rechts": "bed right",
    "press bed links": "bed left",
    "kwik cutlary drawer": "cutlery drawer",
    "kwik stove lid": "stove lid",
    "pir slaapkamer": "motion bedroom",
    "kwik dresser": "dresser",
    "pir badkamer": "motion bathroom",
    "gootsteen float": "sink",
    "magnetron": "microwave",
    "pir keuken": "motion kitchen",
    "frontdoor": "front door",
}
_HOME_TIME: Final = "%d-%b-%Y %H:%M:%S"


def stream_events(name: str, data: Path) -> Iterator[Event]:
    """The events of the stream with this name, in order of time."""
    return STREAMS[name](data)


def home_events(data: Path, houses: Iterable[str] = ("A", "B")) -> Iterator[Event]:
    """Sensor activations with start and end, house by house (recorded in different years)."""
    for house in houses:
        folder = data / "streams" / "homes"
        names = _sensor_names(_existing(folder / f"HF_sensorMap{house}-ids.txt"))
        lines = _existing(folder / f"house{house}-ss.txt").read_text(encoding="utf-8").splitlines()
        activations = [_activation(house, names, line, k) for k, line in enumerate(lines) if line.strip()]
        yield from sorted((event for event in activations if event is not None), key=_order)


def _sensor_names(path: Path) -> dict[str, tuple[str, str]]:
    out = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        number, name, place = line.split(",")
        plain = name.strip().lower()
        out[number] = (_SENSORS.get(plain, plain), _ROOMS.get(place.strip(), place.strip().lower()))
    return out


def _activation(house: str, names: dict[str, tuple[str, str]], line: str, k: int) -> Event | None:
    start, end, number, *_ = line.split("\t")
    if number.strip() not in names:
        return None
    sensor, room = names[number.strip()]
    first, last = (to_instant(datetime.strptime(text, _HOME_TIME).replace(tzinfo=UTC)) for text in (start, end))
    tuples = (("type", "activation"), ("house", house), ("sensor", sensor), ("room", room))
    return Event(f"{house}{k:05}", tuples, (), first, max(first, last))


def aarhus_events(data: Path, *, day: str = "") -> Iterator[Event]:
    """Traffic, car parks and weather of August and September 2014, or of one day such as `2014-08-06`, by time."""
    archive = _existing(data / "streams" / "aarhus" / "streams.tar.xz")
    streets = _streets(_existing(data / "streams" / "aarhus" / "trafficMetaData.csv"))
    # Some rows are duplicates.
    events: dict[str, Event] = {}
    with tarfile.open(archive, "r:xz") as tar:
        for entry in tar:
            stream = tar.extractfile(entry)
            if stream is not None:
                rows = csv.DictReader(io.TextIOWrapper(stream, "utf-8"))
                chosen = (row for row in rows if (row.get("TIMESTAMP") or row["updatetime"]).startswith(day))
                events.update((event.id, event) for event in _aarhus_stream(entry.name, chosen, streets))
    yield from sorted(events.values(), key=_order)


def _streets(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8") as file:
        return {row["REPORT_ID"]: row["POINT_1_STREET"] for row in csv.DictReader(file)}


def _aarhus_stream(name: str, rows: Iterable[dict[str, str]], streets: dict[str, str]) -> Iterator[Event]:
    if name.startswith("AarhusTraffic"):
        return (_traffic(row, streets) for row in rows)
    if name == "AarhusParkingData.stream":
        # The streams of single garages repeat this one.
        return (event for row in rows if (event := _parking(row)) is not None)
    if name.startswith("AarhusWeather"):
        return (_weather(row, k) for k, row in enumerate(rows))
    return iter(())


def _traffic(row: dict[str, str], streets: dict[str, str]) -> Event:
    when = _instant(row["TIMESTAMP"])
    tuples = (
        ("type", "traffic"),
        ("road", row["REPORT_ID"]),
        ("street", streets.get(row["REPORT_ID"], "unknown")),
        ("speed", int(row["avgSpeed"])),
        ("vehicles", int(row["vehicleCount"])),
    )
    return Event(f"t{row['REPORT_ID']}-{row['_id']}", tuples, (), when, when)


def _parking(row: dict[str, str]) -> Event | None:
    when = _instant(row["updatetime"])
    if not _FIRST <= when < _LAST or int(row["totalspaces"]) <= 0:
        return None
    occupied = min(100, round(100 * int(row["vehiclecount"]) / int(row["totalspaces"])))
    tuples = (("type", "parking"), ("garage", row["garagecode"].lower()), ("occupied", occupied))
    return Event(f"p{row['_id']}", tuples, (), when, when)


def _weather(row: dict[str, str], k: int) -> Event:
    when = _instant(row["TIMESTAMP"])
    readings = (("humidity", "hum"), ("temperature", "tempm"), ("wind", "wspdm"))
    values = tuple((name, float(row[column])) for name, column in readings if row[column])
    return Event(f"w{k:05}", (("type", "weather"), *values), (), when, when)


def _instant(text: str) -> int:
    return to_instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


_FIRST, _LAST = _instant("2014-08-01T00:00:00"), _instant("2014-10-01T00:00:00")


def _order(event: Event) -> tuple[int, int, str]:
    start, end = event.span
    return end, start, event.id


def city_recordings(data: Path) -> Iterator[Event]:
    """One day of Aarhus and of two homes, from the morning on, for a demo; missing streams are left out."""
    day, morning, recorded = 86_400_000_000, 7 * 3_600_000_000, list[Event]()
    for events in (aarhus_events(data, day="2014-08-06"), home_events(data)):
        with contextlib.suppress(MissingError):
            recorded += events
    return iter(sorted(recorded, key=lambda event: ((event.span[0] - morning) % day, event.id)))


def _existing(path: Path) -> Path:
    if not path.exists():
        raise MissingError(f"no stream at {path}", hint="set LIKEWISE_DATA to the folder of the data sets")
    return path


STREAMS: Final[dict[str, Callable[[Path], Iterator[Event]]]] = {"homes": home_events, "aarhus": aarhus_events}
