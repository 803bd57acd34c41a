"""Further commands in a container that runs.

A copy of the zygote (see ``zygote``) enters all namespaces of the container's program, and its cgroup, and takes the
rights that were requested. The command is a child of the runtime, with no init of its own: what it leaves behind is
adopted by the container's init and ends with the container, and so does the command itself.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from shoal.cluster.node.process.runtime.container import Launch, Started, StartFailed, cgroup_folders
from shoal.cluster.node.process.runtime.control import Born, Failed, Running, heard, socket_pair
from shoal.cluster.node.process.runtime.orders import StartCommand
from shoal.cluster.node.process.runtime.program import START_ERROR
from shoal.cluster.node.process.runtime.protocol import ExecSpec


class Finished(msgspec.Struct, frozen=True):
    """The command ended."""

    exit_code: int
    """128 + the signal where one ended it."""


class RunningCommand:
    """A command from its start until it was forgotten."""

    def __init__(self, control: socket.socket) -> None:
        self.terminal: int | None = None
        """The master of its terminal, once it runs; whoever takes it sets this to None, and closes it."""
        self._exit_code: int | None = None
        self._control = control
        self._pid = 0
        self._outcome: Started | StartFailed | None = None
        self._is_start_told = False
        self._is_end_told = False

    def fileno(self) -> int:
        """The socket on which the command tells what becomes of its start; to be watched until that is known."""
        return self._control.fileno()

    def advance(self) -> Started | StartFailed | Finished | None:
        """What became of its start and then, by ``reaped``, how it ended, each said once; None where it has to wait."""
        self._listen()
        if self._outcome is not None and not self._is_start_told:
            self._is_start_told = True
            return self._outcome
        if isinstance(self._outcome, Started) and self._exit_code is not None and not self._is_end_told:
            self._is_end_told = True
            return Finished(self._exit_code)
        return None

    def reaped(self, pid: int, status: int) -> None:
        """A child of the runtime ended, perhaps this one."""
        self._listen()  # its pid was told before it became a child of the runtime
        if pid == self._pid and self._exit_code is None:
            code = os.waitstatus_to_exitcode(status)
            self._exit_code = code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """Sends the command a signal; one that has ended gets none."""
        if self._pid and self._exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def hang_up(self) -> None:
        """Tells the command and what it started that nobody is there any more, as a terminal does."""
        if self._pid and self._exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGHUP)
        self.signal(signal.SIGHUP)

    def close(self) -> None:
        """Lets go of it; if it runs, it ends."""
        self.signal(signal.SIGKILL)
        self._control.close()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def _listen(self) -> None:
        while self._outcome is None:
            try:
                told = heard(self._control)
            except BlockingIOError:
                return
            report, descriptors = told or (None, [])
            match report:
                case Born(pid):
                    self._pid = pid
                case Running():
                    self.terminal = descriptors[0]
                case Failed(reason, message):
                    self._outcome = StartFailed(reason, message)
                case _ if self._pid:
                    self._outcome = Started()  # executing a program closes the socket
                case _:
                    self._outcome = StartFailed(START_ERROR, "the command was ended before it was started")


def execute(spec: ExecSpec, container: Launch, descriptors: Sequence[int]) -> RunningCommand:
    """Begins a command in a container that runs, with three descriptors, or none where it has a terminal.

    It returns at once: what becomes of the command is told by ``advance``. The descriptors stay the caller's.
    """
    assert container.pidfd is not None
    ours, theirs = socket_pair()
    order = StartCommand(
        spec=spec,
        container=container.spec,
        facts=container.node.facts,
        kinds=container.kinds,
        cgroup=cgroup_folders(container.cgroup),
    )
    with theirs:
        container.node.launcher.order(order, [theirs.fileno(), container.pidfd, *descriptors])
    return RunningCommand(ours)
