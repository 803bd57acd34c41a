"""Encoded pieces of an answer that are made once and used in many: by each route, each request, each listener.

A body is many pages in a row, of which a few change from view to view. Its ETag is a digest of its objects' digests, so
that nothing that stays is looked at again.

Whatever lets go of the interpreter's lock is kept off the way of an answer: while a scheduling cycle runs in the same
process, to get it back takes longer than to encode a hundred objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from shoal.visualizer.compression import Compressed, Compressor

LARGE = 1 << 17
"""Bytes: a page, or a message, of this size is not added to; programs that read lines bound their length."""
_CHUNK = 1 << 22
_HASHED_UNDER_LOCK = 2047
"""Bytes: to hash more than this at once, Python lets go of its lock."""


class Page:
    """Some objects, or what stands between them; two pages are the same only if they are one object."""

    __slots__ = ("digests", "ends_lump", "pieces", "size")

    def __init__(self, pieces: Sequence[bytes], digests: bytes, *, ends_lump: bool = False) -> None:
        self.pieces = pieces
        self.digests = digests
        """Of all pieces but those between objects, in a row."""
        self.size = sum(map(len, pieces))
        self.ends_lump = ends_lump
        """Whether it is the last of those that are compressed together."""

    @classmethod
    def of(cls, body: bytes) -> Page:
        """A page of one piece."""
        return cls([body], digest_of(body), ends_lump=True)

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)


class Body:
    """What an answer says: pages in a row."""

    def __init__(self, pages: Sequence[Page], compressor: Compressor[Page] | None = None) -> None:
        self._pages = pages
        self._compressor = compressor or Compressor()
        self.etag = f'W/"{digest_of(b"".join([page.digests for page in pages])).hex()[:32]}"'
        """Weak: the compressed and the plain form are one thing said in two ways. Says nothing of how pages are cut."""
        self.length = sum(page.size for page in pages)
        self._compressed: Compressed | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the compressed form is there already, and costs nothing more."""
        return self._compressed is not None

    @property
    def whole(self) -> bytes:
        """The plain form."""
        return b"".join([piece for page in self._pages for piece in page.pieces])

    def chunks(self) -> Iterator[bytes]:
        """The plain form in pieces of a few megabytes."""
        return coalesced(piece for page in self._pages for piece in page.pieces)

    def gzipped(self) -> Compressed:
        """The compressed form, in pieces; takes a while the first time, most of it without the interpreter's lock."""
        if self._compressed is None:
            self._compressed = self._compressor.gzip(list(_lumps(self._pages)))
        return self._compressed


def listed(pages: Sequence[Page]) -> list[Page]:
    """Pages of objects as one JSON array: an empty one where there are none, never null."""
    row = [_OPENED]
    for page in pages:
        row += (page, _BETWEEN)
    row[max(1, len(row) - 1) :] = [_CLOSED]
    return row


def coalesced(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Joins small pieces: each time that a socket is written to, a busy interpreter may first have to be waited for."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def digest_of(body: bytes) -> bytes:
    """A digest that is the same in every process; made without letting go of the interpreter's lock."""
    if len(body) <= _HASHED_UNDER_LOCK:
        return hashlib.sha256(body).digest()
    digest = hashlib.sha256()
    seen = memoryview(body)
    for start in range(0, len(body), _HASHED_UNDER_LOCK):
        digest.update(seen[start : start + _HASHED_UNDER_LOCK])
    return digest.digest()


def _lumps(pages: Sequence[Page]) -> Iterator[tuple[Page, ...]]:
    """Pages in groups of about a thousand objects."""
    held: list[Page] = []
    for page in pages:
        held.append(page)
        if page.ends_lump:
            yield tuple(held)
            held = []
    if held:
        yield tuple(held)


_OPENED, _BETWEEN, _CLOSED = (Page([mark], b"") for mark in (b"[", b",", b"]"))
