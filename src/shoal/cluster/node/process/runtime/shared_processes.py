"""A PID namespace that the containers of a pod share: its first process, which does nothing but reap."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

from shoal.cluster.node.process.runtime.control import GO, has_ended
from shoal.cluster.node.process.runtime.forks import fork
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWPID, end_with_parent, unshare


class SharedProcesses:
    """A PID namespace, kept by a process of its own until it is closed; then all that is in it ends."""

    def __init__(self) -> None:
        """Makes it, or raises OSError."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            guide = fork(lambda: _guide(theirs), kept=[theirs.fileno()])
        said = self._control.recv(64)
        os.waitpid(guide, 0)
        if not said:
            self._control.close()
            raise OSError("the PID namespace of a pod could not be made")
        self._control.send(GO)
        self.namespace = os.open(f"/proc/{int(said)}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Ends what is in it."""
        os.close(self.namespace)
        self._control.close()


def _guide(control: socket.socket) -> None:
    """Makes the namespace, and its first process, which becomes a child of the runtime."""
    end_with_parent()
    unshare(CLONE_NEWPID)
    control.send(str(fork(lambda: _keep(control), kept=[control.fileno()])).encode())


def _keep(control: socket.socket) -> None:
    """The life of the first process: children that others left come to it, and are reaped by the kernel."""
    if control.recv(len(GO)) != GO:
        return
    end_with_parent()
    if has_ended(control):
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/comm").write_text("shoal-pause")
    control.recv(1)  # until the runtime lets go
