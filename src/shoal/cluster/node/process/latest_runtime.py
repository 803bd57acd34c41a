"""The runtime as those see it who do not care that it was started again: whichever connection there is now."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from shoal.cluster.node.process.client import Command, Runtime, RuntimeFault
from shoal.cluster.node.process.runtime.protocol import ContainerReading, ExecSpec, SandboxState, SocketSpec


class LatestRuntime:
    """Connects, and passes on what is asked to the latest connection; raises RuntimeFault while there is none."""

    def __init__(self, path: Path, first: Runtime) -> None:
        self._path = path
        self._runtime: Runtime | None = None
        self._next: Runtime | None = first
        self._listeners: list[Callable[[bool], None]] = []

    def on_change(self, listener: Callable[[bool], None]) -> None:
        """Calls somebody with whether there is a connection, whenever that changes."""
        self._listeners.append(listener)

    async def connect(self) -> Runtime:
        """The next connection, which then is the latest; the one that was there is no more."""
        self._settle(None)
        runtime, self._next = self._next, None
        if runtime is None or runtime.closed.is_set():
            runtime = await Runtime.connect(self._path)
        self._settle(runtime)
        return runtime

    async def execute(self, spec: ExecSpec, descriptors: Sequence[int] = ()) -> Command:
        """Runs a command in a running container."""
        return await self._now().execute(spec, descriptors)

    async def stdin(self, container: str) -> int:
        """The writing end of a container's input, or its terminal."""
        return await self._now().stdin(container)

    async def socket(self, spec: SocketSpec) -> socket.socket:
        """A socket in the network of a pod."""
        return await self._now().socket(spec)

    async def usage(self) -> list[ContainerReading]:
        """What containers have used."""
        return await self._now().usage()

    async def sandboxes(self) -> list[SandboxState]:
        """The pods and containers that there are."""
        return await self._now().sandboxes()

    def _now(self) -> Runtime:
        if self._runtime is None or self._runtime.closed.is_set():
            raise RuntimeFault("Unavailable", "what runs containers is being started again: try again in a moment")
        return self._runtime

    def _settle(self, runtime: Runtime | None) -> None:
        self._runtime = runtime
        for listener in self._listeners:
            listener(runtime is not None)
