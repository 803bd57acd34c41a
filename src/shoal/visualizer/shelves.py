"""Objects of one kind in encoded form, kept from view to view for as long as the objects stay the same ones.

A shelf follows a mapping of a view: what is the same object as before keeps its bytes, the rest is encoded. Behind each
other, in their order, the objects make pages. Where a page ends is said by the key of its last object and not by
counting, so that an object more or less changes one page and not all behind it; unless the page grows too large.
"""

from __future__ import annotations

import asyncio
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import structlog

from shoal.api.visualizer import View
from shoal.visualizer.pages import LARGE, Page, digest_of
from shoal.visualizer.slices import in_slices

log = structlog.get_logger("shoal.visualizer")

Item = TypeVar("Item", bound=View)
Pieces = tuple[bytes, ...]
"""An object's JSON, in pieces that may stay while others change."""
Encode = Callable[[Item, Item | None, Pieces], Pieces]
"""Encodes an object, given what it was before (if anything) and the pieces of that."""
Order = Callable[[Item], tuple[str, ...]]

_OBJECTS_IN_A_PAGE = 32
"""As a rule, where they are small."""
_OBJECTS_IN_A_LUMP = _OBJECTS_IN_A_PAGE * 32
"""Those that are compressed together."""
_LOOKS_UP_EVERY = 256


class Shelf(Generic[Item]):
    """The objects of one mapping, in order."""

    def __init__(self, encode: Encode[Item], order: Order[Item]) -> None:
        self._encode = encode
        self._order = order
        self._lock = asyncio.Lock()
        self._mapping: Mapping[str, Item] | None = None
        self._entries: dict[str, _Entry[Item]] = {}
        self._pages: list[_FilledPage[Item]] = []
        self._is_out_of_order = False

    async def pages(self, mapping: Mapping[str, Item]) -> list[Page]:
        """All objects of a mapping."""
        async with self._lock:
            await in_slices(self._follow(mapping))
            return [filled.page for filled in self._pages]

    async def encoded(self, mapping: Mapping[str, Item], keys: Sequence[str]) -> dict[str, bytes]:
        """Some objects of a mapping, by key; one that could not be encoded is missing."""
        async with self._lock:
            await in_slices(self._follow(mapping))
            entries = [self._entries[key] for key in keys if key in self._entries]
            return {entry.key: b"".join(entry.pieces) for entry in entries if entry.pieces}

    def _follow(self, mapping: Mapping[str, Item]) -> Iterator[None]:
        """Does what there is to do, pausing now and then for others to have their turn.

        If it is left in the middle, what is here is of no mapping, and what was done is not done again.
        """
        if mapping is self._mapping:
            return
        self._mapping = None
        added: list[_Entry[Item]] = []
        for count, (key, item) in enumerate(mapping.items()):
            entry = self._entries.get(key)
            if entry is None:
                added.append(entry := _Entry(key))
                self._put(entry, item)
                yield
            elif entry.item is not item:
                self._put(entry, item)
                yield
            elif count % _LOOKS_UP_EVERY == 0:
                yield
        if added or self._is_out_of_order or len(mapping) != len(self._entries):
            yield from self._put_in_order(mapping, added)
        for page in self._pages:
            if page.is_outdated:
                page.fill()
                yield
        self._mapping = mapping

    def _put(self, entry: _Entry[Item], item: Item) -> None:
        """Makes an entry say what an object is now."""
        if entry.item is None or entry.item != item:
            try:
                order, pieces = self._order(item), self._encode(item, entry.item, entry.pieces)
            except Exception:  # one that is broken must not hide all others
                log.exception("object_not_shown", kind=type(item).__name__, key=entry.key)
                order, pieces = (), ()
            if order != entry.order or bool(pieces) != bool(entry.pieces):
                self._is_out_of_order = True
            entry.change(order, pieces)
        entry.item = item

    def _put_in_order(self, mapping: Mapping[str, Item], added: list[_Entry[Item]]) -> Iterator[None]:
        """Sorts the objects into pages, and keeps those pages that have the same objects as before."""
        # As they were, and what is new behind them: that is nearly in order already, which is quickly sorted.
        ordered = [entry for key, entry in self._entries.items() if key in mapping] + added
        ordered.sort(key=operator.attrgetter("order"))
        yield
        pages: list[_FilledPage[Item]] = []
        for run in _runs([entry for entry in ordered if entry.pieces]):
            page = run[0].page
            if page is None or not page.holds(run):
                page = _FilledPage(run)
                yield
            pages.append(page)
        # From here on there is no pause, so that all of it is seen or nothing.
        self._entries = {entry.key: entry for entry in ordered}
        self._pages = pages
        self._is_out_of_order = False
        for page in pages:
            page.take_over()


class _Entry(Generic[Item]):
    """An object and its bytes."""

    __slots__ = ("digests", "item", "key", "order", "page", "pieces", "place", "size")

    def __init__(self, key: str) -> None:
        self.key = key
        self.place = zlib.crc32(key.encode())
        self.item: Item | None = None
        self.order: tuple[str, ...] = ()
        self.pieces: Pieces = ()
        self.digests: list[bytes] = []
        self.size = 0
        self.page: _FilledPage[Item] | None = None

    def change(self, order: tuple[str, ...], pieces: Pieces) -> None:
        """Takes other bytes; the digests of pieces that stay are kept."""
        known = {id(piece): digest for piece, digest in zip(self.pieces, self.digests, strict=True)}
        self.digests = [known.get(id(piece)) or digest_of(piece) for piece in pieces]
        self.order, self.pieces = order, pieces
        self.size = sum(map(len, pieces))
        if self.page is not None:
            self.page.is_outdated = True


class _FilledPage(Generic[Item]):
    """A page and whom it is of."""

    __slots__ = ("_entries", "is_outdated", "page")

    def __init__(self, entries: list[_Entry[Item]]) -> None:
        self._entries = entries
        self.fill()

    def fill(self) -> None:
        """Makes the page of what its objects are now."""
        pieces: list[bytes] = []
        digests: list[bytes] = []
        for entry in self._entries:
            pieces += entry.pieces
            pieces.append(b",")
            digests += entry.digests
        pieces.pop()
        self.page = Page(pieces, b"".join(digests), ends_lump=self._entries[-1].place % _OBJECTS_IN_A_LUMP == 0)
        self.is_outdated = False

    def holds(self, entries: list[_Entry[Item]]) -> bool:
        """Whether it is of just these."""
        return len(self._entries) == len(entries) and all(map(operator.is_, self._entries, entries))

    def take_over(self) -> None:
        """Is the page from now on that its objects are on."""
        for entry in self._entries:
            entry.page = self


def _runs(entries: list[_Entry[Item]]) -> Iterator[list[_Entry[Item]]]:
    """Objects page by page."""
    run: list[_Entry[Item]] = []
    size = 0
    for entry in entries:
        run.append(entry)
        size += entry.size
        if entry.place % _OBJECTS_IN_A_PAGE == 0 or size >= LARGE:
            yield run
            run, size = [], 0
    if run:
        yield run
