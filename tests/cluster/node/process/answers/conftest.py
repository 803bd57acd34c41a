"""A node whose pods are real containers of the real runtime, behind a real API server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.apiserver.server import ServerOptions
from shoal.cluster.apiserver.server import serving as serving_api
from shoal.cluster.node.kubelet import ContainerUsage, NodeUsage, serving
from shoal.cluster.node.process.answers import LocalKubelet
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.cluster.apiserver.nodes.test_kubectl_on_nodes import Kubectl
from tests.support.clusters.client import transport_to
from tests.support.node.runtime_program import Program, a_container, a_folder, a_runtime, a_sandbox
from tests.support.waiting import eventually

PODS = "/api/v1/namespaces/default/pods"


def open_descriptors() -> int:
    """How many files, sockets and pipes this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Household:
    """The pods of a node, each with one container called main, and how it stands with them."""

    def __init__(self, cluster: Cluster, runtime: Runtime, folder: Path, kubectl: Kubectl) -> None:
        self.cluster = cluster
        self.runtime = runtime
        self.folder = folder
        self.kubectl = kubectl
        self.transport = cluster.transport
        self.pods: dict[str, PodDetails] = {}
        self.addresses: dict[str, str] = {}
        self.specs: dict[str, list[ContainerSpec]] = {}
        self.ends: dict[str, asyncio.Event] = {}
        self.states: dict[str, ContainerState] = {}
        runtime.on_end(self._note_end)

    async def start(self, name: str, *argv: str, says: bytes = b"", **fields: Any) -> None:
        """A pod whose container runs this, and has said something; of one that is there, the container's next life."""
        if name not in self.pods:
            await self._take_in(name, fields)
        uid = self.pods[name].metadata.uid
        lives = self.specs.setdefault(uid, [])
        number = 16 * len(self.specs) + len(lives)
        spec = a_container(self.folder, *argv, sandbox=uid, number=number, id=secrets.token_hex(32), **fields)
        lives.append(spec)
        self.ends[spec.id] = asyncio.Event()
        await self.runtime.start(spec)
        await eventually(lambda: says in Path(spec.log).read_bytes())
        await self.tell(name, phase="Running", conditions=[{"type": "Ready", "status": "True"}])

    async def tell(self, name: str, **status: Any) -> None:
        """Writes a pod's status."""
        body = {"status": status}
        code, answer = await self.cluster.call(
            "PATCH", f"{PODS}/{name}/status", body, content_type="application/merge-patch+json"
        )
        assert code == 200, answer

    async def end_of(self, name: str) -> ContainerState:
        """How a pod's container ended, once it has."""
        spec = self.specs[self.pods[name].metadata.uid][-1]
        async with asyncio.timeout(10):
            await self.ended(spec.id)
        return self.states[spec.id]

    async def _take_in(self, name: str, fields: dict[str, Any]) -> None:
        """Makes room for a pod, which is made where there is none yet."""
        container = {
            "name": "main",
            "image": "none",
            "stdin": fields.get("has_stdin", False),
            "stdinOnce": fields.get("closes_stdin", False),
            "tty": fields.get("has_tty", False),
        }
        spec = {"containers": [container], "nodeName": NODE, "automountServiceAccountToken": False}
        await self.cluster.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})
        code, pod = await self.cluster.call("GET", f"{PODS}/{name}")
        assert code == 200, pod
        self.pods[name] = msgspec.convert(pod, PodDetails, strict=False)
        address = f"10.88.0.{len(self.pods) + 1}"
        await self.runtime.open(a_sandbox(self.pods[name].metadata.uid, address=address))
        self.addresses[self.pods[name].metadata.uid] = address

    def _note_end(self, state: ContainerState) -> None:
        self.states[state.id] = state
        self.ends[state.id].set()

    # As the answers ask for it

    def pod(self, namespace: str, name: str) -> PodDetails | None:
        return self.pods.get(name) if namespace == "default" else None

    def address(self, uid: str) -> str | None:
        return self.addresses.get(uid)

    def running(self, uid: str, container: str) -> str | None:
        spec = self.spec(uid, container)
        return spec.id if spec is not None and not self.ends[spec.id].is_set() else None

    def log(self, uid: str, container: str, *, previous: bool) -> Path | None:
        lives = self.specs.get(uid, [])
        return Path(lives[-1 - previous].log) if len(lives) > previous else None

    def spec(self, uid: str, container: str) -> ContainerSpec | None:
        lives = self.specs.get(uid)
        return lives[-1] if lives else None

    async def ended(self, container_id: str) -> None:
        await self.ends[container_id].wait()

    def all_pods(self) -> Iterable[PodDetails]:
        return self.pods.values()

    def node_usage(self) -> NodeUsage:
        containers: list[ContainerUsage] = []
        return NodeUsage(
            node=NODE,
            started=0.0,
            cpu_seconds=1.0,
            cpu_cores=0.5,
            memory_bytes=1 << 20,
            memory_capacity=1 << 30,
            containers=containers,
        )


@pytest.fixture
def is_ordinary() -> bool:
    """Whether an ordinary user starts the runtime, which is whoever runs the tests where that is not root."""
    return True


@pytest.fixture
async def household(tmp_path: Path, is_ordinary: bool) -> AsyncIterator[Household]:
    with a_folder(is_ordinary=is_ordinary) as folder, a_runtime(folder, is_ordinary=is_ordinary) as program:
        async with _household(tmp_path, folder, program) as made:
            yield made


@asynccontextmanager
async def _household(tmp_path: Path, folder: Path, program: Program) -> AsyncIterator[Household]:
    runtime = await Runtime.connect(program.socket)
    data_dir = tmp_path / "data"
    async with (
        serving_api(ServerOptions(data_dir=data_dir, port=0, durable=False)) as server,
        transport_to(server.kubeconfig) as transport,
    ):
        cluster = Cluster(server, transport, data_dir)
        await cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        household = Household(cluster, runtime, folder, Kubectl(server.kubeconfig, tmp_path / "cache"))
        kubelet = LocalKubelet(household, runtime, household, pods=household.all_pods)
        socket = cluster.sockets / "local.sock"
        async with serving(kubelet, socket):
            await cluster.add_node(url=f"unix://{socket}")
            yield household
        kubelet.close()
    await runtime.aclose()
