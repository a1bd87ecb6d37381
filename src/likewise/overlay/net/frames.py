"""Connections between members: mutual TLS, and on it frames of a length and a list of messages, each packed itself."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import Final

import msgspec

from likewise.errors import InputError

FRAME: Final = 16 << 20
"""Bytes of the largest frame."""
CONNECT: Final = 10.0
"""Seconds that opening a connection may take."""
CLOSE: Final = 1.0
"""Seconds that the other side has to say farewell."""

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


async def dial(
    address: str, context: ssl.SSLContext, *, timeout: float = CONNECT
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a member; what takes longer is a `TimeoutError`."""
    async with asyncio.timeout(timeout):
        return await asyncio.open_connection(*address_of(address), ssl=context, ssl_shutdown_timeout=CLOSE)


async def shut(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in; one that does not close in time is cut."""
    # A second close would make TLS forget the connection that is still to be cut.
    if not writer.is_closing():
        writer.close()
    try:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE):
                await writer.wait_closed()
    finally:
        writer.transport.abort()
        # The socket is closed in the next turn of the loop.
        await asyncio.sleep(0)
