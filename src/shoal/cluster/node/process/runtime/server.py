"""The runtime's only loop: clients that ask, containers that report, children that end.

It never waits for anybody: a client that does not read, sends nonsense or goes away is cut off, and no container and no
other client notices.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from shoal.cluster.node.process.runtime.cgroups import Cgroups
from shoal.cluster.node.process.runtime.connections import Connection
from shoal.cluster.node.process.runtime.forks import ended_children
from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.loop import Loop
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import Happening, Line
from shoal.cluster.node.process.runtime.verbs import Verbs

_MOST_CONNECTIONS = 64
_LAST_WAIT = 3.0
"""Seconds that the kernel may take to end what was killed."""
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server:
    """Serves a socket until it is told to stop and all containers have ended."""

    def __init__(self, path: Path, node: Node, cgroups: Cgroups | None, *, grace: float) -> None:
        self._path = path
        self._grace = grace
        self._loop = Loop()
        self._connections: set[Connection] = set()
        self._verbs = Verbs(node, cgroups, self._loop, tell_all=self._tell_all)
        self._deadline: tuple[float, Callable[[], None]] | None = None
        self._is_over = False
        self._listening = _listening(path)
        self._loop.watch(self._listening.fileno(), self._accept)
        self._launcher = node.launcher
        self._loop.watch(self._launcher.fileno(), self._hear_launcher)
        self._watch_signals()

    def serve(self) -> None:
        """Does all the work, and returns when nothing is left to be done."""
        while not self._is_over:
            self._loop.turn(self._until_deadline())
            if self._verbs.is_stopping and not self._verbs.running:
                break
            self._loop.change(self._launcher.fileno(), with_writing=self._launcher.has_unsent)

    def _tell_all(self, happening: Happening) -> None:
        for connection in list(self._connections):
            connection.tell(Line(happening=happening))

    def _accept(self, _: int) -> None:
        with suppress(BlockingIOError):
            while True:
                connected, _address = self._listening.accept()
                if len(self._connections) >= _MOST_CONNECTIONS:
                    connected.close()
                    note("a client was turned away", why=f"{_MOST_CONNECTIONS} are connected")
                    continue
                self._connections.add(Connection(connected, self._loop, answer=self._verbs.answer, closed=self._forget))

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._verbs.hang_up(connection)

    def _watch_signals(self) -> None:
        reading, writing = socket.socketpair()
        for one in (reading, writing):
            one.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        for number in (*_STOPPING, signal.SIGCHLD):
            signal.signal(number, _only_wake)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        self._wakes = (reading, writing)
        self._loop.watch(reading.fileno(), self._woken)

    def _woken(self, _: int) -> None:
        numbers = self._wakes[0].recv(4096)
        if signal.SIGCHLD in numbers:
            self._reap()
        if any(number in numbers for number in _STOPPING):
            self._stop()

    def _reap(self) -> None:
        for pid, status in ended_children():
            self._verbs.reaped(pid, status)

    def _hear_launcher(self, _: int) -> None:
        """Passes on which children of the zygote ended, and sends it the orders that wait."""
        before = self._launcher.fileno()
        for pid, status in self._launcher.ended():
            self._verbs.reaped(pid, status)
        if self._launcher.fileno() != before:  # another zygote
            self._loop.forget(before)
            self._loop.watch(self._launcher.fileno(), self._hear_launcher)
        self._launcher.flush()

    def _stop(self) -> None:
        """Asks all containers to end, and then makes them; whoever asks twice does not want to wait."""
        wait = 0.0 if self._verbs.is_stopping else self._grace
        note("stopping", containers=self._verbs.running, grace=wait)
        if not self._verbs.is_stopping:
            self._hang_up()
        self._verbs.stop()
        self._deadline = (time.monotonic() + wait, self._kill)

    def _hang_up(self) -> None:
        """Lets all clients go, and takes no more.

        Nobody is told of ends that are our own doing: a program that ends well when it is asked to is not done.
        """
        self._loop.forget(self._listening.fileno())
        self._listening.close()
        self._path.unlink(missing_ok=True)
        for connection in list(self._connections):
            connection.close()

    def _kill(self) -> None:
        self._verbs.kill_all()
        self._deadline = (time.monotonic() + _LAST_WAIT, self._give_up)

    def _give_up(self) -> None:
        note("containers did not end", containers=self._verbs.running)
        self._is_over = True

    def _until_deadline(self) -> float | None:
        """Seconds until the next step of stopping is due; does it, if it is."""
        if self._deadline is None:
            return None
        at, step = self._deadline
        if (left := at - time.monotonic()) > 0:
            return left
        self._deadline = None
        step()
        return 0.0


def _only_wake(number: int, frame: FrameType | None) -> None:
    """The loop reads which signal it was."""


def _listening(path: Path) -> socket.socket:
    """A socket for its owner alone, whatever was at its place before; a long path is named by its folder."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    before = os.umask(0o177)
    try:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.umask(before)
        os.close(folder)
    made.listen(_MOST_CONNECTIONS)
    made.setblocking(False)
    return made
