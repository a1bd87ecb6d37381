"""The demo feed: city events from three sensor makers, each with its own vocabulary, one of them German.

`likewise serve --demo` plays it, and so does a button on a page without data. Recorded streams are mixed in if
available.
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
"""Opens recorded events, ordered by time."""

INTERESTS: Final = """\
free-parking: {type~ = parking~, free spaces~ > 0}
slow-traffic: {type~ = traffic~, speed~ < 20}
bad-air: {type~ = air quality~, fine dust~ > 50}
hot-day: {type~ = temperature~, degrees~ > 30}
dark-street: {type~ = street light failure~}
break-in: {type~ = window broken~} as window then {type~ = presence~} as person within 2 minutes consume unique
no-bus: not {type~ = bus arrival~} for 1 minute
"""
"""The subscriptions of the demo, in a fourth vocabulary."""

_PAUSE: Final = 0.25
"""Seconds between events."""
_SHARE: Final = 3
"""With recordings, every third event is a recorded one."""


@dataclass(frozen=True, slots=True)
class CityEventKind:
    """A kind of event: its relative frequency, and its type and reading in the vocabulary of each maker."""

    weight: int
    types: tuple[str, str, str]
    readings: tuple[str, str, str] | None = None
    low: float = 0
    high: float = 0
    integer: bool = True


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
    CityEventKind(24, ("parking", "carParking", "Parkhaus"), ("free spaces", "freeSpaces", "freie Plätze"), 0, 60),
    CityEventKind(28, ("traffic", "roadTraffic", "Verkehr"), ("speed", "averageSpeed", "Geschwindigkeit"), 8, 60),
    CityEventKind(14, ("air quality", "airQuality", "Luftqualität"), ("fine dust", "dustConc", "Feinstaub"), 5, 60),
    CityEventKind(
        14, ("temperature", "airTemperature", "Lufttemperatur"), ("degrees", "degreesCelsius", "Grad"), 14, 33, False
    ),
    CityEventKind(8, ("bus arrival", "busArrived", "Ankunft des Busses"), ("line", "route", "Linie"), 1, 12),
    CityEventKind(1, ("presence", "presenceDetected", "Anwesenheit")),
    CityEventKind(2, ("street light failure", "streetLampFault", "Ausfall der Straßenbeleuchtung")),
    CityEventKind(3, ("waste container full", "binFull", "Mülltonne voll")),
)
_WINDOW: Final = CityEventKind(0, ("window broken", "brokenWindow", "Fensterbruch"))
_PRESENCE: Final = _ORDINARY[5]


def city_day(seed: int | None = None) -> Iterator[Event]:
    """Yield endless random events, without times."""
    chance, number, person = random.Random(seed), 0, None
    while True:
        number += 1
        kind = chance.choices(_ORDINARY, weights=[kind.weight for kind in _ORDINARY])[0]
        yield _event(chance, kind)
        if number % 60 == 15:  # a break-in from time to time, and later a person inside
            maker, place = chance.randrange(3), chance.randrange(len(_PLACES))
            yield _event(chance, _WINDOW, maker=maker, place=place)
            person = _event(chance, _PRESENCE, maker=maker, place=place)
        elif number % 60 == 50 and person is not None:
            yield person


def _event(chance: random.Random, kind: CityEventKind, *, maker: int | None = None, place: int | None = None) -> Event:
    maker = chance.randrange(3) if maker is None else maker
    place = chance.randrange(len(_PLACES)) if place is None else place
    tuples: list[tuple[str, Value]] = [(_TYPE[maker], kind.types[maker]), (_PLACE[maker], _PLACES[place][maker])]
    if kind.readings is not None:
        value = chance.uniform(kind.low, kind.high)
        tuples.append((kind.readings[maker], round(value) if kind.integer else round(value, 1)))
    return Event("", tuple(tuples), ())


class CityFeed:
    """Publishes the demo feed to namespaces until it is stopped."""

    def __init__(self, broker: Broker, *, recordings: Recordings | None = None) -> None:
        self._broker, self._recordings = broker, recordings
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def is_running(self, namespace: str) -> bool:
        """Whether the demo feed is running in a namespace."""
        return namespace in self._tasks and not self._tasks[namespace].done()

    def start(self, namespace: str) -> None:
        """Start the demo feed, unless it is already running."""
        if not self.is_running(namespace):
            self._tasks[namespace] = asyncio.create_task(self._play(namespace))

    def stop(self, namespace: str | None = None) -> None:
        """Stop the demo feed in one namespace, or in all."""
        for name, task in self._tasks.items():
            if namespace in (None, name):
                task.cancel()

    async def _play(self, namespace: str) -> None:
        access = Access("demo", namespace, frozenset({"publish", "subscribe"}))
        logs = structlog.get_logger("likewise.page")
        with contextlib.suppress(ConflictError):
            await self._broker.create(access, INTERESTS, tags=["demo"])
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        for number, generated in enumerate(city_day()):
            recorded = next(opening.result(), None) if opening.done() and number % _SHARE == 0 else None
            event = generated if recorded is None else recorded
            try:
                await self._broker.publish(access, [Event(f"city-{self._broker.log.position + 1}", event.tuples)])
            except LikewiseError as error:
                logs.warning("the demo could not publish", reason=error.message)
            await asyncio.sleep(_PAUSE)

    def _open(self) -> Iterator[Event]:
        return iter(()) if self._recordings is None else self._recordings()
