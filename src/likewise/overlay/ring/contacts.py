"""What a node of the ring keeps of its peers and of what it has sent, and the times by which it judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from likewise.overlay.ring import messages as m
from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.tables import HALF, Peer

SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RingSettings:
    """Times in microseconds.

    `patience` is the least time that a question may take before it counts as unanswered; `late` is how late a timer
    may go off before this node takes itself, not the others, for slow; after a `pause` it makes itself heard.
    """

    heartbeat: int = SECOND // 4
    near: int = 2
    half: int = HALF
    first_timeout: int = SECOND // 2
    min_timeout: int = SECOND // 5
    max_timeout: int = 2 * SECOND
    quarantine: int = 60 * SECOND
    revisit: int = 4 * SECOND
    patience: int = 2 * SECOND // 5
    late: int = SECOND // 5
    pause: int = SECOND
    strikes: int = 3
    waits: int = 4
    maintain: bool = True


@dataclass(slots=True)
class Contact:
    """How a peer behaves: round trips, what it was last asked, and which version of the neighbours it has.

    It has the version that went with a ping once it has answered that ping.
    """

    peer: Peer
    heard: int = 0
    trip: float = 0.0
    spread: float = 0.0
    asked: int | None = None
    strikes: int = 0
    version: int = -1
    offered: tuple[int, int] = (-1, -1)
    neighbours_confirmed: int = -1


@dataclass(slots=True)
class Hop:
    """A routed message that waits for the acknowledgement of the next hop."""

    peer: Peer
    message: m.Route
    sent: int
    avoid: frozenset[Key]
    waits: int = 0


@dataclass(frozen=True, slots=True)
class RingArrival:
    """A routed message that has come to its root."""

    key: Key
    payload: Any
    origin: Peer
    hops: int
