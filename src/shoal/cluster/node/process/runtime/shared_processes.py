"""A PID namespace that the containers of a pod share: its first process, which does nothing but reap."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

from shoal.cluster.node.process.runtime.forks import fork
from shoal.cluster.node.process.runtime.launcher import Launcher
from shoal.cluster.node.process.runtime.orders import StartPause
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWPID, PR_SET_PDEATHSIG, prctl, unshare


class SharedProcesses:
    """A PID namespace, kept by a process of its own until it is closed; then all that is in it ends."""

    def __init__(self, launcher: Launcher) -> None:
        """Makes it, or raises OSError."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            launcher.order(StartPause(), [theirs.fileno()])
            launcher.wait_until_sent()
        said = self._control.recv(64)
        if not said:
            self._control.close()
            raise OSError("the PID namespace of a pod could not be made")
        self.namespace = os.open(f"/proc/{int(said)}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Ends what is in it."""
        os.close(self.namespace)
        self._control.close()


def start_pause(control: socket.socket) -> None:
    """Makes the namespace, and its first process, which becomes a child of the runtime."""
    unshare(CLONE_NEWPID)
    control.send(str(fork(lambda: _keep(control), kept=[control.fileno()])).encode())


def _keep(control: socket.socket) -> None:
    """The life of the first process: children that others left come to it, and are reaped by the kernel."""
    prctl(PR_SET_PDEATHSIG, 0)  # its parent ends at once
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/comm").write_text("shoal-pause")
    control.recv(1)  # until the runtime lets go, or ends
