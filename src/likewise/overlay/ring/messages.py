"""Messages between neighbours, by which the ring keeps itself together."""

from __future__ import annotations

from typing import Any

import msgspec

from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.tables import Peer


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping", gc=False):
    """Are you there? With the sender's neighbours, if they changed since it last wrote to this peer.

    `digest` sums up the sender's catalogue of topics.
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
    """A new node looks for its place: routed towards its own id."""

    peer: Peer


class TableRows(msgspec.Struct, frozen=True, array_like=True, tag="rows", gc=False):
    """What a node on the way of a join knows that the new node can use."""

    peers: tuple[Peer, ...]


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome", gc=False):
    """The new node has come to its place: these are its neighbours."""

    leaves: tuple[Peer, ...]
    peers: tuple[Peer, ...] = ()


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="announce", gc=False):
    """The sender is a member of the ring."""

    leaves: tuple[Peer, ...] = ()


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag="farewell", gc=False):
    """The sender leaves; these were its neighbours."""

    leaves: tuple[Peer, ...] = ()


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask", gc=False):
    """Who are your neighbours?"""


class Leaves(msgspec.Struct, frozen=True, array_like=True, tag="leaves", gc=False):
    """The sender's neighbours."""

    leaves: tuple[Peer, ...]


class Suspect(msgspec.Struct, frozen=True, array_like=True, tag="suspect", gc=False):
    """The sender got no answer from this peer: see for yourself."""

    peer: Peer


class Route(msgspec.Struct, frozen=True, array_like=True, tag="route", gc=False):
    """Something on its way to the root of a key; every hop is acknowledged by number."""

    key: Key
    hop: int
    origin: Peer
    payload: Any
    hops: int = 0


class HopAck(msgspec.Struct, frozen=True, array_like=True, tag="hops", gc=False):
    """These hops arrived."""

    hops: tuple[int, ...]
