"""Gzip streams that are put together of parts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shoal.visualizer.compression import Compressor, joined_checksum


class Part:
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces


@given(first=some.binary(), second=some.binary())
def test_the_checksum_of_two_texts_in_a_row_is_found_from_theirs(first: bytes, second: bytes) -> None:
    assert joined_checksum(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


@given(some.lists(some.lists(some.lists(some.binary(max_size=50), max_size=3), min_size=1, max_size=3), max_size=5))
def test_what_was_put_together_is_one_stream(lumps: list[list[list[bytes]]]) -> None:
    made = Compressor[Part]().gzip([tuple(Part(pieces) for pieces in lump) for lump in lumps])
    stream = b"".join(made.pieces)
    assert gzip.decompress(stream) == b"".join(piece for lump in lumps for pieces in lump for piece in pieces)
    assert made.length == len(stream)
    one = zlib.decompressobj(zlib.MAX_WBITS | 16)
    one.decompress(stream)
    assert (one.eof, one.unused_data) == (True, b""), "one stream, and not several: not all clients read on"


def test_what_stays_is_not_compressed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compressed: list[int] = []
    really = zlib.compressobj

    def counting(*given: Any) -> object:
        compressed.append(1)
        return really(*given)

    compressor = Compressor[Part]()
    lumps = [(Part([b"a" * 100]),), (Part([b"b" * 100]),), (Part([b"c" * 100]),)]
    compressor.gzip(lumps)
    monkeypatch.setattr("zlib.compressobj", counting)
    again = compressor.gzip([lumps[0], (Part([b"x"]),), lumps[2]])
    assert len(compressed) == 1
    assert gzip.decompress(b"".join(again.pieces)) == b"a" * 100 + b"x" + b"c" * 100
