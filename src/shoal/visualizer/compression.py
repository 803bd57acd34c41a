"""Compressing a body of which most was compressed before.

A gzip stream may be put together of parts that were each begun anew and end on a whole byte. So the lumps of a body
that stayed as they were are taken as they are, and only the others are compressed. Lumps are large, about a megabyte:
each call into zlib lets go of the interpreter's lock, and may have to wait for it then, so there must not be many.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

_LEVEL = 1
"""Names that repeat shrink tenfold at the quickest level already."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_END = b"\x03\x00"
_POLYNOMIAL = 0xEDB88320


class Compressible(Protocol):
    """What lumps are made of."""

    @property
    def pieces(self) -> Sequence[bytes]:
        """Its bytes."""


Part = TypeVar("Part", bound=Compressible)


class Compressed(NamedTuple):
    """A gzip stream in pieces."""

    pieces: list[bytes]
    length: int


class _Lump(NamedTuple):
    deflated: bytes
    checksum: int
    length: int


class Compressor(Generic[Part]):
    """Compresses one body after the other, and remembers the lumps of the last."""

    def __init__(self) -> None:
        self._lumps: dict[tuple[Part, ...], _Lump] = {}

    def gzip(self, lumps: Sequence[tuple[Part, ...]]) -> Compressed:
        """Lumps, each of parts that are compared by identity, as one gzip stream; may be called from any thread."""
        known = self._lumps
        compressed = {lump: known.get(lump) or _deflated(lump) for lump in lumps}
        self._lumps = compressed
        checksum = length = 0
        for lump in lumps:
            one = compressed[lump]
            checksum = joined_checksum(checksum, one.checksum, one.length)
            length += one.length
        tail = checksum.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little")
        pieces = [_HEAD, *(compressed[lump].deflated for lump in lumps), _END, tail]
        return Compressed(pieces, sum(map(len, pieces)))


def _deflated(lump: Sequence[Compressible]) -> _Lump:
    body = b"".join([piece for part in lump for piece in part.pieces])
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = compressor.compress(body) + compressor.flush(zlib.Z_FULL_FLUSH)
    return _Lump(deflated, zlib.crc32(body), len(body))


def joined_checksum(first: int, second: int, length: int) -> int:
    """The CRC-32 of two texts in a row, of theirs and the second one's length.

    A CRC is the remainder of a polynomial. To append bytes is to multiply by a power of x, and the rest is a sum.
    """
    return _product(_power_of_x(8 * length), first) ^ second


def _power_of_x(exponent: int) -> int:
    """x to the power of something, by squares."""
    power, square = 1 << 31, 1 << 30  # in these reflected polynomials the highest bit is 1, and the one below it x
    while exponent:
        if exponent & 1:
            power = _product(square, power)
        square = _product(square, square)
        exponent >>= 1
    return power


def _product(one: int, other: int) -> int:
    """The product of two polynomials, modulo CRC-32's own."""
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ _POLYNOMIAL if other & 1 else other >> 1
    return product
