"""Messages that maintain the ring. They are encoded as arrays: tags, and the order of fields, must not change."""

from __future__ import annotations

from typing import Any

import msgspec

from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.tables import Peer


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping", gc=False):
    """A heartbeat, with the sender's neighbours if the receiver does not have them yet.

    `digest` is the digest of the sender's catalogue of topics.
    """

    nonce: int
    leaves: tuple[Peer, ...] = ()
    digest: int = 0


class Pong(msgspec.Struct, frozen=True, array_like=True, tag="pong", gc=False):
    """The answer to a ping."""

    nonce: int
    leaves: tuple[Peer, ...] = ()
    digest: int = 0


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join", gc=False):
    """The request of a new node to join, routed towards its own id."""

    peer: Peer


class TableRows(msgspec.Struct, frozen=True, array_like=True, tag="rows", gc=False):
    """Routing table rows for a joining node, from a node on the route of its request."""

    peers: tuple[Peer, ...]


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome", gc=False):
    """The answer to a join: the neighbours of the new node."""

    leaves: tuple[Peer, ...]
    peers: tuple[Peer, ...] = ()


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="announce", gc=False):
    """Announces that the sender has joined the ring."""

    leaves: tuple[Peer, ...] = ()


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag="farewell", gc=False):
    """Announces that the sender leaves the ring; `leaves` are its neighbours."""

    leaves: tuple[Peer, ...] = ()


class AskLeaves(msgspec.Struct, frozen=True, array_like=True, tag="ask", gc=False):
    """Asks for the receiver's neighbours."""


class Leaves(msgspec.Struct, frozen=True, array_like=True, tag="leaves", gc=False):
    """The sender's neighbours."""

    leaves: tuple[Peer, ...]


class Suspect(msgspec.Struct, frozen=True, array_like=True, tag="suspect", gc=False):
    """Asks the receiver to ping a peer that did not answer the sender."""

    peer: Peer


class Route(msgspec.Struct, frozen=True, array_like=True, tag="route", gc=False):
    """A message on its way to the root of a key; each hop is acknowledged by its number `hop`."""

    key: Key
    hop: int
    origin: Peer
    payload: Any
    hops: int = 0


class HopAck(msgspec.Struct, frozen=True, array_like=True, tag="hops", gc=False):
    """Acknowledges hops."""

    hops: tuple[int, ...]
