"""What the runtime can be asked for, and the sandboxes, containers and commands that it keeps meanwhile."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from shoal.cluster.node.process.runtime.cgroups import Cgroup, Cgroups
from shoal.cluster.node.process.runtime.commands import execute
from shoal.cluster.node.process.runtime.connections import Connection, Reply
from shoal.cluster.node.process.runtime.container import Started, StartFailed, launch
from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.kept import KeptCommand, KeptContainer, KeptSandbox
from shoal.cluster.node.process.runtime.loop import Loop
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import (
    ContainerReading,
    ContainerSpec,
    ExecSpec,
    Happening,
    Question,
    SandboxSpec,
    SocketSpec,
)
from shoal.cluster.node.process.runtime.readings import readings
from shoal.cluster.node.process.runtime.refusals import Refused
from shoal.cluster.node.process.runtime.sandbox import Sandbox, make_socket

_ID = re.compile(r"[0-9a-f]{64}")
_NEVER_STARTED = 128
"""The exit code of a container whose program could not be executed."""


class Nothing(msgspec.Struct, frozen=True):
    """A question that needs no more than its verb."""


class OfSandbox(msgspec.Struct, frozen=True):
    """A question about a sandbox."""

    uid: str


class OfContainer(msgspec.Struct, frozen=True):
    """A question about a container."""

    id: str


class Signalling(msgspec.Struct, frozen=True):
    """A signal for a container's program."""

    id: str
    number: int


class CommandSignalling(msgspec.Struct, frozen=True):
    """A signal for a command."""

    command: int
    number: int


class Verbs:
    """Answers questions. Each verb is a method; one that cannot be answered yet keeps its reply for later."""

    def __init__(
        self, node: Node, cgroups: Cgroups | None, loop: Loop, *, tell_all: Callable[[Happening], None]
    ) -> None:
        self.is_stopping = False
        self._node = node
        self._cgroups = cgroups
        self._loop = loop
        self._tell_all = tell_all
        self._sandboxes: dict[str, KeptSandbox] = {}
        self._commands: dict[int, KeptCommand] = {}
        self._last_command = 0
        self._verbs: dict[str, tuple[type[Any], Callable[[Any, Reply, Sequence[int]], None]]] = {
            "facts": (Nothing, self._facts),
            "list": (Nothing, self._list),
            "open": (SandboxSpec, self._open),
            "close": (OfSandbox, self._close),
            "start": (ContainerSpec, self._start),
            "signal": (Signalling, self._signal),
            "kill": (OfContainer, self._kill),
            "remove": (OfContainer, self._remove),
            "exec": (ExecSpec, self._exec),
            "signal_command": (CommandSignalling, self._signal_command),
            "stdin": (OfContainer, self._stdin),
            "socket": (SocketSpec, self._socket),
            "usage": (Nothing, self._usage),
        }

    def answer(self, question: Question, descriptors: Sequence[int], reply: Reply) -> None:
        """Answers, now or later; the descriptors stay the caller's."""
        try:
            if question.verb not in self._verbs:
                raise Refused("UnknownVerb", f"there is no verb {question.verb!r}")
            kind, act = self._verbs[question.verb]
            act(msgspec.json.decode(question.given, type=kind), reply, descriptors)
        except Refused as refused:
            reply.refuse(refused)
        except msgspec.MsgspecError as error:
            reply.refuse(Refused("Invalid", f"{question.verb}: {error}"))
        except OSError as error:
            reply.refuse(Refused("SystemError", f"{question.verb}: {error}"))
        except Exception as error:  # one question that we did not foresee must not end all containers
            note("a question failed", verb=question.verb, error=repr(error))
            reply.refuse(Refused("InternalError", f"{question.verb}: {error!r}"))

    @property
    def running(self) -> int:
        """How many containers there are that have not ended."""
        return sum(one.state is None for one in self._containers())

    def stop(self) -> None:
        """Asks all containers to end, and takes no more."""
        self.is_stopping = True
        for one in self._containers():
            if one.state is None:
                one.launch.signal(signal.SIGTERM)

    def kill_all(self) -> None:
        """Ends all containers."""
        for one in self._containers():
            if one.state is None:
                one.launch.kill()

    def reaped(self, pid: int, status: int) -> None:
        """A child has ended: perhaps the last process of a container, or a command."""
        for container in list(self._containers()):
            if container.state is None:
                if not container.has_started:
                    self._advance(container)  # it tells which processes are its own before they end
                container.launch.reaped(pid, status)
                self._let_go_if_gone(container)
        for number, command in list(self._commands.items()):
            command.running.reaped(pid, status)
            self._advance_command(number)

    def hang_up(self, connection: Connection) -> None:
        """The one who began these commands is gone, and nobody can be told how they end."""
        for command in self._commands.values():
            if command.reply.connection is connection:
                command.running.hang_up()

    def _facts(self, _: Nothing, reply: Reply, __: Sequence[int]) -> None:
        reply.give(self._node.facts)

    def _list(self, _: Nothing, reply: Reply, __: Sequence[int]) -> None:
        reply.give([one.state() for one in self._sandboxes.values()])

    def _open(self, spec: SandboxSpec, reply: Reply, _: Sequence[int]) -> None:
        kept = self._sandboxes.get(spec.uid)
        if kept is None:
            kept = self._sandboxes[spec.uid] = KeptSandbox(Sandbox(spec, self._node))
        elif kept.at_close:
            raise Refused("Closing", f"the sandbox of pod {spec.name} is being closed: ask again")
        reply.give(kept.state())

    def _close(self, given: OfSandbox, reply: Reply, _: Sequence[int]) -> None:
        kept = self._sandboxes.get(given.uid)
        if kept is None:
            reply.give()
            return
        kept.at_close.append(reply)
        for one in list(kept.containers.values()):
            self._end(one, then=lambda: None)
        self._close_if_empty(kept)

    def _start(self, spec: ContainerSpec, reply: Reply, _: Sequence[int]) -> None:
        if not _ID.fullmatch(spec.id):
            raise Refused("Invalid", f"{spec.id!r} is not the id of a container: 64 hexadecimal digits are")
        sandbox = self._sandboxes.get(spec.sandbox)
        if sandbox is None or sandbox.at_close:
            raise Refused("NoSandbox", f"container {spec.name!r} has no sandbox {spec.sandbox!r}: open it first")
        kept = sandbox.containers.get(spec.id)
        if kept is None:
            kept = sandbox.containers[spec.id] = self._launched(spec, sandbox.sandbox)
            self._loop.watch(kept.launch.fileno(), lambda _: self._advance(kept))
        if kept.has_started:
            reply.give(kept.shown())
        else:
            kept.at_start.append(reply)

    def _launched(self, spec: ContainerSpec, sandbox: Sandbox) -> KeptContainer:
        joined = self._running(spec.joins_processes_of).launch if spec.joins_processes_of else None
        cgroup: Cgroup | None = None
        try:
            cgroup = self._cgroups.make(spec.id, spec.limits) if self._cgroups is not None else None
            launched = launch(spec, node=self._node, namespaces=sandbox.namespaces, joined=joined, cgroup=cgroup)
        except OSError as error:
            if cgroup is not None:
                cgroup.remove()
            raise Refused("StartError", f"container {spec.name!r} cannot be started: {error}") from error
        return KeptContainer(launched, cgroup)

    def _advance(self, kept: KeptContainer) -> None:
        """Hears what a container has to say."""
        while kept.outcome is None and (progress := kept.launch.advance()) is not None:
            if isinstance(progress, Started):
                kept.has_started = True
                for reply in kept.at_start:
                    reply.give(kept.launch.state)
                kept.at_start.clear()
                if kept.at_end:
                    kept.launch.kill()  # it was asked for before there was somebody to kill
            else:
                kept.outcome = progress
                self._loop.forget(kept.launch.fileno())
                self._let_go_if_gone(kept)

    def _let_go_if_gone(self, kept: KeptContainer) -> None:
        """Lets go of a container whose last process has ended: nothing but what is known of it is kept."""
        if kept.outcome is None or kept.state is not None or not kept.launch.is_gone:
            return
        state = kept.launch.state
        if kept.cgroup is not None:
            state = msgspec.structs.replace(state, is_out_of_memory=kept.cgroup.was_out_of_memory())
            kept.cgroup.remove()
        kept.state = state
        kept.launch.close()
        if isinstance(kept.outcome, StartFailed):
            for reply in kept.at_start:
                reply.refuse(Refused(kept.outcome.reason, kept.outcome.message))
            if not any(reply.connection.is_open for reply in kept.at_start):
                # Whoever asked is gone, and whoever came instead saw it in a list.
                failed = msgspec.structs.replace(kept.shown(), finished=time.time(), exit_code=_NEVER_STARTED)
                self._tell_all(Happening(ended=failed))
            self._forget(kept)
        else:
            self._tell_all(Happening(ended=state))
        for action in kept.at_end:
            action()
        kept.at_end.clear()

    def _signal(self, given: Signalling, reply: Reply, _: Sequence[int]) -> None:
        kept = self._container(given.id)
        if kept.state is None:
            kept.launch.signal(_checked(given.number))
        reply.give()

    def _kill(self, given: OfContainer, reply: Reply, _: Sequence[int]) -> None:
        kept = self._container(given.id)
        if kept.state is None:
            kept.launch.kill()
        reply.give()

    def _remove(self, given: OfContainer, reply: Reply, _: Sequence[int]) -> None:
        try:
            kept = self._container(given.id)
        except Refused:
            reply.give()
        else:
            self._end(kept, then=reply.give)

    def _end(self, kept: KeptContainer, *, then: Callable[[], None]) -> None:
        """Kills a container, if it runs, and forgets it when it has ended."""

        def forget() -> None:
            self._forget(kept)
            then()

        if kept.state is None:
            kept.at_end.append(forget)
            kept.launch.kill()
        else:
            forget()

    def _forget(self, kept: KeptContainer) -> None:
        sandbox = self._sandboxes.get(kept.launch.spec.sandbox)
        if sandbox is not None:
            sandbox.containers.pop(kept.launch.spec.id, None)
            self._close_if_empty(sandbox)

    def _close_if_empty(self, kept: KeptSandbox) -> None:
        if kept.at_close and not kept.containers:
            self._sandboxes.pop(kept.sandbox.spec.uid, None)
            kept.sandbox.close()
            for reply in kept.at_close:
                reply.give()
            kept.at_close.clear()

    def _exec(self, spec: ExecSpec, reply: Reply, descriptors: Sequence[int]) -> None:
        if len(descriptors) != (0 if spec.has_tty else 3):
            raise Refused("Invalid", "a command has three descriptors, and none where it has a terminal")
        command = execute(spec, self._running(spec.container).launch, descriptors)
        self._last_command += 1
        number = self._last_command
        self._commands[number] = KeptCommand(command, reply)
        self._loop.watch(command.fileno(), lambda _: self._advance_command(number))

    def _advance_command(self, number: int) -> None:
        """Hears what a command has to say."""
        kept = self._commands[number]
        while (progress := kept.running.advance()) is not None:
            if isinstance(progress, Started):
                self._loop.forget(kept.running.fileno())
                self._tell_begun(number, kept)
                continue
            self._loop.forget(kept.running.fileno())
            kept.running.close()
            del self._commands[number]
            if isinstance(progress, StartFailed):
                kept.reply.refuse(Refused(progress.reason, progress.message))
            else:
                self._tell_all(Happening(command=number, exit_code=progress.exit_code))
            return

    def _tell_begun(self, number: int, kept: KeptCommand) -> None:
        terminal = kept.running.terminal
        kept.reply.give({"command": number}, () if terminal is None else (terminal,))
        if terminal is not None:
            kept.running.terminal = None
            os.close(terminal)  # it hangs up when the one who has it now closes it
        if not kept.reply.connection.is_open:
            kept.running.hang_up()

    def _signal_command(self, given: CommandSignalling, reply: Reply, _: Sequence[int]) -> None:
        if given.command in self._commands:
            self._commands[given.command].running.signal(_checked(given.number))
        reply.give()

    def _stdin(self, given: OfContainer, reply: Reply, _: Sequence[int]) -> None:
        descriptor = self._running(given.id).launch.stdin()
        if descriptor is None:
            raise Refused("NoStdin", f"container {given.id} was started without stdin, or it is closed")
        try:
            reply.give(None, (descriptor,))
        finally:
            os.close(descriptor)

    def _socket(self, spec: SocketSpec, reply: Reply, _: Sequence[int]) -> None:
        if not spec.sandbox:
            made = make_socket(spec)
        elif spec.sandbox in self._sandboxes:
            made = self._sandboxes[spec.sandbox].sandbox.make_socket(spec)
        else:
            raise Refused("NoSandbox", f"there is no sandbox {spec.sandbox!r} to have a socket in")
        with made:
            reply.give(None, (made.fileno(),))

    def _usage(self, _: Nothing, reply: Reply, __: Sequence[int]) -> None:
        running = [one for one in self._containers() if one.is_running]
        used: list[ContainerReading] = readings(
            {one.launch.spec.id: (one.launch.state.pid, one.cgroup) for one in running}
        )
        reply.give(used)

    def _containers(self) -> Iterator[KeptContainer]:
        for sandbox in self._sandboxes.values():
            yield from sandbox.containers.values()

    def _container(self, id_: str) -> KeptContainer:
        for sandbox in self._sandboxes.values():
            if id_ in sandbox.containers:
                return sandbox.containers[id_]
        raise Refused("NoContainer", f"there is no container {id_!r}")

    def _running(self, id_: str) -> KeptContainer:
        kept = self._container(id_)
        if not kept.is_running:
            raise Refused("NotRunning", f"container {kept.launch.spec.name!r} ({id_[:12]}) is not running")
        return kept


def _checked(number: int) -> int:
    if number not in signal.valid_signals():
        raise Refused("Invalid", f"{number} is not the number of a signal")
    return number
