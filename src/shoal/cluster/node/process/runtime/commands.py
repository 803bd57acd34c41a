"""Further commands in a container that runs.

A command enters all namespaces of the container's program, and its cgroup, and takes the rights that were asked for.
It is a child of the runtime, with no init of its own: what it leaves behind is adopted by the container's init and
ends with the container, and so does the command itself.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from shoal.cluster.node.process.runtime.container import Launch, Started, StartFailed
from shoal.cluster.node.process.runtime.control import Born, Failed, Running, heard, socket_pair, tell
from shoal.cluster.node.process.runtime.devices import open_terminal
from shoal.cluster.node.process.runtime.forks import fork
from shoal.cluster.node.process.runtime.privileges import limit_processes
from shoal.cluster.node.process.runtime.program import START_ERROR, CannotStart, Program, become, give, said
from shoal.cluster.node.process.runtime.protocol import ExecSpec
from shoal.cluster.node.process.runtime.syscalls import end_with_parent, setns

NOT_RUNNING = "NotRunning"


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
    command = RunningCommand(ours)
    pidfd, kinds, cgroup, runtime = container.pidfd, container.kinds, container.cgroup, os.getpid()
    kept = [theirs.fileno(), *descriptors]

    def begin() -> None:
        """What the first process does: it guides another into the namespaces, or where there are none it goes on."""
        end_with_parent()
        if os.getppid() != runtime:
            return
        try:
            if cgroup is not None:
                cgroup.enter()
            if not kinds:
                tell(theirs, Born(os.getpid()))
                _be_program(spec, container, descriptors, theirs)
                return
            setns(pidfd, kinds)
        except OSError as error:
            tell(theirs, Failed(NOT_RUNNING, f"the container cannot be entered: {said(error)}"))
            return
        tell(theirs, Born(fork(lambda: _be_program(spec, container, descriptors, theirs), kept=kept)))

    with theirs:
        fork(begin, kept=[*kept, pidfd])
    return command


def _be_program(spec: ExecSpec, container: Launch, descriptors: Sequence[int], control: socket.socket) -> None:
    """What a process does, inside, until it is the command."""
    facts, of_container = container.node.facts, container.spec
    may_change_ids = facts.has_namespaces or os.geteuid() == 0
    program = Program(
        argv=spec.argv,
        env=spec.env,
        directory=spec.directory or "/",
        ids=spec.ids,
        takes_ids=facts.has_all_ids and may_change_ids,
        capabilities=spec.capabilities if may_change_ids else None,
        may_gain_privileges=of_container.may_gain_privileges,
        ends_with_parent=not facts.has_namespaces,
        other_directory="" if facts.has_namespaces else of_container.scratch,
    )
    try:
        if spec.has_tty:
            master, slave = open_terminal(spec.rows, spec.columns)
            give(slave, spec.ids)
            tell(control, Running(time.time()), [master])
            descriptors = [slave, slave, slave]
        limit_processes(of_container.limits.processes)
        become(program, stdio=descriptors, has_terminal=spec.has_tty, kept=[control.fileno()])
    except CannotStart as error:
        tell(control, Failed(START_ERROR, str(error)))
    except OSError as error:
        tell(control, Failed(START_ERROR, f"cannot start the command: {said(error)}"))
