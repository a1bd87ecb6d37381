"""A day in a city as three makers of sensors report it, each in words of its own, one of them in German.

It feeds the demo: `likewise serve --demo`, or one click on a page without data. Recorded streams are mixed in where
there are any.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog

from likewise.broker.auth import Access
from likewise.broker.errors import ConflictError
from likewise.broker.service import Broker
from likewise.errors import LikewiseError
from likewise.events import Event, Value

Recordings: TypeAlias = Callable[[], Iterator[Event]]
"""Opens recorded events, in order of time."""

INTERESTS: Final = """\
free-parking: {type~ = parking~, free spaces~ > 0}
slow-traffic: {type~ = traffic~, speed~ < 20}
bad-air: {type~ = air quality~, fine dust~ > 50}
hot-day: {type~ = temperature~, degrees~ > 30}
dark-street: {type~ = street light failure~}
break-in: {type~ = window broken~} as window then {type~ = presence~} as person within 2 minutes consume unique
no-bus: not {type~ = bus arrival~} for 1 minute
"""
"""What a citizen asks for, in a fourth vocabulary."""

_PAUSE: Final = 0.25
_SHARE: Final = 3
"""Every third event is recorded, where there are recordings."""


@dataclass(frozen=True, slots=True)
class CityEvent:
    """One kind of thing that happens: how often, its type and its reading in the words of each maker."""

    weight: int
    types: tuple[str, str, str]
    readings: tuple[str, str, str] | None = None
    low: float = 0
    high: float = 0
    whole: bool = True


_TYPE: Final = ("type", "eventType", "Typ")
_PLACE: Final = ("place", "site", "Ort")
_PLACES: Final = (
    ("harbour", "harbourFront", "Hafen"),
    ("old town", "oldTown", "Altstadt"),
    ("central station", "centralStation", "Hauptbahnhof"),
    ("university", "campus", "Universität"),
    ("town hall", "cityHall", "Rathaus"),
)
_ORDINARY: Final = (
    CityEvent(24, ("parking", "carParking", "Parkhaus"), ("free spaces", "freeSpaces", "freie Plätze"), 0, 60),
    CityEvent(28, ("traffic", "roadTraffic", "Verkehr"), ("speed", "averageSpeed", "Geschwindigkeit"), 8, 60),
    CityEvent(14, ("air quality", "airQuality", "Luftqualität"), ("fine dust", "dustConc", "Feinstaub"), 5, 60),
    CityEvent(
        14, ("temperature", "airTemperature", "Lufttemperatur"), ("degrees", "degreesCelsius", "Grad"), 14, 33, False
    ),
    CityEvent(8, ("bus arrival", "busArrived", "Ankunft des Busses"), ("line", "route", "Linie"), 1, 12),
    CityEvent(1, ("presence", "presenceDetected", "Anwesenheit")),
    CityEvent(2, ("street light failure", "streetLampFault", "Ausfall der Straßenbeleuchtung")),
    CityEvent(3, ("waste container full", "binFull", "Mülltonne voll")),
)
_WINDOW: Final = CityEvent(0, ("window broken", "brokenWindow", "Fensterbruch"))
_PRESENCE: Final = _ORDINARY[5]


def city_day(seed: int | None = None) -> Iterator[Event]:
    """Events without end and without times, as they would arrive."""
    chance, number, someone = random.Random(seed), 0, None
    while True:
        number += 1
        kind = chance.choices(_ORDINARY, weights=[one.weight for one in _ORDINARY])[0]
        yield _event(chance, kind)
        if number % 60 == 15:  # a break-in now and then, and some time later somebody inside
            maker, place = chance.randrange(3), chance.randrange(len(_PLACES))
            yield _event(chance, _WINDOW, maker=maker, place=place)
            someone = _event(chance, _PRESENCE, maker=maker, place=place)
        elif number % 60 == 50 and someone is not None:
            yield someone


def _event(chance: random.Random, kind: CityEvent, *, maker: int | None = None, place: int | None = None) -> Event:
    who = chance.randrange(3) if maker is None else maker
    where = chance.randrange(len(_PLACES)) if place is None else place
    tuples: list[tuple[str, Value]] = [(_TYPE[who], kind.types[who]), (_PLACE[who], _PLACES[where][who])]
    if kind.readings is not None:
        value = chance.uniform(kind.low, kind.high)
        tuples.append((kind.readings[who], round(value) if kind.whole else round(value, 1)))
    return Event("", tuple(tuples), ())


class CityFeed:
    """Publishes the city's day into a namespace until it is stopped."""

    def __init__(self, broker: Broker, *, recordings: Recordings | None = None, pause: float = _PAUSE) -> None:
        self._broker, self._recordings, self._pause = broker, recordings, pause
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def is_running(self, namespace: str) -> bool:
        """Whether the demo plays there."""
        return namespace in self._tasks and not self._tasks[namespace].done()

    def start(self, namespace: str) -> None:
        """Begin to play, if it does not play already."""
        if not self.is_running(namespace):
            self._tasks[namespace] = asyncio.create_task(self._play(namespace))

    def stop(self, namespace: str | None = None) -> None:
        """End it in one namespace, or in all."""
        for name, task in self._tasks.items():
            if namespace in (None, name):
                task.cancel()

    async def _play(self, namespace: str) -> None:
        access = Access("demo", namespace, frozenset({"publish", "subscribe"}))
        logs = structlog.get_logger("likewise.page")
        with contextlib.suppress(ConflictError):
            await self._broker.create(access, INTERESTS, tags=["demo"])
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        for number, made in enumerate(city_day()):
            recorded = next(opening.result(), None) if opening.done() and number % _SHARE == 0 else None
            event = made if recorded is None else recorded
            try:
                await self._broker.publish(access, [Event(f"city-{self._broker.log.position + 1}", event.tuples)])
            except LikewiseError as error:
                logs.warning("the demo could not publish", reason=error.message)
            await asyncio.sleep(self._pause)

    def _open(self) -> Iterator[Event]:
        return iter(()) if self._recordings is None else self._recordings()
