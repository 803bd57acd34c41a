"""The cluster that a question is about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.data_dir import DataDir

if TYPE_CHECKING:
    from shoal.kube import Client


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster and a namespace in it."""

    kubeconfig: Path | None
    context: str | None
    data_dir: Path
    namespace: str = ""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[Client, str]]:
        """A client for the length of a block, and the namespace that is meant.

        The cluster is the one that is named; else the Shoal that runs in the data dir; else the usual kubeconfig's.
        """
        from shoal.kube import Client, HttpTransport, load_connection  # noqa: PLC0415 - other commands do without

        own = DataDir(self.data_dir)
        is_own = self.kubeconfig is None and self.context is None and own.holder() is not None
        connection = load_connection(own.kubeconfig if is_own else self.kubeconfig, self.context)
        client = Client(HttpTransport(connection))
        try:
            yield client, self.namespace or connection.namespace or "default"
        finally:
            await client.close()
