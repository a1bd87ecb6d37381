"""Hits: what composing knows of matching. A hit is an event that answers a profile, and how surely.

Whoever matches (a matcher in this process, the first stage of a Spark job, another node) says which event answers
which of the composer's profiles; the composer asks nothing of words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from likewise.composite.general.instance import Weighted
from likewise.composite.state import dump_event, dump_mapped, load_event, load_mapped
from likewise.errors import BuildError, InputError
from likewise.events import Event
from likewise.language import Options, Profile

MappedValues: TypeAlias = dict[str, tuple[Weighted, ...]]
"""Values by a profile's own attribute names, each with its weight, where the event uses other names."""


class Hit(NamedTuple):
    """An event that answers the composer's profile of a number.

    `mapped` has values by the profile's own attribute names, each with its weight, where the event uses other names.
    """

    event: Event
    profile: int
    probability: float = 1.0
    mapped: MappedValues | None = None


class Wanted(NamedTuple):
    """A profile that a composer wants to hear of, and how it is to be matched."""

    profile: Profile
    options: Options


class HitBook:
    """Stands where a matcher would: it only numbers the profiles, each once, in the order in which they are added."""

    def __init__(self) -> None:
        self.wanted: dict[int, Wanted] = {}
        self._numbers: dict[Wanted, int] = {}
        self._users: dict[int, int] = {}
        self._next = 0

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:  # noqa: ARG002 - not needed by this kind
        """The number of a profile."""
        wanted = Wanted(profile, options or Options())
        number = self._numbers.get(wanted)
        if number is None:
            number = self._numbers[wanted] = self._next
            self.wanted[number], self._users[number] = wanted, 0
            self._next += 1
        self._users[number] += 1
        return number

    def remove(self, handle: int) -> None:
        """One pattern less wants it."""
        self._users[handle] -= 1
        if not self._users[handle]:
            del self._users[handle]
            del self._numbers[self.wanted.pop(handle)]

    def resume(self, wanted: Iterable[tuple[int, Wanted]]) -> None:
        """Give profiles that are about to be added again the numbers that they had."""
        for number, profile in wanted:
            self._numbers[profile] = number
            self.wanted[number], self._users[number] = profile, 0
            self._next = max(self._next, number + 1)

    def activate(self, handle: int) -> None:
        """All are active: whoever matches does not know who waits."""

    def deactivate(self, handle: int) -> None:
        """See `activate`."""

    def match(self, event: Event) -> Iterable[Any]:
        """It cannot match."""
        raise BuildError(f"a composer does not match events ({event.id!r})", hint="give it hits, or use a Detector")


class HitColumns(NamedTuple):
    """Hits in columns: the number of the event in its batch, the profile, and how sure it is.

    `mapped` has what other names stand for, one for each hit, where any hit has that.
    """

    event: NDArray[Any]
    profile: NDArray[Any]
    probability: NDArray[np.float64]
    mapped: Sequence[MappedValues | None] | None = None

    @classmethod
    def of(cls, hits: Sequence[Sequence[Hit]]) -> HitColumns:
        """The hits of each event of a batch."""
        event = np.repeat(np.arange(len(hits)), [len(found) for found in hits])
        rows = [hit for found in hits for hit in found]
        return cls(
            event.astype(np.int64),
            np.fromiter((hit.profile for hit in rows), np.int64, count=len(rows)),
            np.fromiter((hit.probability for hit in rows), np.float64, count=len(rows)),
            [hit.mapped for hit in rows] if any(hit.mapped is not None for hit in rows) else None,
        )

    def moved(self, places: NDArray[Any]) -> HitColumns:
        """The same hits when event i stands at `places[i]`; those of events at -1 are left out."""
        event = places[self.event]
        kept = np.flatnonzero(event >= 0)
        mapped = None if self.mapped is None else [self.mapped[at] for at in kept.tolist()]
        return HitColumns(event[kept], self.profile[kept], self.probability[kept], mapped)

    def rows(self) -> Iterator[tuple[int, int, float, MappedValues | None]]:
        """Event, profile, probability and what was mapped, by event."""
        order = np.argsort(self.event, kind="stable")
        mapped = repeat(None) if self.mapped is None else (self.mapped[at] for at in order.tolist())
        columns = (self.event[order].tolist(), self.profile[order].tolist(), self.probability[order].tolist())
        return zip(*columns, mapped, strict=False)

    def of_events(self, events: Sequence[Event]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
        """Each event of the batch with its hits."""
        rows = groupby(self.rows(), key=itemgetter(0))
        at, found = next(rows, (len(events), ()))
        for place, event in enumerate(events):
            if place != at:
                yield event, ()
                continue
            yield event, tuple([Hit(event, *row[1:]) for row in found])
            at, found = next(rows, (len(events), ()))


def by_event(hits: Iterable[Hit]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
    """Hits that follow one another and are of the same event, together."""
    for _, found in groupby(hits, key=_identity):
        group = tuple(found)
        yield group[0].event, group


def _identity(hit: Hit) -> tuple[Any, ...]:
    return hit.event.id, hit.event.start, hit.event.end, hit.event.tuples


def encode_hits(hits: Iterable[Hit]) -> bytes:
    """Hits as bytes, each event once, for a shuffle or a network."""
    plain = [[dump_event(event), plain_hits(found)] for event, found in by_event(hits)]
    return msgspec.msgpack.encode(plain)


def decode_hits(data: bytes) -> list[Hit]:
    """The inverse of `encode_hits`.

    >>> hit = Hit(Event.of({"k": "A"}, id="e"), 0, 0.5)
    >>> decode_hits(encode_hits([hit])) == [hit]
    True
    """
    try:
        plain = msgspec.msgpack.decode(data)
        return [hit for event, found in plain for hit in known_hits(load_event(event), found)]
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise InputError(f"these are no hits: {error}", hint="they may be cut short") from None


def plain_hits(hits: Iterable[Hit]) -> list[Any]:
    """The hits of one event as plain values, without it."""
    return [[hit.profile, hit.probability, dump_mapped(hit.mapped)] for hit in hits]


def known_hits(event: Event, plain: Iterable[Any]) -> tuple[Hit, ...]:
    """The hits of one event back."""
    return tuple([Hit(event, profile, probability, load_mapped(mapped)) for profile, probability, mapped in plain])


def hit_text(profile: int, probability: float, mapped: MappedValues | None = None) -> str:
    """A hit without its event as a short text; equal hits have equal texts, so that many need to be read once.

    >>> [hit_text(3, 1.0), hit_text(3, 0.25)], hit_of_text(hit_text(3, 0.25))
    (['3', '3 0.25'], (3, 0.25, None))
    """
    parts = [str(profile)]
    if probability != 1.0 or mapped is not None:
        parts.append(repr(float(probability)))
    if mapped is not None:
        parts.append(msgspec.json.encode(dump_mapped(mapped)).decode())
    return " ".join(parts)


def hit_of_text(text: str) -> tuple[int, float, MappedValues | None]:
    """The inverse of `hit_text`."""
    profile, *rest = text.split(" ", 2)
    probability = float(rest[0]) if rest else 1.0
    return int(profile), probability, load_mapped(msgspec.json.decode(rest[1])) if len(rest) > 1 else None
