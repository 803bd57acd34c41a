"""A log on disk: a file that is written to and, beside it, older pieces of it with numbers at their ends.

A piece that is full is renamed and another is begun, at any time and also while it is read. So pieces are held open by
whoever reads them, and known by what they are, not by what they are called. Nothing is written to a piece once there
is a newer one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shoal.cluster.node.process.answers.records import FULL, LETTER, TIME

BLOCK = 256 * 1024
_MOST_HELD = 32
"""Pieces that one slow reader may keep from going; of what comes while it holds so many it misses the oldest."""
_ATTEMPTS = 5
_MOST_MISSING = 2
"""Names in a row that no piece has at a moment: while pieces are renamed, one name after the other is free."""


@dataclass(slots=True, eq=False)
class _Piece:
    descriptor: int
    identity: tuple[int, int]
    offset: int = 0


class LogFiles:
    """One reader's way through a log, from the oldest piece to the newest. All of its methods touch the disk."""

    def __init__(self, path: Path, *, is_followed: bool) -> None:
        """One that is not followed ends where the log ends when it is opened, however it grows."""
        self._path = path
        self._is_followed = is_followed
        self._pieces: list[_Piece] = []
        self._last_size = 0

    def open(self) -> None:
        """Goes to the beginning of what is kept."""
        self.close()
        self._pieces = _opened(self._path)
        if self._pieces:
            self._last_size = os.fstat(self._pieces[-1].descriptor).st_size

    def close(self) -> None:
        """Lets go of all pieces."""
        while self._pieces:
            self._drop_oldest()

    def skip_before(self, since: bytes) -> None:
        """Passes over pieces in which everything is older than this."""
        while len(self._pieces) > 1 and os.pread(self._pieces[1].descriptor, TIME, 0) < since:
            self._drop_oldest()

    def skip_to_last(self, lines: int) -> None:
        """Passes over all but the last so many lines; one that has not ended yet is a line too."""
        counted, is_at_end = 0, True
        for index in reversed(range(len(self._pieces))):
            is_newest = index == len(self._pieces) - 1
            descriptor = self._pieces[index].descriptor
            size = self._last_size if is_newest else os.fstat(descriptor).st_size
            for end, is_full in _backwards(descriptor, size):
                if is_full or is_at_end:
                    if counted == lines:
                        self._pieces[index].offset = end
                        for _ in range(index):
                            self._drop_oldest()
                        return
                    counted += 1
                is_at_end = False

    def read(self) -> bytes:
        """The next records, whole ones; nothing where there are no more, or none yet."""
        size = BLOCK
        while True:
            self._find_newer()
            if not self._pieces:
                return b""
            has_newer = len(self._pieces) > 1
            piece = self._pieces[0]
            left = size if self._is_followed or has_newer else self._last_size - piece.offset
            data = os.pread(piece.descriptor, min(size, left), piece.offset)
            end = data.rfind(b"\n") + 1
            if end:
                piece.offset += end
                return data[:end]
            if len(data) == size:
                size *= 2
            elif has_newer:
                self._drop_oldest()
            else:
                return b""

    def _find_newer(self) -> None:
        """Takes hold of pieces that were begun since the newest one that is held."""
        if not self._is_followed or len(self._pieces) >= _MOST_HELD:
            return
        if self._pieces and _identity(self._path) in (None, self._pieces[-1].identity):
            return
        found = _opened(self._path)
        known = {piece.identity for piece in self._pieces}
        fresh = max((index + 1 for index, piece in enumerate(found) if piece.identity in known), default=0)
        for piece in found[:fresh]:
            os.close(piece.descriptor)
        self._pieces += found[fresh:]

    def _drop_oldest(self) -> None:
        os.close(self._pieces.pop(0).descriptor)


def _opened(path: Path) -> list[_Piece]:
    """All pieces of a log, the oldest first."""
    pieces: list[_Piece] = []
    for _ in range(_ATTEMPTS):
        # From the newest to the oldest: one that is renamed meanwhile is met again, and none is passed by.
        number = missing = 0
        while missing <= _MOST_MISSING:
            try:
                piece = _open(path.with_name(f"{path.name}.{number}") if number else path)
            except FileNotFoundError:
                missing += 1
            else:
                missing = 0
                if any(piece.identity == known.identity for known in pieces):
                    os.close(piece.descriptor)
                else:
                    pieces.append(piece)
            number += 1
        if not pieces or _identity(path) in (None, pieces[0].identity):
            break
        # Another was begun while we looked, so that their order may not be what it seems.
        for piece in pieces:
            os.close(piece.descriptor)
        pieces.clear()
    return pieces[::-1]


def _open(path: Path) -> _Piece:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    return _Piece(descriptor, (status.st_dev, status.st_ino))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _backwards(descriptor: int, begin: int) -> Iterator[tuple[int, bool]]:
    """Where each record of a file's beginning ends, from the last to the first, and whether it ends a line."""
    rest = b""
    is_whole = False
    while begin > 0:
        size = min(BLOCK, begin)
        begin -= size
        data = os.pread(descriptor, size, begin) + rest
        if not is_whole:
            data = data[: data.rfind(b"\n") + 1]
            is_whole = bool(data)
        first = 0 if begin == 0 else data.find(b"\n") + 1
        end = begin + len(data)
        for line in reversed(data[first:].split(b"\n")[:-1]):
            yield end, line[LETTER : LETTER + 1] == FULL
            end -= len(line) + 1
        rest = data[:first]
