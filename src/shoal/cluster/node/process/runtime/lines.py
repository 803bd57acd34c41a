"""Lines over a Unix socket, with file descriptors beside them, for either end and without ever waiting.

Descriptors arrive with the first byte of the line that they were sent with, so they are kept in the order in which
they came until the line that says how many of them are its own has been read.
"""

from __future__ import annotations

import array
import os
import socket
from collections import deque
from collections.abc import Iterator, Sequence

LONGEST_LINE = 8 * 1024 * 1024
MOST_UNSENT = 16 * 1024 * 1024
"""Bytes that wait for a reader; one who lets more pile up has stopped to listen."""
MOST_DESCRIPTORS = 16
"""With one line, and in wait for the line that takes them."""
_PIECE = 256 * 1024


class Lost(Exception):
    """The other end is gone, or does not keep to the rules; nothing more comes from it."""


class Channel:
    """One end of a connection. The socket is non-blocking; its owner says when it may be read and written."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._unread = bytearray()
        self._searched = 0
        self._arrived: deque[int] = deque()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._unsent_bytes = 0

    def fileno(self) -> int:
        """The socket, for those who wait for it."""
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        """Whether something waits until the socket may be written."""
        return bool(self._unsent)

    def receive(self) -> Iterator[bytes]:
        """The lines that are whole with what has arrived, when the socket is readable: a bounded piece at a time."""
        piece = self._receive_piece()
        if piece is None:
            return
        if not piece:
            raise Lost("the other end is closed")
        self._unread += piece
        yield from self._whole_lines()
        if len(self._unread) > LONGEST_LINE:
            raise Lost(f"a line is longer than {LONGEST_LINE} bytes")

    def take(self, count: int) -> list[int]:
        """The descriptors that came with the line just read; whoever takes them closes them."""
        if count > len(self._arrived) or count < 0:
            raise Lost("a line lacks the descriptors that it announces")
        return [self._arrived.popleft() for _ in range(count)]

    def send(self, line: bytes, descriptors: Sequence[int] = ()) -> None:
        """Sends a line, or as much of it as goes now; the descriptors stay the caller's."""
        owned = [os.dup(one) for one in descriptors]
        self._unsent.append((memoryview(line + b"\n"), owned))
        self._unsent_bytes += len(line) + 1
        if len(self._unsent) == 1:
            self.flush()
        if self._unsent_bytes > MOST_UNSENT:
            raise Lost("the other end does not read what it is told")

    def flush(self) -> None:
        """Sends what waits, as far as it goes now."""
        while self._unsent:
            rest, descriptors = self._unsent[0]
            try:
                sent = self._send_piece(rest, descriptors)
            except BlockingIOError:
                return
            except OSError as error:
                raise Lost(f"the other end cannot be written to: {error.strerror}") from error
            for one in descriptors:
                os.close(one)
            self._unsent_bytes -= sent
            if sent == len(rest):
                self._unsent.popleft()
            else:
                self._unsent[0] = (rest[sent:], [])

    def close(self) -> None:
        """Lets go of the socket and of every descriptor on its way."""
        self._socket.close()
        for one in self._arrived:
            os.close(one)
        self._arrived.clear()
        for _, descriptors in self._unsent:
            for one in descriptors:
                os.close(one)
        self._unsent.clear()

    def _receive_piece(self) -> bytes | None:
        space = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            piece, ancillary, flags, _ = self._socket.recvmsg(_PIECE, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Lost(f"the other end is gone: {error.strerror}") from error
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                arrived = array.array("i")
                arrived.frombytes(content[: len(content) - len(content) % arrived.itemsize])
                self._arrived.extend(arrived)
        if flags & socket.MSG_CTRUNC or len(self._arrived) > MOST_DESCRIPTORS:
            raise Lost(f"more than {MOST_DESCRIPTORS} descriptors came at once")
        return piece

    def _whole_lines(self) -> Iterator[bytes]:
        while (end := self._unread.find(b"\n", self._searched)) >= 0:
            line = bytes(self._unread[:end])
            del self._unread[: end + 1]
            self._searched = 0
            yield line
        self._searched = len(self._unread)

    def _send_piece(self, piece: memoryview, descriptors: Sequence[int]) -> int:
        if not descriptors:
            return self._socket.send(piece, socket.MSG_NOSIGNAL)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        return self._socket.sendmsg([piece], [rights], socket.MSG_NOSIGNAL)
