"""Ids and keys of the ring: 160 bits, written as 40 hexadecimal digits [001 sec IV.A: SHA-1]."""

from __future__ import annotations

from hashlib import sha1
from typing import Final, TypeAlias

Key: TypeAlias = bytes
"""The id of a node or the key of a topic: twenty bytes, compared as a number."""

BYTES: Final = 20
BITS: Final = 8 * BYTES
SPAN: Final = 1 << BITS


def key_of(text: str | bytes) -> Key:
    """The key of a name.

    >>> key_of("football match").hex()[:8]
    'b37db405'
    """
    return sha1(text.encode() if isinstance(text, str) else text, usedforsecurity=False).digest()


def number_of(key: Key) -> int:
    """The key as a number."""
    return int.from_bytes(key, "big")


def key_from(number: int) -> Key:
    """The key of a number; numbers wrap around at the size of the ring."""
    return (number % SPAN).to_bytes(BYTES, "big")


def shared_digits(left: int, right: int) -> int:
    """The number of leading hexadecimal digits that two numbers share.

    >>> shared_digits(number_of(b"\\x12" * 20), number_of(b"\\x13" * 20))
    1
    """
    return (BITS - (left ^ right).bit_length()) // 4


def digit_of(number: int, place: int) -> int:
    """The hexadecimal digit at a position, counted from the left."""
    return (number >> (BITS - 4 - 4 * place)) & 15


def distance(left: int, right: int) -> int:
    """The distance of two numbers on the ring, in the shorter direction.

    >>> distance(1, SPAN - 1)
    2
    """
    apart = (left - right) % SPAN
    return min(apart, SPAN - apart)


def nearness(number: int, key: int) -> tuple[int, int]:
    """A sort key: the distance of a number to a key; at equal distance the smaller number is nearer."""
    return distance(number, key), number


def short(key: Key) -> str:
    """The first eight digits, for display."""
    return key.hex()[:8]
