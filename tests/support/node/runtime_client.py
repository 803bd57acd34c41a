"""A client of the process node's runtime that remembers which containers it was told of."""

from __future__ import annotations

import asyncio
from pathlib import Path

from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState
from tests.support.waiting import eventually


class Client:
    """A connection, and the ends of containers that it was told of."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.ended: dict[str, ContainerState] = {}
        runtime.on_end(lambda state: self.ended.__setitem__(state.id, state))

    async def end_of(self, spec: ContainerSpec) -> ContainerState:
        await eventually(lambda: spec.id in self.ended)
        return self.ended[spec.id]

    async def run(self, spec: ContainerSpec) -> ContainerState:
        await self.runtime.start(spec)
        return await self.end_of(spec)


async def connect(socket: Path) -> Client:
    async with asyncio.timeout(10):
        return Client(await Runtime.connect(socket))
