"""Messages between rendezvous nodes, and the bytes of all messages.

A parcel is kept by its sender until the receipt comes; a receipt is given when the neighbours of the receiver have
their copies. So a parcel is always in the care of someone, and ids make a second delivery harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from likewise.errors import InputError
from likewise.overlay.cube.decompose import Compound, ProfileTopic
from likewise.overlay.cube.items import Id, Item, Report
from likewise.overlay.cube.plane import Subscriber
from likewise.overlay.ring import messages as m
from likewise.overlay.ring.ids import BYTES, Key
from likewise.overlay.ring.tables import Peer

Epoch: TypeAlias = tuple[int, Key]
"""How often the rendezvous of a key changed hands, and whose it is now; the larger one is right."""

NEVER: Epoch = (0, b"")


class Interest(msgspec.Struct, frozen=True, array_like=True, tag="interest"):
    """A subscription to a topic or a composite; to a topic that is split, with the whole plan that wants it."""

    node: ProfileTopic | Compound
    subscriber: Subscriber
    plans: tuple[Interest, ...] = ()


class Disinterest(msgspec.Struct, frozen=True, array_like=True, tag="disinterest"):
    """The end of a subscription."""

    node: ProfileTopic | Compound
    subscriber: Subscriber


class Offer(msgspec.Struct, frozen=True, array_like=True, tag="offer"):
    """Something that happened, for the rendezvous of a topic or of a composite that it is a member of.

    Where a composite is split, there is no one place to subscribe: the `plans` for this `value` travel with the event.
    """

    member: Key
    item: Item
    value: str = ""
    plans: tuple[Interest, ...] = ()


class ReportNotice(msgspec.Struct, frozen=True, array_like=True, tag="notice"):
    """A detection for a subscriber."""

    subscription: str
    report: Report


class Trim(msgspec.Struct, frozen=True, array_like=True, tag="trim"):
    """These items can no longer contribute."""

    ids: tuple[Id, ...]


class Mark(msgspec.Struct, frozen=True, array_like=True, tag="mark"):
    """The state of a pattern in one piece, which makes the items before it unnecessary."""

    relationship: str
    state: bytes
    clock: int
    ids: tuple[Id, ...]


Operation: TypeAlias = Interest | Disinterest | Offer | Trim | Mark
"""What changes the state of a rendezvous; the copies take the same operations."""


class Parcel(msgspec.Struct, frozen=True, array_like=True, tag="parcel"):
    """A body for the root of a key, from the rendezvous `source` in its `epoch`."""

    id: Id
    body: Interest | Disinterest | Offer | ReportNotice
    source: Key = b""
    epoch: Epoch = NEVER


class ParcelReceipt(msgspec.Struct, frozen=True, array_like=True, tag="receipt"):
    """These parcels are in other hands."""

    ids: tuple[Id, ...]


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag="refusal"):
    """The rendezvous that sent this parcel has a successor since this epoch."""

    id: Id
    source: Key
    epoch: Epoch


class Replicate(msgspec.Struct, frozen=True, array_like=True, tag="replicate"):
    """An operation for the copy of a rendezvous."""

    key: Key
    epoch: Epoch
    number: int
    operation: Operation


class Replicated(msgspec.Struct, frozen=True, array_like=True, tag="replicated"):
    """The copy has all operations up to a number; -1 asks for the whole state."""

    key: Key
    epoch: Epoch
    number: int


class StoreState(msgspec.Struct, frozen=True, array_like=True):
    """All that a rendezvous knows."""

    interests: tuple[Interest, ...]
    gone: tuple[tuple[str, int], ...]
    log: tuple[Offer, ...]
    seen: tuple[Id, ...]
    marks: tuple[Mark, ...]


class Copy(msgspec.Struct, frozen=True, array_like=True, tag="copy"):
    """The whole state of a rendezvous, for its copy or, with `lead`, for its successor."""

    key: Key
    epoch: Epoch
    number: int
    state: StoreState
    lead: bool = False


class Fenced(msgspec.Struct, frozen=True, array_like=True, tag="fenced"):
    """A rendezvous has a later epoch than the sender of an operation knew."""

    key: Key
    epoch: Epoch


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """A topic of the catalogue; the larger version is right. One that is split has the plans that want it."""

    topic: ProfileTopic
    version: int
    alive: bool
    plans: tuple[Interest, ...] = ()


class Topics(msgspec.Struct, frozen=True, array_like=True, tag="topics"):
    """Changes of the catalogue; with a `number`, to be passed on along the ring up to `limit`, and acknowledged.

    An `answer` says what the asker lacks; the sender is `sure` unless it may have missed something itself.
    """

    entries: tuple[Listed, ...]
    limit: Key = b""
    number: int = 0
    answer: bool = False
    sure: bool = True


class TopicsKnown(msgspec.Struct, frozen=True, array_like=True, tag="known"):
    """All nodes of a stretch have the changes of this number."""

    number: int


class AskTopics(msgspec.Struct, frozen=True, array_like=True, tag="topics?"):
    """What the sender's catalogue has, by bucket: send what differs."""

    buckets: tuple[int, ...]


Message: TypeAlias = (
    m.Ping
    | m.Pong
    | m.TableRows
    | m.Welcome
    | m.Announce
    | m.Farewell
    | m.Ask
    | m.Leaves
    | m.Suspect
    | m.HopAck
    | m.Route
    | ParcelReceipt
    | Refusal
    | Replicate
    | Replicated
    | Copy
    | Fenced
    | Topics
    | TopicsKnown
    | AskTopics
)

Routed: TypeAlias = m.Join | Parcel | Copy

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Message)
_routed: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Routed)


def encode(message: Any) -> bytes:
    """A message as bytes; what is routed stays packed on its way."""
    if type(message) is m.Route and not isinstance(message.payload, bytes):
        packed = _encoder.encode(message.payload)
        return _encoder.encode(m.Route(message.key, message.hop, message.origin, packed, message.hops))
    return _encoder.encode(message)


def decode(data: bytes) -> Any:
    """The message in some bytes, of the right shape in all its parts; else an `InputError`."""
    try:
        message = _decoder.decode(data)
        if type(message) is m.Route:
            if not isinstance(message.payload, bytes):
                raise InputError("a routed message is not packed")
            payload = _routed.decode(message.payload)
            message = m.Route(message.key, message.hop, message.origin, payload, message.hops)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not a message of the overlay: {error}") from None
    check(message)
    return message


def check(message: Any) -> None:
    """Refuse keys that are no keys: everything else has its type."""
    kind = type(message)
    names = _KEYED.get(kind)
    if names is None:
        names = _KEYED[kind] = tuple(name for name in _CHECKED if name in kind.__struct_fields__)
    for name in names:
        _CHECKED[name](getattr(message, name))


def _check_key(key: Key) -> None:
    if len(key) != BYTES:
        raise InputError("a key must have 160 bits")


def _check_optional(key: Key) -> None:
    if key:
        _check_key(key)


def _check_peer(peer: Peer) -> None:
    _check_key(peer.id)


def _check_peers(peers: tuple[Peer, ...]) -> None:
    for peer in peers:
        _check_key(peer.id)


_CHECKED: dict[str, Callable[[Any], None]] = {
    "key": _check_key,
    "source": _check_optional,
    "limit": _check_optional,
    "peer": _check_peer,
    "origin": _check_peer,
    "leaves": _check_peers,
    "peers": _check_peers,
    "payload": check,
}
_KEYED: dict[type, tuple[str, ...]] = {}
