"""The runtime's side of its zygote: starts it, gives it orders, and hears which of its children ended."""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

import shoal
from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.orders import Order, written
from shoal.cluster.node.process.runtime.sealed import spawn_sealed

ENDED = struct.Struct("=ii")
"""What the zygote tells of a child: its pid, and how it ended as ``os.waitpid`` gives it."""
READY = b"ready"
SEARCH_PATH = "SHOAL_SEARCH_PATH"
_CODE = (
    f"import os, sys; sys.path[:] = os.environ.pop({SEARCH_PATH!r}).split(os.pathsep); "
    "from shoal.cluster.node.process.runtime.zygote import main; main()"
)
_PATIENCE = 60.0
"""Seconds that an interpreter may take to start, on a machine that is very busy."""


class Launcher:
    """A zygote and the orders that it has not taken yet; one that ends is replaced."""

    def __init__(self) -> None:
        """Starts the zygote in the namespaces that this process is in, or raises OSError."""
        self._unsent: deque[list[int]] = deque()
        self._socket = _started()

    def fileno(self) -> int:
        """The socket to watch: for reading, and for writing while ``has_unsent``. ``ended`` may replace it."""
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        """Whether orders wait until the socket can be written."""
        return bool(self._unsent)

    def order(self, order: Order, descriptors: Sequence[int]) -> None:
        """Has an order carried out; the descriptors stay the caller's. What comes of it is told on the first one."""
        self._unsent.append([written(order), *(os.dup(one) for one in descriptors)])
        self.flush()

    def flush(self) -> None:
        """Sends what waits, as far as it goes now."""
        while self._unsent:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", self._unsent[0]))
            try:
                self._socket.sendmsg([b"!"], [rights], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:
                return  # the zygote has ended: ``ended`` notices, and the next one gets what waits
            for one in self._unsent.popleft():
                os.close(one)

    def wait_until_sent(self) -> None:
        """Waits until the zygote has taken all orders."""
        while self._unsent:
            select.select([], [self._socket], [], 1.0)
            self.flush()

    def ended(self) -> Iterator[tuple[int, int]]:
        """The children of the zygote that ended, with how they did; the zygote itself is replaced where it has."""
        while True:
            try:
                told = self._socket.recv(ENDED.size)
            except BlockingIOError:
                return
            except ConnectionResetError:
                told = b""
            if not told:
                note("the zygote has ended", then="another one is started")
                self._socket.close()
                self._socket = _started()
                self.flush()
                return
            yield ENDED.unpack(told)

    def close(self) -> None:
        """Ends the zygote, and forgets what waits."""
        self._socket.close()
        for descriptors in self._unsent:
            for one in descriptors:
                os.close(one)
        self._unsent.clear()


def _started() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        spawn_sealed(_CODE, environment={SEARCH_PATH: os.pathsep.join(_search_path())}, descriptor=theirs.fileno())
    ours.settimeout(_PATIENCE)
    with suppress(OSError):
        if ours.recv(len(READY)) == READY:
            ours.setblocking(False)
            return ours
    ours.close()
    raise OSError("a sealed copy of the interpreter did not start: see what it wrote, or set vm.memfd_noexec to 0")


def _search_path() -> list[str]:
    """Where this process finds modules: what hooks of its environment add is named, since the zygote has none."""
    packages = [str(Path(module.__file__ or "").absolute().parents[1]) for module in (shoal, msgspec)]
    return list(dict.fromkeys([*packages, *(path for path in sys.path if path)]))
