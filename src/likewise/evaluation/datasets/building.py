"""A simulated building: three makers of sensors who name the same things in their own words.

It needs no data file, so the demo runs anywhere. The truth of every event is known, so results can be checked. It shows
how Likewise works, not how good it is: `motion detected`, which evidence does not match with presence, was left out.
`likewise evaluate feed` and `matching` measure quality.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from likewise.events import Event, Instant, Value

SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
MORNING: Final[Instant] = 1_794_700_800 * SECOND  # 2026-11-15, midnight UTC

SUBSCRIPTIONS: Final = """\
# Single events, in the subscriber's words.
laptops: {energy, computers} {type~ = energy consumption~, device~ = laptop~}
broken-window: {security} {type~ = window broken~}
cold: {weather, building} {type~ = temperature~, degrees~ < 12}
free-parking: {traffic, vehicles} {type~ = parking~, empty parking slot~ > 0}

# Situations: several events in time, joined by meaning.
intrusion: {type~ = window broken~} as w then {type~ = presence~} as p within 10 minutes
    where w.room ~ p.room consume unique
silent-garage: not {type~ = parking~} for 30 minutes
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event in the words of each maker: attribute names and the event's type."""

    name: str
    types: tuple[str, str, str]
    weight: int


KINDS: Final = (
    Kind("energy", ("energy consumption", "power consumption", "energyUsage"), 30),
    Kind("temperature", ("temperature", "thermometer reading", "room_temperature"), 30),
    Kind("presence", ("presence", "human presence", "person_present"), 20),
    Kind("parking", ("parking", "car park", "parking_garage"), 12),
    Kind("door", ("door opened", "entrance opened", "door_open"), 8),
)
WINDOW: Final = Kind("window", ("window broken", "window glass shattered", "broken_window"), 0)

_TYPE: Final = ("type", "type of event", "eventType")
_DEVICES: Final = (
    ("laptop", "notebook computer", "laptop_computer"),
    ("lamp", "light bulb", "lightSource"),
    ("refrigerator", "fridge", "cooling_device"),
    ("coffee maker", "coffee machine", "espresso_maker"),
)
_DEVICE: Final = ("device", "deviceType", "electrical_device")
_ROOMS: Final = (
    ("kitchen", "kitchen", "kitchenette"),
    ("laboratory", "lab", "research_laboratory"),
    ("meeting room", "conference room", "MeetingRoom"),
    ("hallway", "corridor", "hallway"),
    ("library", "library", "reading_room"),
)
_THEME: Final = {
    "energy": ("energy", "appliances"),
    "temperature": ("weather", "building"),
    "presence": ("security", "people"),
    "window": ("security", "building"),
    "parking": ("traffic", "vehicles"),
    "door": ("building",),
}


@dataclass(frozen=True, slots=True)
class Happening:
    """An event with its truth: its kind, device and room in a common vocabulary."""

    event: Event
    kind: str
    device: str | None
    room: str | None
    number: float | None


def simulate(count: int, *, seed: int = 7, break_ins: int = 10) -> list[Happening]:
    """A day of `count` events in order of time, `break_ins` of them a window followed by presence in its room."""
    chance = random.Random(seed)
    ordinary = max(0, count - 2 * break_ins)
    happenings = [_ordinary(chance, number) for number in range(ordinary)]
    for number in range(break_ins):
        happenings += _break_in(chance, ordinary + 2 * number)
    return sorted(happenings, key=lambda happening: (happening.event.span, happening.event.id))


def relevant(subscription: str, happenings: list[Happening]) -> set[str]:
    """The ids of the events that are relevant to a subscription of `SUBSCRIPTIONS`."""
    return {happening.event.id for happening in happenings if _is_relevant(subscription, happening)}


def _is_relevant(subscription: str, happening: Happening) -> bool:
    number = happening.number if happening.number is not None else 0.0
    return {
        "laptops": happening.kind == "energy" and happening.device == "laptop",
        "broken-window": happening.kind == "window",
        "cold": happening.kind == "temperature" and number < 12,
        "free-parking": happening.kind == "parking" and number > 0,
    }[subscription]


def _ordinary(chance: random.Random, number: int) -> Happening:
    kind = chance.choices(KINDS, weights=[kind.weight for kind in KINDS])[0]
    return _happening(chance, number, kind=kind, at=MORNING + chance.randrange(DAY), room=chance.randrange(len(_ROOMS)))


def _break_in(chance: random.Random, number: int) -> Iterator[Happening]:
    presence = next(kind for kind in KINDS if kind.name == "presence")
    at, room = MORNING + chance.randrange(DAY - 600 * SECOND), chance.randrange(len(_ROOMS))
    yield _happening(chance, number, kind=WINDOW, at=at, room=room)
    yield _happening(chance, number + 1, kind=presence, at=at + chance.randrange(SECOND, 600 * SECOND), room=room)


def _happening(chance: random.Random, number: int, *, kind: Kind, at: Instant, room: int) -> Happening:
    maker = chance.randrange(3)
    device = chance.randrange(len(_DEVICES)) if kind.name == "energy" else None
    reading = _reading(chance, kind.name, maker)
    tuples: list[tuple[str, Value]] = [(_TYPE[maker], kind.types[maker])]
    if device is not None:
        tuples.append((_DEVICE[maker], _DEVICES[device][maker]))
    if kind.name != "parking":
        tuples.append(("room", _ROOMS[room][maker]))
    if reading is not None:
        tuples.append(reading)
    event = Event(f"b{number}", tuple(tuples), _THEME[kind.name], at, at)
    where = None if kind.name == "parking" else _ROOMS[room][0]
    device_kind = None if device is None else _DEVICES[device][0]
    return Happening(event, kind.name, device_kind, where, None if reading is None else float(reading[1]))


def _reading(chance: random.Random, kind: str, maker: int) -> tuple[str, int | float] | None:
    if kind == "energy":
        return ("kilowatt hours", "consumed energy", "kwh")[maker], round(chance.uniform(0.1, 4.0), 2)
    if kind == "temperature":
        return ("degrees", "degrees Celsius", "temperature_degrees")[maker], round(chance.gauss(18.0, 4.0), 1)
    if kind == "parking":
        return ("empty parking slots", "parking vacancy", "free_parking_spaces")[maker], chance.randrange(0, 6)
    return None
