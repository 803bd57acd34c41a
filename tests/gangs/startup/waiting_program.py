"""The real program in a process of its own, a real server behind a relay that can break, and pods to wait for."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shoal.api.core import NAMESPACES, PODS, SERVICE_ACCOUNTS
from shoal.api.meta import Document, Resource
from shoal.kube import Client
from tests.support.clusters.client import client_to
from tests.support.clusters.embedded import Embedded
from tests.support.programs.command import environment

ROLES: Resource[Document] = Resource(
    type=Document, group="rbac.authorization.k8s.io", version="v1", kind="Role", plural="roles"
)
ROLE_BINDINGS: Resource[Document] = Resource(
    type=Document, group="rbac.authorization.k8s.io", version="v1", kind="RoleBinding", plural="rolebindings"
)
GANG = "web-0"


class Relay:
    """Passes bytes on to a server that may come and go, from a port that stays."""

    def __init__(self) -> None:
        self.port = 0
        self.target: int | None = None
        """Where the server is; None refuses everybody."""
        self.connections = 0
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Breaks all connections."""
        for writer in self._open:
            writer.transport.abort()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.target is None:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self.connections += 1
        self._open |= {writer, back}
        with suppress(ConnectionError):
            await asyncio.wait(
                [asyncio.ensure_future(_pass_on(reader, back)), asyncio.ensure_future(_pass_on(there, writer))]
            )
        self._open -= {writer, back}


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def a_relay(target: int | None) -> AsyncIterator[Relay]:
    relay = Relay()
    relay.target = target
    server = await asyncio.start_server(relay.converse, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.cut()


class Surroundings:
    """A namespace with an account in it, and the files that a pod of that account would find."""

    def __init__(self, client: Client, server: Embedded, namespace: str, folder: Path) -> None:
        self.client = client
        self.server = server
        self.namespace = namespace
        self.account, self.pod_info = folder / "account", folder / "pod-info"

    @property
    def port(self) -> int:
        port = urlsplit(self.server.server).port
        assert port is not None
        return port

    async def prepare(self, *, may_look: bool = True) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        for name in ("default", "web"):
            await self.client.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, self.namespace)
        if may_look:
            await self.permit()
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/web/token"
        answer = self.server.admin.request("POST", path, {"spec": {"expirationSeconds": 3600}})
        for folder in (self.account, self.pod_info):
            folder.mkdir(parents=True)
        (self.account / "token").write_text(answer["status"]["token"])
        (self.account / "ca.crt").write_text(self.server.ca_file.read_text())
        (self.pod_info / "namespace").write_text(self.namespace)
        (self.pod_info / "podgangname").write_text(GANG)

    async def permit(self) -> None:
        """Lets the account look at pods, as the operator's Role does."""
        rules = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]
        await self.client.create(ROLES, {"metadata": {"name": "web"}, "rules": rules}, self.namespace)
        binding = {
            "metadata": {"name": "web"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"},
            "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": self.namespace}],
        }
        await self.client.create(ROLE_BINDINGS, binding, self.namespace)

    async def add_pod(self, name: str, clique: str, *, gang: str = GANG, **spec: Any) -> None:
        labels = {"grove.io/podgang": gang, "grove.io/podclique": clique}
        containers = [{"name": "main", "image": "busybox"}]
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": containers, "automountServiceAccountToken": False, **spec},
        }
        await self.client.create(PODS, body, self.namespace)

    async def set_ready(self, name: str, *, ready: bool = True) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        await self.client.strategic_patch(PODS, name, {"status": status}, self.namespace, subresource="status")

    def variables(self, port: int) -> dict[str, str]:
        """What the program is told, where volumes are not at their paths."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(port),
            "SHOAL_VOLUME_POD_INFO_VOL": str(self.pod_info),
            "SHOAL_VOLUME_SA_TOKEN_SECRET_VOL": str(self.account),
        }


@asynccontextmanager
async def surroundings(
    server: Embedded, namespace: str, folder: Path, *, may_look: bool = True
) -> AsyncIterator[Surroundings]:
    async with client_to(server.kubeconfig) as client:
        found = Surroundings(client, server, namespace, folder)
        await found.prepare(may_look=may_look)
        yield found


class Program:
    """A run of the program, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.complaints: list[str] = []
        self._heard = asyncio.Condition()
        assert process.stdout is not None
        assert process.stderr is not None
        self._listening = [
            asyncio.ensure_future(self._listen(process.stdout, self.lines)),
            asyncio.ensure_future(self._listen(process.stderr, self.complaints)),
        ]

    async def says(self, line: str, *, within: float = 20) -> None:
        """Waits until it says a line."""
        await self.until(lambda: line in self.lines, within=within)

    async def until(self, holds: Callable[[], bool], *, within: float = 20) -> None:
        try:
            async with asyncio.timeout(within), self._heard:
                await self._heard.wait_for(holds)
        except TimeoutError:
            told = json.dumps({"said": self.lines, "complained": self.complaints, "code": self.process.returncode})
            raise AssertionError(f"waited {within} s in vain: {told}") from None

    async def ended(self, *, within: float = 20) -> int:
        """The exit code, once it has ended and all that it said was heard."""
        async with asyncio.timeout(within):
            code = await self.process.wait()
            await asyncio.gather(*self._listening)
        return code

    async def _listen(self, stream: asyncio.StreamReader, lines: list[str]) -> None:
        async for line in stream:
            lines.append(line.decode().rstrip("\n"))
            async with self._heard:
                self._heard.notify_all()


@asynccontextmanager
async def running(*arguments: str, **variables: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "shoal.gangs.startup",
        *arguments,
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    program = Program(process)
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await program.ended()
