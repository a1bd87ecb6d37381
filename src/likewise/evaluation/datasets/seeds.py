"""Seed events of the thematic data set: what city sensors, homes, offices and vehicles report [000 sec 5.2.1].

The words are those of the paper where it gives them (table 3's capabilities, the example events), real
places of Santander and Galway, and the appliance types of the data folder.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import yaml

from likewise.errors import MissingError

SeedTuples: TypeAlias = tuple[tuple[str, str], ...]
"""A seed event's attributes and values, in order."""

UNITS = {
    "solar radiation": "watt per square metre",
    "particles": "microgram per cubic metre",
    "speed": "kilometre per hour",
    "wind direction": "degree",
    "wind speed": "metre per second",
    "temperature": "degree celsius",
    "water flow": "litre per second",
    "atmospheric pressure": "kilopascal",
    "noise": "decibel",
    "ozone": "parts per billion",
    "rainfall": "millimetre",
    "parking": "none",
    "radiation par": "micromole",
    "co": "milligram per cubic metre",
    "ground temperature": "degree celsius",
    "light": "lux",
    "no2": "microgram per cubic metre",
    "soil moisture tension": "centibar",
    "relative humidity": "percent",
    "energy consumption": "kilowatt hour",
    "cpu usage": "percent",
    "memory usage": "megabyte",
}
"""Sensor capabilities [000 table 3] and the unit in which each is measured."""

MOST_TUPLES = 10
"""The most tuples of an event in the paper [000 sec 5.2.2]."""

_STREET = (*UNITS, *("parking", "noise", "ozone", "solar radiation", "water flow") * 2)
_INDOOR = ("energy consumption", "energy consumption", "noise", "noise", "temperature", "light", "relative humidity")
_COMPUTING = ("cpu usage", "memory usage", "energy consumption")
_MOBILE = ("noise", "ozone", "speed", "noise", "ozone", "temperature", "co", "no2", "particles", "relative humidity")
_CITIES = {"Galway": ("Connacht", "Ireland"), "Santander": ("Cantabria", "Spain")}
_SUBURBS = {
    "Galway": ("Salthill", "Claddagh", "Renmore", "Newcastle", "Knocknacarra"),
    "Santander": ("El Sardinero", "Cazona", "Cueto", "Puertochico", "La Albericia"),
}
_ROADS = {
    "Galway": ("Shop Street", "Quay Street", "Eyre Square", "Headford Road", "Dyke Road"),
    "Santander": ("Calle Burgos", "Calle Castilla", "Paseo Pereda", "Calle Vargas", "Avenida Castros"),
}
_PLACES = (
    "park", "beach", "harbour", "river", "bus station", "airport", "bridge", "tunnel",
    "hospital", "university", "library", "school", "pedestrian zone", "swimming pool",
)  # fmt: skip
_BUILDINGS = ("university", "hospital", "library", "school", "hotel", "computer centre", "public building")
_OFFICE_DEVICES = ("laptop", "computer", "printer", "telephone", "screen", "scanner", "fax", "television")
_ROOMS = ("kitchen", "bedroom", "lounge", "utility room", "garage", "basement", "bathroom")
_FLOORS = ("ground floor", "first floor", "second floor", "third floor")
_VEHICLES = {
    "bus": ("diesel fuel", "natural gas"),
    "car": ("petrol", "diesel fuel", "electrical energy"),
    "lorry": ("diesel fuel",),
    "bicycle": ("none",),
    "train": ("electrical energy", "diesel fuel"),
    "ferryboat": ("diesel fuel",),
    "taxi": ("petrol", "natural gas"),
    "ambulance": ("diesel fuel", "petrol"),
}
_LOADS = {
    "lorry": ("waste", "petroleum", "coal", "drinking water"),
    "train": ("coal", "petroleum", "none"),
    "ferryboat": ("petroleum", "coal"),
}
_CARRIERS = {
    "Galway": ("Bus Eireann", "City Direct", "Irish Rail"),
    "Santander": ("TUS Santander", "Alsa", "Renfe"),
}


def appliances(folder: Path) -> tuple[str, ...]:
    """Names of the appliance types that a home has, from the data folder's YAML files."""
    if not folder.is_dir():
        raise MissingError(f"no appliances at {folder}", hint="set LIKEWISE_DATA to the folder of the data sets")
    names: set[str] = set()
    for name in ("cold", "cooking", "wet", "lighting", "misc", "heating", "consumer_electronics"):
        types = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
        names.update(key for key, raw in types.items() if raw.get("parent") not in (None, "appliance"))
    return tuple(sorted(name.lower() for name in names))


def seed_events(rng: random.Random, *, count: int, devices: Sequence[str]) -> list[SeedTuples]:
    """`count` different seed events, from all kinds of platforms in turn.

    >>> seeds = seed_events(random.Random(1), count=4, devices=("kettle",))
    >>> [dict(seed).get("country") in ("Ireland", "Spain") for seed in seeds]
    [True, True, True, True]
    """
    seeds: dict[SeedTuples, None] = {}
    kinds: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
        lambda: _street(rng),
        lambda: _office(rng),
        lambda: _vehicle(rng),
        lambda: _home(rng, devices),
    )
    turn = 0
    while len(seeds) < count:
        seeds[tuple(kinds[turn % len(kinds)]())[:MOST_TUPLES]] = None
        turn += 1
    return list(seeds)


def _kind(rng: random.Random, capability: str) -> Iterator[tuple[str, str]]:
    if capability == "parking":
        yield "type", f"parking {rng.choice(('occupied', 'vacant'))} event"
    else:
        yield "type", f"{rng.choice(('increased', 'decreased'))} {capability} event"
    if rng.random() < 0.4:
        yield "measurement unit", UNITS[capability]


def _where(rng: random.Random, city: str) -> Iterator[tuple[str, str]]:
    region, country = _CITIES[city]
    yield "city", city
    if rng.random() < 0.3:
        yield "region", region
    yield "country", country
    if rng.random() < 0.6:
        yield "continent", "Europe"


def _street(rng: random.Random) -> Iterator[tuple[str, str]]:
    city = rng.choice(list(_CITIES))
    yield from _kind(rng, rng.choice(_STREET))
    if rng.random() < 0.8:
        yield "zone", rng.choice(_PLACES)
    if rng.random() < 0.6:
        yield "road", rng.choice(_ROADS[city])
    else:
        yield "suburb", rng.choice(_SUBURBS[city])
    yield from _where(rng, city)


def _office(rng: random.Random) -> Iterator[tuple[str, str]]:
    device = rng.choice(_OFFICE_DEVICES)
    computing = device in ("laptop", "computer")
    yield from _kind(rng, rng.choice(_COMPUTING if computing else _INDOOR))
    room = 100 * rng.randint(1, 3) + rng.randint(10, 14)
    yield "device", device
    if rng.random() < 0.3:
        yield "desk", f"desk {room}{rng.choice('abc')}"
    yield "room", f"room {room}"
    if rng.random() < 0.4:
        yield "floor", rng.choice(_FLOORS)
    yield "zone", rng.choice(_BUILDINGS)
    yield from _where(rng, rng.choice(list(_CITIES)))


def _vehicle(rng: random.Random) -> Iterator[tuple[str, str]]:
    city = rng.choice(list(_CITIES))
    vehicle = rng.choice(list(_VEHICLES))
    yield from _kind(rng, rng.choice(_MOBILE))
    yield "vehicle", vehicle
    if (fuel := rng.choice(_VEHICLES[vehicle])) != "none":
        yield "fuel", fuel
    if (load := rng.choice(_LOADS.get(vehicle, ("none",)))) != "none":
        yield "load", load
    if rng.random() < 0.5:
        yield "carrier", rng.choice(_CARRIERS[city])
    if rng.random() < 0.6:
        yield "road", rng.choice(_ROADS[city])
    yield from _where(rng, city)


def _home(rng: random.Random, devices: Sequence[str]) -> Iterator[tuple[str, str]]:
    city = rng.choice(list(_CITIES))
    yield from _kind(rng, rng.choice((*_INDOOR, "energy consumption", "water flow")))
    yield "device", rng.choice(devices)
    yield "room", rng.choice(_ROOMS)
    if rng.random() < 0.5:
        yield "housing", rng.choice(("house", "block of flats"))
    if rng.random() < 0.5:
        yield "suburb", rng.choice(_SUBURBS[city])
    yield from _where(rng, city)
