"""Messages between nodes above the ring, and the encoding of all messages.

The sender of a parcel keeps it until the receipt comes; the receiver sends the receipt once its replicas have the
operation. So some node is always responsible for a parcel, and ids make a second delivery harmless.

Messages are encoded as arrays: tags, and the order of fields, must not change.
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
"""How often the leader of a key has changed, and its node id; the larger epoch is the current one."""

NEVER: Epoch = (0, b"")


class Interest(msgspec.Struct, frozen=True, array_like=True, tag="interest"):
    """Subscribes to a topic or a composite; a split topic also needs `plans`, the whole trees that contain it."""

    node: ProfileTopic | Compound
    subscriber: Subscriber
    plans: tuple[Interest, ...] = ()


class EndInterest(msgspec.Struct, frozen=True, array_like=True, tag="disinterest"):
    """Ends an interest."""

    node: ProfileTopic | Compound
    subscriber: Subscriber


class Offer(msgspec.Struct, frozen=True, array_like=True, tag="offer"):
    """An event, or a combination of events, sent to the rendezvous of a topic or composite it is a member of.

    A split composite has no single rendezvous to subscribe at, so the `plans` for this `value` travel with the event.
    """

    member: Key
    item: Item
    value: str = ""
    plans: tuple[Interest, ...] = ()


class ReportNotice(msgspec.Struct, frozen=True, array_like=True, tag="notice"):
    """A report for a subscriber's node."""

    subscription: str
    report: Report


class Trim(msgspec.Struct, frozen=True, array_like=True, tag="trim"):
    """Deletes items that can no longer contribute to a detection."""

    ids: tuple[Id, ...]


class Checkpoint(msgspec.Struct, frozen=True, array_like=True, tag="mark"):
    """The saved state of an ordered pattern up to `clock`; the items `ids` before it are no longer needed."""

    relationship: str
    state: bytes
    clock: int
    ids: tuple[Id, ...]


Operation: TypeAlias = Interest | EndInterest | Offer | Trim | Checkpoint
"""A change of a rendezvous' store; leader and replicas apply the same operations."""


class Parcel(msgspec.Struct, frozen=True, array_like=True, tag="parcel"):
    """An envelope routed to the root of a key, sent by the rendezvous `source` in its `epoch`."""

    id: Id
    body: Interest | EndInterest | Offer | ReportNotice
    source: Key = b""
    epoch: Epoch = NEVER


class ParcelReceipt(msgspec.Struct, frozen=True, array_like=True, tag="receipt"):
    """Acknowledges parcels: the receiver is responsible for them now."""

    ids: tuple[Id, ...]


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag="refusal"):
    """Rejects a parcel: the rendezvous that sent it has a new leader since `epoch`."""

    id: Id
    source: Key
    epoch: Epoch


class Replicate(msgspec.Struct, frozen=True, array_like=True, tag="replicate"):
    """An operation for a replica, numbered in order."""

    key: Key
    epoch: Epoch
    number: int
    operation: Operation


class ReplicateAck(msgspec.Struct, frozen=True, array_like=True, tag="replicated"):
    """A replica has all operations up to `number`; -1 requests the full state."""

    key: Key
    epoch: Epoch
    number: int


class StoreState(msgspec.Struct, frozen=True, array_like=True):
    """The full contents of a store."""

    interests: tuple[Interest, ...]
    ended: tuple[tuple[str, int], ...]
    log: tuple[Offer, ...]
    seen: tuple[Id, ...]
    checkpoints: tuple[Checkpoint, ...]


class StateTransfer(msgspec.Struct, frozen=True, array_like=True, tag="copy"):
    """The full state of a rendezvous, for a replica or, with `lead`, for the next leader."""

    key: Key
    epoch: Epoch
    number: int
    state: StoreState
    lead: bool = False


class Fenced(msgspec.Struct, frozen=True, array_like=True, tag="fenced"):
    """Rejects a replicated operation: the rendezvous has a later epoch."""

    key: Key
    epoch: Epoch


class CatalogueEntry(msgspec.Struct, frozen=True, array_like=True):
    """A topic of the catalogue; the larger version wins. It is `alive` while someone subscribes to it.

    A split topic has the `plans`, the whole trees that contain it.
    """

    topic: ProfileTopic
    version: int
    alive: bool
    plans: tuple[Interest, ...] = ()


class TopicUpdate(msgspec.Struct, frozen=True, array_like=True, tag="topics"):
    """Entries of the catalogue. With a `number` it is a broadcast, to be forwarded up to `limit` and acknowledged.

    A `reply` answers a `TopicRequest`; the sender's catalogue is `complete` unless it may have missed changes.
    """

    entries: tuple[CatalogueEntry, ...]
    limit: Key = b""
    number: int = 0
    reply: bool = False
    complete: bool = True


class TopicUpdateAck(msgspec.Struct, frozen=True, array_like=True, tag="known"):
    """Acknowledges a broadcast: all nodes of its range have the entries."""

    number: int


class TopicRequest(msgspec.Struct, frozen=True, array_like=True, tag="topics?"):
    """Requests the entries of all buckets whose checksum differs from the sender's."""

    buckets: tuple[int, ...]


Message: TypeAlias = (
    m.Ping
    | m.Pong
    | m.TableRows
    | m.Welcome
    | m.Announce
    | m.Farewell
    | m.AskLeaves
    | m.Leaves
    | m.Suspect
    | m.HopAck
    | m.Route
    | ParcelReceipt
    | Refusal
    | Replicate
    | ReplicateAck
    | StateTransfer
    | Fenced
    | TopicUpdate
    | TopicUpdateAck
    | TopicRequest
)

Routed: TypeAlias = m.Join | Parcel | StateTransfer

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Message)
_routed: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Routed)


def encode(message: Any) -> bytes:
    """Encode a message; a routed payload is encoded once and stays encoded on its way."""
    if type(message) is m.Route and not isinstance(message.payload, bytes):
        packed = _encoder.encode(message.payload)
        return _encoder.encode(m.Route(message.key, message.hop, message.origin, packed, message.hops))
    return _encoder.encode(message)


def decode(data: bytes) -> Any:
    """Decode and validate a message; raises `InputError` if it is malformed."""
    try:
        message = _decoder.decode(data)
        if type(message) is m.Route:
            if not isinstance(message.payload, bytes):
                raise InputError("the payload of a routed message is not encoded")
            payload = _routed.decode(message.payload)
            message = m.Route(message.key, message.hop, message.origin, payload, message.hops)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not an overlay message: {error}") from None
    check(message)
    return message


def check(message: Any) -> None:
    """Raise `InputError` for a key of the wrong length; all other types are checked by the decoder."""
    kind = type(message)
    names = _KEYED.get(kind)
    if names is None:
        names = _KEYED[kind] = tuple(name for name in _CHECKED if name in kind.__struct_fields__)
    for name in names:
        _CHECKED[name](getattr(message, name))


def _check_key(key: Key) -> None:
    if len(key) != BYTES:
        raise InputError("a key must have 160 bits (20 bytes)")


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
