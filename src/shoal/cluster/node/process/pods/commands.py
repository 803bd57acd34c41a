"""Commands of probes and hooks in a container: run to their end, with what they say, or killed when time is up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec

MOST_OF_OUTPUT = 10 * 1024


class RunningCommand(Protocol):
    """A command that was started."""

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        ...

    async def signal(self, number: int) -> None:
        """Sends it a signal."""
        ...


class Executes(Protocol):
    """What starts commands in containers; what it refuses, it raises as its own fault."""

    async def execute(self, spec: ExecSpec, descriptors: Sequence[int] = ()) -> RunningCommand:
        """Starts a command with these as its standard input, output and errors."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended, and the beginning of what it said."""

    exit_code: int
    output: str


class TimedOut(Exception):
    """A command took too long, and was killed."""


async def run_in(runtime: Executes, container: ContainerSpec, argv: Sequence[str], *, within: float | None) -> Result:
    """Runs a command as the container's own program runs; raises TimedOut, and what the runtime raises."""
    spec = ExecSpec(
        container=container.id,
        argv=list(argv),
        env=container.env,
        directory=container.directory,
        ids=container.ids,
        capabilities=container.capabilities,
    )
    loop = asyncio.get_running_loop()
    output = bytearray()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.set_blocking(reading, False)

    def read() -> None:
        # What is beyond the limit is read all the same: the command must not be held up.
        with suppress(BlockingIOError):
            piece = os.read(reading, 65536)
            output.extend(piece[: MOST_OF_OUTPUT - len(output)])
            if not piece:
                loop.remove_reader(reading)

    loop.add_reader(reading, read)
    try:
        try:
            command = await runtime.execute(spec, (nothing, writing, writing))
        finally:
            os.close(writing)
            os.close(nothing)
        try:
            async with asyncio.timeout(within):
                code = await command.wait()
        except TimeoutError:
            await command.signal(signal.SIGKILL)
            shown = " ".join(argv)
            raise TimedOut(f'command timed out: "{shown}" timed out after {within:g}s') from None
        except asyncio.CancelledError:
            await command.signal(signal.SIGKILL)
            raise
        read()
        return Result(exit_code=code, output=output.decode(errors="replace"))
    finally:
        loop.remove_reader(reading)
        os.close(reading)
