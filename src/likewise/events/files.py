"""Reads bytes of files, standard input and open streams, compressed or not, in bounded pieces."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from likewise.errors import InputError, MissingError
from likewise.files import whole_file

Source: TypeAlias = Path | str | BinaryIO
"""A path, `-` for standard input, or a stream of bytes."""

MAX_LINE = 8 << 20
"""The longest record."""
_PIECE = 1 << 20
_HEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
# Errors raised by damaged or truncated files, including compressed ones.
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)


def source_name(source: Source | object, name: str | None = None) -> str:
    """The name of a source in errors and default ids."""
    if name is not None:
        return name
    if isinstance(source, Path | str):
        return "<stdin>" if str(source) == "-" else str(source)
    given = getattr(source, "name", None)
    return given if isinstance(given, str) else "<stream>"


@contextmanager
def open_source(source: Source, *, name: str) -> Iterator[BinaryIO]:
    """Open a source, decompressed; a given stream stays open."""
    try:
        if isinstance(source, Path | str) and str(source) != "-":
            with open(source, "rb") as file:
                yield _decompressed(file)
        else:
            stream = sys.stdin.buffer if isinstance(source, Path | str) else source
            yield _decompressed(stream if hasattr(stream, "peek") else io.BufferedReader(_Piped(stream)))
    except FileNotFoundError:
        raise InputError("no such file", source=name, hint="check the path") from None
    except _BROKEN as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=name) from error


@contextmanager
def open_target(target: Path | str | BinaryIO) -> Iterator[BinaryIO]:
    """Open a target: a file that is replaced as a whole, standard output (`-`), or a stream that stays open."""
    if not isinstance(target, Path | str):
        yield target
    elif str(target) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with whole_file(target) as file:
            yield file


def head(stream: BinaryIO) -> bytes:
    """Peek at the first bytes."""
    return bytes(cast(io.BufferedReader, stream).peek(_HEAD)[:_HEAD]).removeprefix(_BOM)


def line_blocks(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Blocks of complete lines with the number of their first line; input from a pipe is passed on at once.

    A line longer than the limit is cut, so that no input can fill the memory; the decoder then refuses it.
    """
    number, rest, skipping = 1, b"", False
    while piece := _read(stream):
        if number == 1 and not rest:
            piece = piece.removeprefix(_BOM)
        cut = piece.rfind(b"\n") + 1
        first = piece.find(b"\n") if skipping else 0
        if not cut:
            rest += b"" if skipping else piece[: MAX_LINE + 1 - len(rest)]
            skipping = len(rest) > MAX_LINE
            continue
        block = rest + piece[first:cut]
        yield number, block
        number += block.count(b"\n")
        rest, skipping = piece[cut:], False
    if rest:
        yield number, rest


def line_batches(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Lists of complete lines with the number of their first line."""
    for number, block in line_blocks(stream):
        yield number, block.removesuffix(b"\n").split(b"\n")


def _read(stream: BinaryIO) -> bytes:
    return cast(io.BufferedReader, stream).read1(_PIECE)


def _decompressed(stream: Any) -> BinaryIO:
    start = stream.peek(6)[:6]
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(stream))
    if start.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.LZMAFile(stream))
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return _unzstd(stream)
    return cast(BinaryIO, stream)


def _unzstd(stream: Any) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise MissingError("reading .zst files needs zstandard", hint="pip install 'likewise[spark]'") from None
    return cast(BinaryIO, io.BufferedReader(_Piped(_Zstandard(stream, zstandard.ZstdDecompressor()))))


class _Zstandard:
    """Reads consecutive frames; zstandard's own reader would accept a truncated file."""

    def __init__(self, stream: Any, decompressor: Any) -> None:
        self._stream = stream
        self._new = decompressor.decompressobj
        self._frame: Any = None
        self._ready = b""

    def read(self, size: int) -> bytes:
        while not self._ready:
            # Small pieces limit how much one can expand to (a few bytes may become 128 KiB).
            data = (self._frame.unused_data if self._frame and self._frame.eof else b"") or self._stream.read(1024)
            if not data:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("the compressed file is truncated")
                return b""
            if self._frame is None or self._frame.eof:
                self._frame = self._new()
            self._ready = self._frame.decompress(data)
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken


class _Piped(io.RawIOBase):
    """Adapts a stream that only has `read` to a buffered reader, without closing it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except Exception as error:
            # Other streams raise their own errors (zstandard's is not an OSError); readers see one kind.
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)
