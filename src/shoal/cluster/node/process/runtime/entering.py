"""Carrying out the runtime's orders: what a copy of the zygote does until it is a guide, an init, or a program."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from shoal.cluster.node.process.runtime.cgroups import join
from shoal.cluster.node.process.runtime.control import Born, Failed, Guided, Running, tell
from shoal.cluster.node.process.runtime.devices import open_terminal
from shoal.cluster.node.process.runtime.forks import fork
from shoal.cluster.node.process.runtime.init import Place, run_init
from shoal.cluster.node.process.runtime.orders import Order, StartCommand, StartContainer, StartPause
from shoal.cluster.node.process.runtime.privileges import limit_processes
from shoal.cluster.node.process.runtime.program import START_ERROR, CannotStart, Program, become, give, said
from shoal.cluster.node.process.runtime.seccomp import has_filter
from shoal.cluster.node.process.runtime.shared_processes import start_pause
from shoal.cluster.node.process.runtime.syscalls import (
    PR_SET_PDEATHSIG,
    end_with_parent,
    leave_keyring,
    prctl,
    setns,
    unshare,
)

NOT_RUNNING = "NotRunning"


def carry_out(order: Order, descriptors: Sequence[int], *, zygote: int) -> None:
    """What a copy of the zygote does, which ends with it until it is somebody else's child."""
    end_with_parent()
    if os.getppid() != zygote:
        return
    with socket.socket(fileno=descriptors[0]) as control:
        match order:
            case StartContainer():
                _start_container(order, control, descriptors[1:])
            case StartCommand():
                _start_command(order, control, descriptors[1], descriptors[2:])
            case StartPause():
                start_pause(control)


def _start_container(order: StartContainer, control: socket.socket, descriptors: Sequence[int]) -> None:
    """What the guide does, or where there are no namespaces the init itself."""
    spec, facts = order.spec, order.facts
    stdin = descriptors[-1] if order.has_stdin else None
    place = Place(facts=facts, has_own_processes=order.has_own_processes, has_cgroup=order.has_cgroup, stdin=stdin)
    kept = [control.fileno()] if stdin is None else [control.fileno(), stdin]
    try:
        join(map(Path, order.cgroup))
        with suppress(OSError):  # where no more keyrings may be made it has the runtime's, which is empty
            leave_keyring()
        if not facts.has_namespaces:
            prctl(PR_SET_PDEATHSIG, 0)  # it has to end others first, and sees the runtime's end by the socket's
            tell(control, Born(os.getpid()))
            run_init(spec, place, control)
            return
        tell(control, Guided(os.getpid()))
        for descriptor, kind in zip(descriptors, order.entered, strict=False):
            setns(descriptor, kind)
        unshare(order.made)
        tell(control, Born(fork(lambda: run_init(spec, place, control), kept=kept)))
    except OSError as error:
        tell(control, Failed(START_ERROR, f"cannot enter the namespaces of the pod: {said(error)}"))


def _start_command(order: StartCommand, control: socket.socket, pidfd: int, stdio: Sequence[int]) -> None:
    """Guides another process into the namespaces of a container, or where there are none goes on itself."""
    try:
        join(map(Path, order.cgroup))
        if not order.kinds:
            tell(control, Born(os.getpid()))
            _be_command(order, stdio, control)
            return
        setns(pidfd, order.kinds)
    except OSError as error:
        tell(control, Failed(NOT_RUNNING, f"the container cannot be entered: {said(error)}"))
        return
    tell(control, Born(fork(lambda: _be_command(order, stdio, control), kept=[control.fileno(), *stdio])))


def _be_command(order: StartCommand, stdio: Sequence[int], control: socket.socket) -> None:
    """What a process does, inside, until it is the command."""
    spec, of_container, facts = order.spec, order.container, order.facts
    may_change_ids = facts.has_namespaces or os.geteuid() == 0
    program = Program(
        argv=spec.argv,
        env=spec.env,
        directory=spec.directory or "/",
        ids=spec.ids,
        takes_ids=facts.has_all_ids and may_change_ids,
        capabilities=spec.capabilities if may_change_ids else None,
        may_gain_privileges=of_container.may_gain_privileges,
        has_filter=of_container.has_filter and facts.has_namespaces and has_filter(),
        ends_with_parent=not facts.has_namespaces,
        other_directory="" if facts.has_namespaces else of_container.scratch,
    )
    try:
        if spec.has_tty:
            master, slave = open_terminal(spec.rows, spec.columns)
            give(slave, spec.ids)
            tell(control, Running(time.time()), [master])
            stdio = [slave, slave, slave]
        limit_processes(of_container.limits.processes)
        become(program, stdio=stdio, has_terminal=spec.has_tty, kept=[control.fileno()])
    except CannotStart as error:
        tell(control, Failed(START_ERROR, str(error)))
    except OSError as error:
        tell(control, Failed(START_ERROR, f"cannot start the command: {said(error)}"))
