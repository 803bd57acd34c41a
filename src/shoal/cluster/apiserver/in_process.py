"""A server inside the caller's event loop, without sockets: for tests, and for trying things out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.api.meta import now
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.core import Core, running
from shoal.cluster.apiserver.loopback import LoopbackTransport
from shoal.cluster.apiserver.storage import Store


@dataclass(frozen=True, kw_only=True)
class InProcessServer:
    """A server that is called, not connected to."""

    core: Core

    def transport(self, *, user: str = "", groups: tuple[str, ...] = ()) -> LoopbackTransport:
        """A transport for the client runtime; as the administrator, or as a user of these groups."""
        token = self.core.credentials.user_tokens.token(user, groups) if user else ""
        return LoopbackTransport(self.core.service, token=token)


@asynccontextmanager
async def serve_in_process(folder: Path, *, durable: bool = False) -> AsyncIterator[InProcessServer]:
    """Runs a server on a folder that it may keep its data in."""
    store = await Store.open(folder / "store", synchronous="FULL" if durable else "OFF")
    try:
        credentials = Credentials.at(folder / "pki", names=["localhost"], now=now())
        async with running(store, credentials) as core:
            yield InProcessServer(core=core)
    finally:
        await store.close()
