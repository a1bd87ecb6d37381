"""Frames on a connection: a length, then a list of messages, each packed for itself."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Final

import msgspec

from likewise.errors import InputError

FRAME: Final = 16 << 20
"""Bytes of the largest frame."""

_head = struct.Struct("!I")
_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[list[bytes]] = msgspec.msgpack.Decoder(list[bytes])


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `host:port`."""
    host, sign, port = text.rpartition(":")
    if not sign or not port.isdigit() or not host:
        raise InputError(f"{text!r} is not an address", hint="write host:port, for example 127.0.0.1:7001")
    return host, int(port)


async def read_frame(reader: asyncio.StreamReader) -> list[bytes]:
    """The messages of one frame."""
    (size,) = _head.unpack(await reader.readexactly(_head.size))
    if size > FRAME:
        raise InputError("a frame is too large")
    try:
        return _unpack.decode(await reader.readexactly(size))
    except msgspec.MsgspecError as error:
        raise InputError(f"not a frame: {error}") from None


def frame(messages: list[bytes]) -> bytes:
    """Messages as one frame."""
    data = _pack(messages)
    return _head.pack(len(data)) + data


async def shut(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
