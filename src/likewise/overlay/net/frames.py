"""Connections between members: mutual TLS, and frames, each a length and a list of encoded messages."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import Final

import msgspec

from likewise.errors import InputError

FRAME: Final = 16 << 20
"""Largest frame, in bytes."""
CONNECT: Final = 10.0
"""Seconds allowed for opening a connection."""
CLOSE: Final = 1.0
"""Seconds allowed for closing a connection."""

_head = struct.Struct("!I")
_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[list[bytes]] = msgspec.msgpack.Decoder(list[bytes])


def address_of(text: str) -> tuple[str, int]:
    """Parse `host:port`."""
    host, sign, port = text.rpartition(":")
    if not sign or not port.isdigit() or not host:
        raise InputError(f"{text!r} is not an address", hint="write host:port, for example 127.0.0.1:7001")
    return host, int(port)


async def read_frame(reader: asyncio.StreamReader) -> list[bytes]:
    """Read one frame; returns its messages."""
    (size,) = _head.unpack(await reader.readexactly(_head.size))
    if size > FRAME:
        raise InputError(f"a frame of {size:,} bytes is larger than the limit of {FRAME:,}")
    try:
        return _unpack.decode(await reader.readexactly(size))
    except msgspec.MsgspecError as error:
        raise InputError(f"not a frame: {error}") from None


def frame(messages: list[bytes]) -> bytes:
    """Encode messages as one frame."""
    data = _pack(messages)
    return _head.pack(len(data)) + data


async def dial(
    address: str, context: ssl.SSLContext, *, timeout: float = CONNECT
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a member; raises `TimeoutError` if that takes longer than `timeout` seconds."""
    async with asyncio.timeout(timeout):
        return await asyncio.open_connection(*address_of(address), ssl=context, ssl_shutdown_timeout=CLOSE)


async def shut(writer: asyncio.StreamWriter) -> None:
    """Close a connection in any state; abort it if it does not close in time."""
    # After a second close, TLS could no longer abort the connection.
    if not writer.is_closing():
        writer.close()
    try:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE):
                await writer.wait_closed()
    finally:
        writer.transport.abort()
        # The socket is closed in the next iteration of the event loop.
        await asyncio.sleep(0)
