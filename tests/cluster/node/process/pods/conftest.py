"""Pods that really run: the keeper on a real (embedded) API server, with the real runtime program."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES, Node
from shoal.api.core.pod_details import POD_DETAILS
from shoal.api.meta import PartialObject
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents import Contents, NodeFacts
from shoal.cluster.node.process.contents.memory import MemoryFolders
from shoal.cluster.node.process.contents.removal import remove_tree
from shoal.cluster.node.process.layout import NODE_NAME, Layout
from shoal.cluster.node.process.machine.gpus import Gpus
from shoal.cluster.node.process.pods import PodKeeper
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.support.node.runtime_program import Program, a_runtime
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import wait_until

Spec = dict[str, Any]


class Machine:
    """A cluster whose one node is this machine; the agent is started as often as a test wants."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.layout = Layout(folder)
        self.folder = folder
        self.node: Node | None = None
        self.keeper: PodKeeper | None = None

    @property
    def residents(self) -> PodKeeper:
        assert self.keeper is not None
        return self.keeper

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Manager]:
        """The agent, for the length of a block."""
        self.layout.runtime_socket.parent.mkdir(parents=True, exist_ok=True)

        def add(manager: Manager) -> None:
            informer = manager.cache.informer
            contents = Contents(
                manager.client,
                self.layout,
                NodeFacts(has_all_ids=is_root(), allocatable={"cpu": "4", "memory": "8Gi"}),
                services=informer(SERVICES),
                config_maps=informer(CONFIG_MAPS.view(PartialObject)),
                secrets=informer(SECRETS.view(PartialObject)),
                memory=MemoryFolders(self.folder / "memory"),
                homes=[],
            )
            self.keeper = PodKeeper(
                manager.client,
                manager.events,
                informer(POD_DETAILS, field_selector=f"spec.nodeName={NODE_NAME}"),
                connect=lambda: Runtime.connect(self.layout.runtime_socket),
                contents=contents,
                gpus=Gpus([], self.folder / "gpus.json"),
                layout=self.layout,
                node=lambda: self.node,
                machine_address="127.0.0.1",
            )
            manager.add_leader_task(self.keeper.run)

        async with self.cluster.controllers(add) as manager:
            await manager.wait_until_working()
            yield manager

    async def add(self, name: str, command: str = "sleep 1000", *, container: Spec | None = None, **spec: Any) -> Spec:
        """A pod on this node; ``main`` runs ``command`` in a shell where no containers are given."""
        main = {"name": "main", "image": "busybox", "command": ["sh", "-c", command], **(container or {})}
        body = {
            "metadata": {"name": name, **spec.pop("metadata", {})},
            "spec": {
                "nodeName": NODE_NAME,
                "containers": [main],
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 5,
                **spec,
            },
        }
        return (await self.cluster.make(PODS, body)).content

    async def delete(self, name: str, *, grace: int | None = None) -> None:
        await self.cluster.client.delete(PODS, name, "default", grace_seconds=grace)

    async def pod(self, name: str, holds: Callable[[Spec], object] = lambda pod: True, *, within: float = 30) -> Spec:
        """A pod as soon as something holds for it."""
        seen: list[Spec | None] = []

        async def look() -> Spec | None:
            found = await self.cluster.read(PODS, name)
            seen.append(found)
            return found if found is not None and holds(found) else None

        try:
            found: Spec = await until(look, within=within)
        except TimeoutError:
            status = (seen[-1] or {}).get("status")
            raise AssertionError(f"waited in vain for pod {name}: {json.dumps(status, indent=1)}") from None
        return found

    async def phase(self, name: str, phase: str, *, within: float = 30) -> Spec:
        return await self.pod(name, lambda pod: pod.get("status", {}).get("phase") == phase, within=within)

    async def gone(self, name: str, *, within: float = 30) -> None:
        async def is_gone() -> bool:
            return await self.cluster.read(PODS, name) is None

        await until(is_gone, within=within)

    async def told(self, name: str, reason: str, *, within: float = 30) -> str:
        """The message of an event about a pod."""

        async def look() -> str | None:
            for event in await self.cluster.all(EVENTS):
                if event["involvedObject"]["name"] == name and event["reason"] == reason:
                    return str(event["message"])
            return None

        message: str = await until(look, within=within)
        return message

    def output(self, pod: Spec, container: str = "main", *, previous: bool = False) -> list[str]:
        """What a container wrote."""
        path = self.residents.log(pod["metadata"]["uid"], container, previous=previous)
        lines = path.read_text().splitlines() if path is not None else []
        return [line.split(" ", 3)[3] for line in lines]


def state(pod: Spec, container: str = "main") -> Spec:
    """The status of a container."""
    status = pod["status"]
    lists = (status.get(f"{kind}Statuses", ()) for kind in ("container", "initContainer", "ephemeralContainer"))
    everyone = (one for statuses in lists for one in statuses)
    return next((one for one in everyone if one["name"] == container), {"state": {}, "restartCount": 0})


def conditions(pod: Spec) -> dict[str, str]:
    return {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}


@pytest.fixture
def folder() -> Iterator[Path]:
    """The data dir. What the agent was removing when it was stopped is removed by a thread of its own."""
    made = Path(tempfile.mkdtemp(dir="/tmp", prefix="shoal-pods-"))
    yield made

    def is_removed() -> bool:
        with suppress(OSError):
            remove_tree(made)
        return not made.exists()

    wait_until(is_removed, "an empty data dir")


@pytest.fixture
def runtime(folder: Path) -> Iterator[Program]:
    (folder / "node").mkdir(exist_ok=True)
    with a_runtime(folder / "node", is_ordinary=False) as program:
        yield program


@pytest.fixture
async def machine(cluster: Cluster, folder: Path, runtime: Program) -> Machine:
    return Machine(cluster, folder)
