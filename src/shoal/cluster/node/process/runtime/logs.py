"""Writing a container's output to its log, in the form of container runtimes.

Each line is ``<time> <stream> <tag> <text>``. The tag is F where the text ends a line of the program's, and P where
the line goes on in the next entry of the same stream: because it is long, or because the program has not ended it yet.
A log that has grown large is put aside under a number, and the oldest one is removed.
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

LONGEST_TEXT = 16 * 1024
LARGEST_FILE = 10 * 1024 * 1024
MOST_FILES = 5
"""The one that is written to, and the older ones that are kept."""


class ContainerLog:
    """The log of one container, of bounded size.

    It writes what the disk takes and drops the rest, so that a full disk does not stop a program; an entry is whole or
    not there.
    """

    def __init__(
        self, path: Path, *, patience: float = 0, largest_file: int = LARGEST_FILE, most_files: int = MOST_FILES
    ) -> None:
        """``patience`` is how many seconds the start of a line waits for the rest of it."""
        self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = path.name
        self._largest_file = largest_file
        self._most_files = most_files
        self._file: int | None = None
        self._size = 0
        self._patience = patience
        self._unfinished: dict[bytes, bytes] = {}
        self._due: dict[bytes, float] = {}
        """When unfinished lines have waited long enough."""
        self._open()

    @property
    def rest(self) -> float | None:
        """Seconds until text that waits for the end of its line has waited long enough; None where there is none."""
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    @property
    def descriptors(self) -> list[int]:
        """What it keeps open."""
        return [self._folder] if self._file is None else [self._folder, self._file]

    def add(self, stream: bytes, output: bytes) -> None:
        """Takes what a program wrote; the start of a line that it has not ended is held back until ``settle``."""
        lines, newline, rest = (self._unfinished.pop(stream, b"") + output).rpartition(b"\n")
        if newline:
            self._due.pop(stream, None)
        opening = _time_now() + b" " + stream
        entries = _entries(lines, opening) if newline else b""
        if len(rest) >= LONGEST_TEXT:
            cut = len(rest) - len(rest) % LONGEST_TEXT
            entries += _pieces(rest[:cut], opening)
            rest = rest[cut:]
        if rest:
            self._unfinished[stream] = rest
            self._due.setdefault(stream, time.monotonic() + self._patience)
        if entries:
            self._write(entries)

    def settle_due(self) -> None:
        """Writes starts of lines that have waited long enough."""
        now = time.monotonic()
        for stream in [stream for stream, due in self._due.items() if due <= now]:
            self.settle(stream)

    def settle(self, stream: bytes) -> None:
        """Writes the start of a line that the program seems to leave at that, such as a prompt."""
        self._due.pop(stream, None)
        rest = self._unfinished.pop(stream, b"")
        if rest:
            self._write(_pieces(rest, _time_now() + b" " + stream))

    def _write(self, entries: bytes) -> None:
        if self._file is None:
            self._open()
        if self._file is None:
            return
        left = memoryview(entries)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            try:
                os.ftruncate(self._file, self._size)
            except OSError:
                return
            return
        self._size += len(entries)
        if self._size >= self._largest_file:
            self._rotate()

    def _rotate(self) -> None:
        """Puts the file aside as number 1, after those that are there have moved up by one."""
        assert self._file is not None
        os.close(self._file)
        self._file = None
        names = [self._name, *(f"{self._name}.{number}" for number in range(1, self._most_files))]
        for newer, older in reversed(list(itertools.pairwise(names))):
            try:
                os.rename(newer, older, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except OSError:
                continue
        self._open()
        if self._file is not None and self._size >= self._largest_file:
            self._size = 0
            os.ftruncate(self._file, 0)  # it could not be put aside, and may not grow either

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(self._name, flags, 0o640, dir_fd=self._folder)
            self._size = os.fstat(self._file).st_size
        except OSError:
            self._file = None


def _entries(lines: bytes, opening: bytes) -> bytes:
    """Whole lines, without the newline of the last, as entries."""
    if not _has_long_line(lines):
        tagged = opening + b" F "
        return tagged + lines.replace(b"\n", b"\n" + tagged) + b"\n"
    entries = []
    for line in lines.split(b"\n"):
        last = max(len(line) - 1, 0) // LONGEST_TEXT * LONGEST_TEXT
        entries += [_pieces(line[:last], opening), opening, b" F ", line[last:], b"\n"]
    return b"".join(entries)


def _pieces(text: bytes, opening: bytes) -> bytes:
    """Text whose line goes on, as entries."""
    starts = range(0, len(text), LONGEST_TEXT)
    return b"".join(b"%b P %b\n" % (opening, text[start : start + LONGEST_TEXT]) for start in starts)


def _has_long_line(lines: bytes) -> bool:
    start = 0
    while len(lines) - start > LONGEST_TEXT:
        newline = lines.rfind(b"\n", start, start + LONGEST_TEXT + 1)
        if newline < 0:
            return True
        start = newline + 1
    return False


def _time_now() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % nanoseconds
