"""The runtime, as the agent sees it: questions to await, and containers that end by themselves.

A connection that is lost is not mended here: whatever the runtime kept is gone with it, or is to be asked for anew, and
whoever holds the connection knows what that means. ``closed`` tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from shoal.cluster.node.process.runtime.lines import Channel, Lost
from shoal.cluster.node.process.runtime.protocol import (
    VERSION,
    Answer,
    ContainerReading,
    ContainerSpec,
    ContainerState,
    ExecSpec,
    Facts,
    Happening,
    Line,
    Question,
    SandboxSpec,
    SandboxState,
    SocketSpec,
    encoded,
)

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.25
_questions = msgspec.json.Encoder()
_lines = msgspec.json.Decoder(Line)
T = TypeVar("T")


class RuntimeFault(Exception):
    """The runtime's answer is no, or it cannot answer any more (``Disconnected``)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Runtime:
    """A connection to the runtime."""

    facts: Facts

    def __init__(self, connected: socket.socket) -> None:
        self.closed = asyncio.Event()
        self._channel = Channel(connected)
        self._descriptor = self._channel.fileno()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)
        self._is_writing = False
        self._number = 0
        self._asked: dict[int, _Asked[Any]] = {}
        self._commands: dict[int, Command] = {}
        self._at_end: list[Callable[[ContainerState], None]] = []

    @classmethod
    async def connect(cls, socket: Path) -> Runtime:
        """Connects, as soon as there is a runtime that answers; bound it by a timeout."""
        wait = _FIRST_WAIT
        while True:
            with contextlib.suppress(OSError, _LostAtOnce):
                return await cls._connect(socket)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    @classmethod
    async def _connect(cls, path: Path) -> Runtime:
        runtime = cls(_connected(path))
        try:
            runtime.facts = await runtime._ask("facts", {}, _decoded(Facts))
        except RuntimeFault as fault:
            if fault.reason == "Disconnected":
                raise _LostAtOnce from fault
            raise
        except BaseException:
            await runtime.aclose()
            raise
        if runtime.facts.version != VERSION:
            await runtime.aclose()
            raise RuntimeFault(
                "WrongVersion",
                f"the runtime at {path} speaks version {runtime.facts.version}, not {VERSION}: restart `shoal up`",
            )
        return runtime

    def on_end(self, callback: Callable[[ContainerState], None]) -> None:
        """Calls back for every container that ends, also one that ended because it was asked for."""
        self._at_end.append(callback)

    async def sandboxes(self) -> list[SandboxState]:
        """All that is there, with the containers that run, and that ended and were not removed."""
        return await self._ask("list", {}, _decoded(list[SandboxState]))

    async def open(self, spec: SandboxSpec) -> SandboxState:
        """Makes a pod's sandbox; the one that is there, where there is one."""
        return await self._ask("open", spec, _decoded(SandboxState))

    async def close_sandbox(self, uid: str) -> None:
        """Kills what runs in a sandbox and forgets it; returns when nothing of it is left."""
        await self._ask("close", {"uid": uid}, _nothing)

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Starts a container; returns when its program has been executed."""
        return await self._ask("start", spec, _decoded(ContainerState))

    async def signal(self, container: str, number: int) -> None:
        """Sends a signal to a container's program."""
        await self._ask("signal", {"id": container, "number": number}, _nothing)

    async def kill(self, container: str) -> None:
        """Kills every process of a container."""
        await self._ask("kill", {"id": container}, _nothing)

    async def remove(self, container: str) -> None:
        """Forgets a container; kills it first, if it runs."""
        await self._ask("remove", {"id": container}, _nothing)

    async def execute(self, spec: ExecSpec, descriptors: Sequence[int] = ()) -> Command:
        """Runs a command in a container, with these as its stdin, stdout and stderr; they stay the caller's."""
        return await self._ask("exec", spec, self._begun, descriptors)

    async def stdin(self, container: str) -> int:
        """The writing end of a container's stdin, or its terminal; whoever asks closes it."""
        return await self._ask("stdin", {"id": container}, _only)

    async def socket(self, spec: SocketSpec) -> socket.socket:
        """A socket in a pod's network or the node's; non-blocking, and the caller's."""
        return await self._ask("socket", spec, _socket)

    async def usage(self) -> list[ContainerReading]:
        """What containers have used."""
        return await self._ask("usage", {}, _decoded(list[ContainerReading]))

    async def aclose(self) -> None:
        """Ends the connection; containers run on."""
        self._lose("it was closed here")

    async def _ask(
        self,
        verb: str,
        given: Any,
        accept: Callable[[msgspec.Raw, list[int]], T],
        descriptors: Sequence[int] = (),
    ) -> T:
        """Asks; ``accept`` makes the result of an answer and its descriptors, before any later line is looked at."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._asked[self._send(verb, given, descriptors)] = _Asked(future, accept, verb)
        return await future

    def _send(self, verb: str, given: Any, descriptors: Sequence[int] = ()) -> int:
        if self.closed.is_set():
            raise RuntimeFault("Disconnected", "the connection to the runtime is closed")
        self._number += 1
        question = Question(number=self._number, verb=verb, given=encoded(given), descriptors=len(descriptors))
        try:
            self._channel.send(_questions.encode(question), descriptors)
        except Lost as lost:
            self._lose(str(lost))
            raise RuntimeFault("Disconnected", f"the connection to the runtime is lost: {lost}") from lost
        self._write_on()
        return self._number

    def _write_on(self) -> None:
        """Waits until more can be written, for as long as there is more."""
        if self._channel.has_unsent and not self._is_writing:
            self._loop.add_writer(self._descriptor, self._write)
        elif self._is_writing and not self._channel.has_unsent:
            self._loop.remove_writer(self._descriptor)
        self._is_writing = self._channel.has_unsent

    def _write(self) -> None:
        try:
            self._channel.flush()
        except Lost as lost:
            self._lose(str(lost))
        else:
            self._write_on()

    def _read(self) -> None:
        try:
            for text in self._channel.receive():
                line = _lines.decode(text)
                if line.answer is not None:
                    self._answered(line.answer, self._channel.take(line.answer.descriptors))
                if line.happening is not None:
                    self._happened(line.happening)
        except (Lost, msgspec.MsgspecError) as lost:
            self._lose(str(lost))

    def _answered(self, answer: Answer, descriptors: list[int]) -> None:
        asked = self._asked.get(answer.number)
        if asked is None or asked.future.done():
            for one in descriptors:
                os.close(one)
            if asked is not None and asked.verb == "exec" and not answer.reason:
                self._end_unwanted(answer)
        elif answer.reason:
            asked.future.set_exception(RuntimeFault(answer.reason, answer.message))
        else:
            asked.future.set_result(asked.accept(answer.result, descriptors))
        self._asked.pop(answer.number, None)

    def _happened(self, happening: Happening) -> None:
        if happening.ended is not None:
            for callback in self._at_end:
                # After those who wait for an answer that came before.
                self._loop.call_soon(callback, happening.ended)
        if happening.command is not None:
            command = self._commands.pop(happening.command, None)
            if command is not None:
                command.end(happening.exit_code)

    def _begun(self, result: msgspec.Raw, descriptors: list[int]) -> Command:
        number = msgspec.json.decode(result, type=dict[str, int])["command"]
        command = Command(descriptors[0] if descriptors else None, lambda one: self._signal_command(number, one))
        self._commands[number] = command
        return command

    async def _signal_command(self, command: int, number: int) -> None:
        await self._ask("signal_command", {"command": command, "number": number}, _nothing)

    def _end_unwanted(self, answer: Answer) -> None:
        """A command that nobody waits for any more is not let run on."""
        number = msgspec.json.decode(answer.result, type=dict[str, int])["command"]
        with contextlib.suppress(RuntimeFault):
            self._send("signal_command", {"command": number, "number": int(signal.SIGKILL)})

    def _lose(self, why: str) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._channel.close()
        for asked in self._asked.values():
            if not asked.future.done():
                fault = RuntimeFault("Disconnected", f"the connection to the runtime is lost: {why}")
                asked.future.set_exception(fault)
        self._asked.clear()
        for command in self._commands.values():
            command.end(None)
        self._commands.clear()


class Command:
    """A command that runs in a container."""

    def __init__(self, terminal: int | None, send: Callable[[int], Awaitable[None]]) -> None:
        self.terminal = terminal
        """Our end of its terminal, if it has one; the holder closes it."""
        self._send = send
        self._has_ended = asyncio.Event()
        self._exit_code: int | None = None

    async def wait(self) -> int:
        """How it ended, when it has; raises RuntimeFault where that cannot be known any more."""
        await self._has_ended.wait()
        if self._exit_code is None:
            raise RuntimeFault("Disconnected", "the connection to the runtime was lost while the command ran")
        return self._exit_code

    async def signal(self, number: int) -> None:
        """Sends it a signal; fine if it has ended."""
        await self._send(number)

    def end(self, exit_code: int | None) -> None:
        """It has ended; None where nobody will tell how."""
        self._exit_code = exit_code
        self._has_ended.set()


class _Asked(Generic[T]):
    """A question without its answer."""

    def __init__(self, future: asyncio.Future[T], accept: Callable[[msgspec.Raw, list[int]], T], verb: str) -> None:
        self.future = future
        self.accept = accept
        self.verb = verb


class _LostAtOnce(Exception):
    """Somebody took the connection and did not answer: the runtime stops, or is not the one we mean."""


def _connected(path: Path) -> socket.socket:
    """A connection to a socket; a path that is too long for its address is named by its folder."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made.setblocking(False)
            made.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
    except BaseException:
        made.close()
        raise
    return made


def _decoded(kind: type[T]) -> Callable[[msgspec.Raw, list[int]], T]:
    def accept(result: msgspec.Raw, _: list[int]) -> T:
        return msgspec.json.decode(result, type=kind)

    return accept


def _nothing(_result: msgspec.Raw, _descriptors: list[int]) -> None:
    return None


def _only(_: msgspec.Raw, descriptors: list[int]) -> int:
    (descriptor,) = descriptors
    return descriptor


def _socket(result: msgspec.Raw, descriptors: list[int]) -> socket.socket:
    made = socket.socket(fileno=_only(result, descriptors))
    made.setblocking(False)
    return made
