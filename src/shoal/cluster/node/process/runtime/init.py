"""A container's first process: it starts the program, sees to it that nothing of it is lost, and tells how it ended.

The init builds the root and forks the program, which gets a user namespace below the init's, so that it has no power
over anything that the init made. Then the init copies output to the log, forwards signals, and reaps.

When the program ends, all that it left ends with it. Where the container has a PID namespace of its own the init is
the first in it, and whatever ends the init, even with no chance to act, ends all. Where it shares one (or there are no
namespaces) the init adopts what the program leaves, and ends what it adopted.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import msgspec

from shoal.cluster.node.process.runtime.control import GO, Failed, Over, Running, has_ended, tell
from shoal.cluster.node.process.runtime.devices import open_device, open_terminal
from shoal.cluster.node.process.runtime.forks import ended_children, fork
from shoal.cluster.node.process.runtime.logs import ContainerLog
from shoal.cluster.node.process.runtime.privileges import hear_signals_of, limit_processes, write_id_maps
from shoal.cluster.node.process.runtime.program import START_ERROR, CannotStart, Program, become, give, said
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, Facts
from shoal.cluster.node.process.runtime.roots import enter_root
from shoal.cluster.node.process.runtime.seccomp import has_filter
from shoal.cluster.node.process.runtime.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_BIND,
    PR_SET_CHILD_SUBREAPER,
    end_with_parent,
    mount,
    prctl,
    unshare,
)

_CHUNK = 64 * 1024
_MAPS_PLEASE, _MAPPED = b"maps", b"mapped"
_NEVER_FORWARDED = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ}) | {
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
}
"""Those that cannot be caught, and those that say something about the init itself."""
STDOUT, STDERR = b"stdout", b"stderr"
_PATIENCE = 0.1
"""Seconds that the start of a line waits for the rest: many programs write an error in pieces, and what comes on the
other stream meanwhile would else stand in the midst of it."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a container runs."""

    facts: Facts
    has_own_processes: bool
    has_cgroup: bool
    """Whether it sees a cgroup of its own."""
    stdin: int | None
    """What the program reads; None for nothing."""


def run_init(spec: ContainerSpec, place: Place, control: socket.socket) -> None:
    """The whole life of an init. It begins in the container's namespaces, and ends when the program has."""
    try:
        init = Init(spec, place, control)
        if not init.begin():
            return
    except CannotStart as error:
        tell(control, Failed(START_ERROR, str(error)))
        return
    except OSError as error:
        tell(control, Failed(START_ERROR, f"cannot start the container: {said(error)}"))
        return
    status = init.watch()
    if status is not None:
        tell(control, Over(time.time(), status))


class Init:
    """The init of one container."""

    def __init__(self, spec: ContainerSpec, place: Place, control: socket.socket) -> None:
        self._spec = spec
        self._place = place
        self._control = control
        # On a terminal, what is typed is echoed, and there is but one stream.
        self._log = ContainerLog(Path(spec.log), patience=0 if spec.has_tty else _PATIENCE)
        self._outputs: dict[int, bytes] = {}
        """What the program's output is read from, with the names of the streams."""
        self._program = 0
        self._status: int | None = None
        self._wakes = (-1, -1)

    def begin(self) -> bool:
        """Starts the program and tells the runtime; False where the runtime is no more, and all is in vain."""
        facts = self._place.facts
        if facts.has_namespaces:
            enter_root(
                self._spec,
                has_overlays=facts.has_overlays,
                has_all_ids=facts.has_all_ids,
                has_cgroup=self._place.has_cgroup,
            )
        with suppress(OSError):
            Path("/proc/self/comm").write_text("shoal-init")
        master, stdio = self._open_stdio()
        if not self._is_guarded():
            return False
        self._catch_signals()
        pidfd = self._start(stdio)
        for descriptor in {*stdio} if master is None else ():
            os.close(descriptor)  # a terminal's slave stays open: it would hang up whenever nobody else has it
        tell(self._control, Running(time.time()), [pidfd] if master is None else [pidfd, master])
        os.close(pidfd)
        return True

    def watch(self) -> int | None:
        """Serves the program until it ends; returns how it did, and None where the runtime ended first."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._wakes[0], *self._outputs):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        while self._status is None:
            rest = self._log.rest
            ready = {descriptor for descriptor, _ in poll.poll(None if rest is None else rest * 1000)}
            for descriptor, stream in list(self._outputs.items()):
                if descriptor in ready and not self._copy(descriptor, stream):
                    poll.unregister(descriptor)
                    del self._outputs[descriptor]
            self._log.settle_due()
            if self._wakes[0] in ready:
                self._answer_signals()
            if self._control.fileno() in ready and has_ended(self._control):
                break
        self._end_all()
        for descriptor, stream in self._outputs.items():
            while self._copy(descriptor, stream, is_all_there=True):
                pass
            self._log.settle(stream)
        return self._status

    def _open_stdio(self) -> tuple[int | None, tuple[int, int, int]]:
        """The master of the program's terminal, where it has one, and its three standard descriptors."""
        if self._spec.has_tty:
            master, slave = open_terminal()
            give(slave, self._spec.ids)
            self._outputs[master] = STDOUT
            if self._place.facts.has_namespaces:
                os.close(open_device("/dev/console", os.O_RDONLY | os.O_CREAT | os.O_EXCL))
                mount(os.ttyname(slave), "/dev/console", flags=MS_BIND)
            return master, (slave, slave, slave)
        stdin = self._place.stdin
        if stdin is None:
            stdin = open_device("/dev/null", os.O_RDONLY)
        (reads_out, stdout), (reads_err, stderr) = os.pipe(), os.pipe()
        self._outputs |= {reads_out: STDOUT, reads_err: STDERR}
        return None, (stdin, stdout, stderr)

    def _is_guarded(self) -> bool:
        """Sees to it that this process does not outlive the runtime; False where the runtime has ended already."""
        if not self._place.facts.has_namespaces:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            return not has_ended(self._control)  # its end is seen by ``watch``, which ends the others first
        if self._control.recv(len(GO)) != GO:
            return False
        if not self._place.has_own_processes:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        end_with_parent()
        return not has_ended(self._control)

    def _catch_signals(self) -> None:
        self._wakes = os.pipe()
        for descriptor in self._wakes:
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakes[1], warn_on_full_buffer=False)
        for number in signal.valid_signals() - _NEVER_FORWARDED | {signal.SIGCHLD}:
            signal.signal(number, _only_wake)

    def _start(self, stdio: tuple[int, int, int]) -> int:
        """Forks the program, gives it its ids, and waits until it was executed; returns a pidfd of it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            self._program = fork(lambda: self._be_program(stdio, theirs), kept=[*stdio, theirs.fileno()])
            theirs.close()
            pidfd = os.pidfd_open(self._program)
            if self._place.facts.has_namespaces and ours.recv(_CHUNK) == _MAPS_PLEASE:
                write_id_maps(self._program, self._spec.ids, has_all_ids=self._place.facts.has_all_ids)
                ours.send(_MAPPED)
            if failure := ours.recv(_CHUNK):
                os.waitpid(self._program, 0)
                raise CannotStart(failure.decode())
        if self._place.has_own_processes and self._place.facts.has_all_ids:
            hear_signals_of(self._spec.ids)
        return pidfd

    def _be_program(self, stdio: tuple[int, int, int], init: socket.socket) -> None:
        """What the forked process does until it is the program."""
        spec, facts = self._spec, self._place.facts
        may_change_ids = facts.has_namespaces or os.geteuid() == 0
        try:
            if facts.has_namespaces:
                # Mounts of its own are for those who may mount; for others there is nothing that they could change.
                unshare(CLONE_NEWUSER | (CLONE_NEWNS if "SYS_ADMIN" in spec.capabilities else 0))
                init.send(_MAPS_PLEASE)
                if init.recv(len(_MAPPED)) != _MAPPED:
                    return
                limit_processes(spec.limits.processes)
            program = Program(
                argv=spec.argv,
                env=spec.env,
                directory=spec.directory or "/",
                ids=spec.ids,
                takes_ids=facts.has_all_ids and may_change_ids,
                capabilities=spec.capabilities if may_change_ids else None,
                may_gain_privileges=spec.may_gain_privileges,
                has_filter=spec.has_filter and facts.has_namespaces and has_filter(),
                ends_with_parent=not self._place.has_own_processes,
                other_directory="" if facts.has_namespaces else spec.scratch,
            )
            become(program, stdio=stdio, has_terminal=spec.has_tty, kept=[init.fileno()])
        except CannotStart as error:
            init.send(str(error).encode())
        except OSError as error:
            init.send(f"cannot start the container: {said(error)}".encode())

    def _copy(self, descriptor: int, stream: bytes, *, is_all_there: bool = False) -> bool:
        """Takes some output; False where there is no more, ever or (``is_all_there``) now."""
        try:
            output = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return not is_all_there
        except OSError:  # a terminal that nobody has open
            return False
        if output:
            self._log.add(stream, output)
        else:
            self._log.settle(stream)
        return bool(output)

    def _answer_signals(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self._wakes[0], 4096):
                if number == signal.SIGCHLD:
                    self._reap()
                elif self._status is None:
                    os.kill(self._program, number)

    def _reap(self) -> None:
        for pid, status in ended_children():
            self._note_end(pid, status)

    def _note_end(self, pid: int, status: int) -> None:
        if pid == self._program and not os.WIFSTOPPED(status):
            self._status = status

    def _end_all(self) -> None:
        """Ends whatever is left of the container, and waits until it has ended."""
        with suppress(ChildProcessError):
            while True:
                if self._place.has_own_processes:
                    with suppress(ProcessLookupError):
                        os.kill(-1, signal.SIGKILL)
                else:
                    for child in children():
                        with suppress(ProcessLookupError):
                            os.kill(child, signal.SIGKILL)
                # There may be thousands, among which to look is slow: all that have ended are taken before that.
                ended = os.waitpid(-1, 0)
                while ended[0]:
                    self._note_end(*ended)
                    ended = os.waitpid(-1, os.WNOHANG)


def children() -> Iterator[int]:
    """The processes whose parent this one is, which now has those too whose own parent ended."""
    own = str(os.getpid())
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            # The name of the program comes first, in parentheses, and may hold anything.
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                yield int(folder.name)


def _only_wake(number: int, frame: FrameType | None) -> None:
    """The loop reads which signal it was."""
