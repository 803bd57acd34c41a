"""A server of reports over HTTPS, on a real (embedded) API server that knows TrainJobs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from shoal.api import trainer
from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.api.trainer import TRAIN_JOBS
from shoal.kube.admission.certs import SelfMade
from shoal.kube.admission.rotation import Policy
from shoal.kube.admission.stores import MemoryStore
from shoal.kube.transport import Request
from shoal.training.framework import Unbuildable
from shoal.training.plugins.train_job_status import audience, report_path
from shoal.training.progress import ProgressServer
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, in_process_cluster
from tests.support.network.sessions import https_session


class Reporter:
    """What a training program does, and what comes of it."""

    def __init__(self, cluster: Cluster, server: ProgressServer, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self.server = server
        self._session = session

    async def token(self, *, namespace: str = "default", of: str = "demo", audiences: Any = None) -> str:
        """A token for a pod of a namespace that is good for reports of one TrainJob."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": audiences or [audience("default", of)]},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
        request = Request(method="POST", path=path, body=msgspec.json.encode(body))
        answer = await self.cluster.server.transport().send(request)
        return str(msgspec.json.decode(answer.body)["status"]["token"])

    async def post(
        self, body: Any, *, token: str | None = None, path: str = "", scheme: str = "Bearer", method: str = "POST"
    ) -> tuple[int, Any]:
        """Sends a report as pods do."""
        given = await self.token() if token is None else token
        url = f"https://localhost:{self.server.port}{path or report_path('default', 'demo')}"
        headers = {"Authorization": f"{scheme} {given}"} if given else {}
        content = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self._session.request(method, url, headers=headers, **content) as answer:
            return answer.status, await answer.json()

    async def status(self) -> dict[str, Any]:
        found = await self.cluster.read(TRAIN_JOBS, "demo")
        assert found is not None
        status: dict[str, Any] = found.get("status", {})
        return status


@pytest.fixture
async def reporter(tmp_path: Path) -> AsyncIterator[Reporter]:
    """A server, a TrainJob ``demo``, and another namespace."""
    async with in_process_cluster(tmp_path / "server", trainer.DEFINITIONS) as cluster:
        await cluster.make(NAMESPACES, {"metadata": {"name": "other"}})
        await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "other")
        await cluster.make(TRAIN_JOBS, {"metadata": {"name": "demo"}, "spec": {"runtimeRef": {"name": "x"}}})
        server = ProgressServer(cluster.client, host="127.0.0.1", port=0)
        running = asyncio.create_task(server.run(SelfMade(MemoryStore(), Policy(names=("localhost",)))))
        try:

            async def is_up() -> bool:
                try:
                    return bool(server.authority()) and server.port > 0
                except Unbuildable:
                    return False

            await until(is_up, within=30)
            context = ssl.create_default_context(cadata=server.authority())
            async with https_session(context) as session:
                yield Reporter(cluster, server, session)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
