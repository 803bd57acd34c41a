"""Commands in containers that run already: with pipes or a terminal, from their start to their exit code.

Whoever runs a command and leaves has its input closed and its output refused; a terminal is hung up. Nothing else is
done to the command: it may be meant to go on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn

from aiohttp import web

from shoal.cluster.node.kubelet import Refused
from shoal.cluster.node.kubelet.channels import STDERR, STDOUT, Channels, Close, Input, Size, Wanted
from shoal.cluster.node.kubelet.departures import while_connected
from shoal.cluster.node.kubelet.joining import join
from shoal.cluster.node.kubelet.outcomes import exited, failed
from shoal.cluster.node.process.answers.descriptors import ReadEnd, WriteEnd
from shoal.cluster.node.process.answers.residents import Command, Runtime
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec

_SIZE_WITHIN = 0.1
"""How long the start waits for the size of the client's terminal; kubectl says it at once."""
_SILENCE = 2.0
"""How long after a command's end its children may be silent before their output is no longer waited for."""
_MOST_COLLECTED = 16 << 20


def exec_spec(spec: ContainerSpec, argv: Sequence[str], *, has_tty: bool = False, size: Size | None = None) -> ExecSpec:
    """A further command in a container, as whom and where its main one runs."""
    env = list(spec.env)
    if has_tty and not any(variable.startswith("TERM=") for variable in env):
        env.append("TERM=xterm")
    return ExecSpec(
        container=spec.id,
        argv=list(argv),
        env=env,
        directory=spec.directory,
        ids=spec.ids,
        capabilities=spec.capabilities,
        has_tty=has_tty,
        rows=size.height if size else 0,
        columns=size.width if size else 0,
    )


class Commands:
    """Runs commands for those who ask the agent to."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def exec(self, request: web.Request, spec: ContainerSpec) -> web.StreamResponse:
        """A command that a client takes part in."""
        argv = _words(request.query.getall("command", []))
        wanted = Wanted.of(request.query)

        async def talk(channels: Channels) -> None:
            size = await channels.first_size(_SIZE_WITHIN) if wanted.tty else None
            asked = exec_spec(spec, argv, has_tty=wanted.tty, size=size)
            try:
                with await _started(self._runtime, asked, wanted) as session:
                    status = exited(await session.run(channels))
            except RuntimeFault as fault:
                status = failed(f"error executing command in container: {fault.message}")
            await channels.finish(status)

        return await join(request, wanted, talk)

    async def run(self, request: web.Request, spec: ContainerSpec) -> web.StreamResponse:
        """A command whose output, all of it, is the answer."""
        argv = _words(request.query.getall("command", []) or request.query.get("cmd", "").split())
        try:
            text, code = await self._collected(exec_spec(spec, argv))
        except RuntimeFault as fault:
            raise Refused(500, f"error executing command in container: {fault.message}") from fault
        if code != 0:
            shown = text.decode(errors="replace")
            raise Refused(500, f"command '{' '.join(argv)}' exited with {code}: {shown}")
        return web.Response(body=text, content_type="text/plain")

    async def _collected(self, asked: ExecSpec) -> tuple[bytes, int]:
        """What a command writes, as far as it is not too much, and its exit code; raises RuntimeFault."""
        reading, writing = os.pipe()
        output = ReadEnd(reading)
        try:
            with ExitStack() as theirs:
                theirs.callback(os.close, writing)
                command = await self._runtime.execute(asked, [_null(theirs), writing, writing])
            text = b""
            async with asyncio.TaskGroup() as group:
                group.create_task(_hurry_after(command, output))
                while data := await output.read():
                    text = (text + data)[:_MOST_COLLECTED]
            return text, await command.wait()
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from problems
        finally:
            output.close()


class Session:
    """A command that runs, and our ends of what it reads and writes; as a context it closes these."""

    def __init__(self, command: Command, stdin: WriteEnd | None, outputs: dict[int, ReadEnd]) -> None:
        self._command = command
        self._stdin = stdin
        self._outputs = outputs

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stdin is not None:
            self._stdin.close()
        for output in self._outputs.values():
            output.close()

    async def run(self, channels: Channels) -> int:
        """The exit code, once all output is on its way; raises ConnectionError where the client leaves before it, or
        RuntimeFault."""
        try:
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(feed(channels, self._stdin, has_tty=self._command.terminal is not None))
                copying = [group.create_task(_copy(output, channels, to)) for to, output in self._outputs.items()]
                code = await self._command.wait()
                for output in self._outputs.values():
                    output.expect_little(_SILENCE)
                await asyncio.gather(*copying)
                feeding.cancel()
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from problems
        return code


async def feed(channels: Channels, stdin: WriteEnd | None, *, has_tty: bool) -> NoReturn:
    """Passes on what a client says until it leaves, which is a ConnectionResetError."""
    while (said := await channels.receive()) is not None:
        try:
            match said:
                case _ if stdin is None:
                    continue
                case Input(data):
                    if rest := stdin.write_now(data):
                        await while_connected(channels.request, stdin.write(rest))
                case Size(columns, rows) if has_tty:
                    stdin.resize(columns=columns, rows=rows)
                case Close() if not has_tty:
                    stdin.close()
                    stdin = None
        except ConnectionResetError:
            raise
        except OSError:
            # Whatever read it has ended, or reads no more.
            stdin = None
    raise ConnectionResetError("the client has left")


async def _started(runtime: Runtime, asked: ExecSpec, wanted: Wanted) -> Session:
    """Starts a command with a terminal or with pipes, of which it has one end and we the other; raises RuntimeFault."""
    if asked.has_tty:
        command = await runtime.execute(asked)
        assert command.terminal is not None
        outputs = {STDOUT: ReadEnd(os.dup(command.terminal))}
        return Session(command, WriteEnd(command.terminal), outputs)
    with ExitStack() as theirs, ExitStack() as ours:
        given: list[int] = []
        ends: list[int | None] = []
        for is_wanted in (wanted.stdin, wanted.stdout, wanted.stderr):
            if not is_wanted:
                given.append(_null(theirs))
                ends.append(None)
                continue
            reading, writing = os.pipe()
            mine, others = (reading, writing) if given else (writing, reading)
            theirs.callback(os.close, others)
            ours.callback(os.close, mine)
            given.append(others)
            ends.append(mine)
        command = await runtime.execute(asked, given)
        ours.pop_all()
        stdin, stdout, stderr = ends
        outputs = {to: ReadEnd(end) for to, end in ((STDOUT, stdout), (STDERR, stderr)) if end is not None}
        return Session(command, WriteEnd(stdin) if stdin is not None else None, outputs)


async def _copy(output: ReadEnd, channels: Channels, to: int) -> None:
    while data := await output.read():
        await channels.send(to, data)


async def _hurry_after(command: Command, output: ReadEnd) -> None:
    await command.wait()
    output.expect_little(_SILENCE)


def _null(closing: ExitStack) -> int:
    descriptor = os.open(os.devnull, os.O_RDWR)
    closing.callback(os.close, descriptor)
    return descriptor


def _words(given: Sequence[str]) -> list[str]:
    words = list(given)
    if not words:
        raise Refused(400, "you must specify at least one command for the container")
    return words
