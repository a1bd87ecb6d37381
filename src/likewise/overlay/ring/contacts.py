"""The settings of the ring, and what a node records about its peers and about unacknowledged messages."""

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

    `near` and `half` are how many neighbours on each side get every heartbeat, and how many are kept. A peer is dead
    after `max_missed` pings without an answer, each for at least `ping_timeout`. Dead peers are pinged every
    `ping_dead`, in case they are back. A hop to a slow peer is rerouted after `max_waits` extensions.

    If a timer runs later than `late_timer`, this node itself was suspended, so that missing answers do not count
    against others; after more than `pause` it also checks its neighbours. Without `maintain` there are no heartbeats.
    """

    heartbeat: int = SECOND // 4
    near: int = 2
    half: int = HALF
    first_timeout: int = SECOND // 2
    min_timeout: int = SECOND // 5
    max_timeout: int = 2 * SECOND
    quarantine: int = 60 * SECOND
    ping_dead: int = 4 * SECOND
    ping_timeout: int = 2 * SECOND // 5
    late_timer: int = SECOND // 5
    pause: int = SECOND
    max_missed: int = 3
    max_waits: int = 4
    maintain: bool = True


@dataclass(slots=True)
class Contact:
    """What is known of a peer: when it was heard, its round trip time, and pings without an answer.

    `version` is the version of this node's neighbours that the peer has; `offered` is a ping and the version sent with
    it, which the peer has once it answers. `generation` is that of the tables when the peer was last added to them.
    """

    peer: Peer
    heard_at: int = 0
    round_trip: float = 0.0
    deviation: float = 0.0
    pinged_at: int | None = None
    missed: int = 0
    version: int = -1
    offered: tuple[int, int] = (-1, -1)
    generation: int = -1


@dataclass(slots=True)
class Hop:
    """A routed message that the next hop has not yet acknowledged."""

    peer: Peer
    message: m.Route
    sent: int
    avoid: frozenset[Key]
    waits: int = 0


@dataclass(frozen=True, slots=True)
class RingArrival:
    """A routed message that has arrived at the root of its key."""

    key: Key
    payload: Any
    origin: Peer
    hops: int
