"""A container: how it is launched, what is known of it, and how it is ended.

The zygote forks a *guide*, which enters the namespaces of the pod and forks the *init* into those of the container
(see ``init``). The guide ends, so that the init becomes a child of the runtime, which tells it so; from then on the
init ends with the runtime, and before that it ends when it sees the runtime's end of their socket close. The zygote and
its guides end with the runtime: at no moment of a launch is there a process that would outlive it.
"""

from __future__ import annotations

import fcntl
import functools
import operator
import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from shoal.cluster.node.process.runtime.cgroups import Cgroup
from shoal.cluster.node.process.runtime.control import (
    GO,
    Born,
    Failed,
    Guided,
    Over,
    Report,
    Running,
    heard,
    socket_pair,
)
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.orders import StartContainer
from shoal.cluster.node.process.runtime.program import START_ERROR
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState
from shoal.cluster.node.process.runtime.syscalls import (
    CLONE_NEWCGROUP,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
)

_KIND_OF_NAMESPACE = 0xB703


class Started(msgspec.Struct, frozen=True):
    """The program was executed."""


class StartFailed(msgspec.Struct, frozen=True):
    """The program could not be executed, and nothing of the container is left."""

    reason: str
    message: str


class Ended(msgspec.Struct, frozen=True):
    """The program ended, and all that ran with it."""


Progress = Started | StartFailed | Ended


class Launch:
    """A container from its start until it was forgotten."""

    def __init__(
        self, spec: ContainerSpec, *, node: Node, cgroup: Cgroup | None, kinds: int, control: socket.socket
    ) -> None:
        self.spec = spec
        self.node = node
        self.cgroup = cgroup
        self.kinds = kinds
        """The kinds of namespaces that are not the runtime's."""
        self.state = ContainerState(id=spec.id, sandbox=spec.sandbox, name=spec.name, attempt=spec.attempt)
        self.pidfd: int | None = None
        """The program, once it was executed."""
        self._control = control
        self._guide: int | None = None
        """Not known until it says so; 0 where there is none, or none any more."""
        self._init = 0
        self._is_doomed = False
        self._stdin: int | None = None
        self._terminal: int | None = None
        self._told: list[tuple[Report | None, list[int]]] = []
        """What was heard and not taken in yet; None for the silence after the last word."""
        self._is_silent = False
        self._is_over = False
        self._was_killed = False

    def fileno(self) -> int:
        """The socket on which the container tells what happens."""
        return self._control.fileno()

    def advance(self) -> Progress | None:
        """Takes in what the container tells; None where that is nothing, yet or any more, that others care for."""
        self._listen()
        if self._is_over or not self._told:
            return None
        report, descriptors = self._told.pop(0)
        match report:
            case Running(started):
                self.pidfd, self._terminal = (*descriptors, None)[:2]
                self._update(pid=_pid_of(descriptors[0]), started=started)
                return Started()
            case Failed(reason, message):
                return self._failed(reason, message)
            case Over(finished, status):
                return self._ended(finished, status)
            case _ if self.pidfd is None:
                return self._failed(START_ERROR, "the container was ended before its program was started")
            case _:
                return self._ended(time.time(), signal.SIGKILL)

    def reaped(self, pid: int, status: int) -> None:
        """A child of the runtime ended, perhaps one of these."""
        self._listen()  # the init's pid was told before it became a child of the runtime
        if pid == self._guide:
            self._guide = 0
            with suppress(OSError):
                self._control.send(GO, socket.MSG_NOSIGNAL)
        elif pid == self._init:
            self._init = 0

    @property
    def is_gone(self) -> bool:
        """Whether its first process, and with it all others, has ended and was reaped."""
        return not self._init and (self._is_silent if self._guide is None else self._guide == 0)

    def signal(self, number: int) -> None:
        """Sends the program a signal; one that has ended gets none."""
        if self.pidfd is not None and not self._is_over:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)

    def kill(self) -> None:
        """Ends the program, upon which the init ends the rest; asked for again, it ends the init at once too."""
        if self.pidfd is not None and not self._was_killed:
            self._was_killed = True
            self.signal(signal.SIGKILL)
            return
        self._is_doomed = True
        self._end_processes()

    def _end_processes(self) -> None:
        for pid in (self._guide, self._init):
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def stdin(self) -> int | None:
        """A descriptor for what the program reads, or its terminal's master, which the caller closes.

        Where the first one who leaves closes it, it is given but once.
        """
        held = self._terminal if self.spec.has_tty else self._stdin
        if held is None or self._is_over:
            return None
        if self.spec.closes_stdin and not self.spec.has_tty:
            self._stdin = None
            return held
        return fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, 3)

    def close(self) -> None:
        """Lets go of it; if it runs, it ends."""
        self._is_over = self._is_silent = True
        self._control.close()
        for descriptor in (self.pidfd, self._stdin, self._terminal):
            if descriptor is not None:
                os.close(descriptor)
        self.pidfd = self._stdin = self._terminal = None

    def _listen(self) -> None:
        while not self._is_silent:
            try:
                told = heard(self._control)
            except BlockingIOError:
                return
            self._is_silent = told is None
            report, descriptors = told or (None, [])
            match report:
                case Guided(pid):
                    self._guide = pid
                case Born(pid):
                    self._init = pid
                    self._guide = self._guide or 0
                case _:
                    self._told.append((report, descriptors))
            if self._is_doomed:
                self._end_processes()

    def _failed(self, reason: str, message: str) -> StartFailed:
        self._is_over = True
        return StartFailed(reason, message)

    def _ended(self, finished: float, status: int) -> Ended:
        self._is_over = True
        code = os.waitstatus_to_exitcode(status)
        self._update(finished=finished, exit_code=code if code >= 0 else 128 - code, signal=max(-code, 0))
        return Ended()

    def _update(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)


def launch(
    spec: ContainerSpec, *, node: Node, namespaces: Sequence[int], joined: Launch | None, cgroup: Cgroup | None
) -> Launch:
    """Begins a container in the namespaces of its pod; ``joined`` is one whose processes it shares.

    It returns at once: what becomes of the container is told by ``advance``.
    """
    facts = node.facts
    entered = [] if joined is None or joined.pidfd is None else [(joined.pidfd, CLONE_NEWPID)]
    entered += [(descriptor, fcntl.ioctl(descriptor, _KIND_OF_NAMESPACE)) for descriptor in namespaces]
    has_own_processes = not any(kind == CLONE_NEWPID for _, kind in entered)
    has_cgroup = cgroup is not None and facts.cgroups == "v2"
    made = CLONE_NEWNS | (CLONE_NEWPID if has_own_processes else 0) | (CLONE_NEWCGROUP if has_cgroup else 0)
    kinds = made | CLONE_NEWUSER | functools.reduce(operator.or_, (kind for _, kind in entered), 0)

    ours, theirs = socket_pair()
    launched = Launch(spec, node=node, cgroup=cgroup, kinds=kinds if facts.has_namespaces else 0, control=ours)
    reads, launched._stdin = os.pipe() if spec.has_stdin and not spec.has_tty else (None, None)
    order = StartContainer(
        spec=spec,
        facts=facts,
        entered=[kind for _, kind in entered],
        made=made,
        has_own_processes=has_own_processes and facts.has_namespaces,
        has_cgroup=has_cgroup,
        has_stdin=reads is not None,
        cgroup=cgroup_folders(cgroup),
    )
    given = [theirs.fileno(), *(descriptor for descriptor, _ in entered), *([] if reads is None else [reads])]
    try:
        node.launcher.order(order, given)
    finally:
        theirs.close()
        if reads is not None:
            os.close(reads)
    return launched


def cgroup_folders(cgroup: Cgroup | None) -> list[str]:
    """Where a process joins a control group; empty where there is none."""
    return [] if cgroup is None else [str(folder) for folder in cgroup.folders]


def _pid_of(pidfd: int) -> int:
    """The number of a process, as this one's /proc shows it; 0 when it has ended."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return max(int(line.split()[1]), 0)
    return 0
