"""The form in which runtimes keep what containers write: a record is a time, a stream, a letter and a text.

    2026-01-01T12:00:00.123456789Z stdout F a line
    2026-01-01T12:00:01.123456789Z stderr P a piece of a line that has not ended yet

Everything before the text has the same length in every record. That is what makes a log quick to read: whole blocks of
records are taken apart at once, and no record is looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

TIME = len("2026-01-01T12:00:00.123456789Z")
STREAM = slice(TIME + 1, TIME + 1 + len("stdout"))
LETTER = STREAM.stop + 1
TEXT = LETTER + 2
FULL, PARTIAL = b"F", b"P"

_FULL = FULL[0]
_HEADS = frozenset(f"{stream} {letter} ".encode() for stream in ("stdout", "stderr") for letter in "FP")


class Record(NamedTuple):
    """What was written at once, with the line's end where it had one."""

    stream: str
    text: bytes


def timestamp(moment: datetime) -> bytes:
    """A time as records begin with it; so written, times are ordered as their bytes are."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def records(block: bytes, *, after: bytes = b"") -> Iterator[Record]:
    """The records of a block, each of which ends in it, after a time; what is no record is passed over."""
    for line in block.split(b"\n"):
        if line[:TIME] > after and line[STREAM.start : TEXT] in _HEADS:
            text = line[TEXT:]
            yield Record(line[STREAM].decode(), text + b"\n" if line[LETTER] == _FULL else text)


def last_time(block: bytes) -> bytes:
    """When the last record of a block was written."""
    begin = block.rfind(b"\n", 0, -1) + 1
    return block[begin : begin + TIME]


class Reading:
    """Makes of blocks of records what the container wrote; ``since`` leaves out what is older."""

    def __init__(self, *, since: bytes = b"", timestamps: bool = False) -> None:
        self._since = since
        self._timestamps = timestamps
        self._is_line_begun = False

    def text(self, block: bytes) -> bytes:
        """The text of a block, each record of which ends in it."""
        lines = block.split(b"\n")
        lines.pop()
        try:
            return self._text(lines)
        except IndexError:
            # A machine that lost its power may leave less than a record behind.
            return self._text([line for line in lines if line[STREAM.start : TEXT] in _HEADS])

    def _text(self, lines: list[bytes]) -> bytes:
        if self._timestamps:
            return b"".join(self._timed(lines))
        if self._since:
            since = self._since
            lines = [line for line in lines if line[:TIME] >= since]
        return b"".join([line[TEXT:] + b"\n" if line[LETTER] == _FULL else line[TEXT:] for line in lines])

    def _timed(self, lines: list[bytes]) -> Iterator[bytes]:
        since = self._since
        for line in lines:
            is_full = line[LETTER] == _FULL
            if line[:TIME] >= since:
                if not self._is_line_begun:
                    yield line[: TIME + 1]
                yield line[TEXT:]
                if is_full:
                    yield b"\n"
            self._is_line_begun = not is_full
