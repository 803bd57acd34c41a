"""Pods in a test's words, and a node's contents on a real (embedded) API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.core import CONFIG_MAPS, PODS, SECRETS, SERVICES
from shoal.api.core.pod_details import POD_DETAILS, ContainerDetails, PodDetails
from shoal.api.meta import PartialObject
from shoal.cluster.node.process.contents import Contents, NodeFacts
from shoal.cluster.node.process.contents.machine_root import Interpreter
from shoal.cluster.node.process.contents.memory import MemoryFolders
from shoal.cluster.node.process.layout import Layout
from tests.support.clusters.in_process import Cluster

ADDRESS = "10.88.0.7"


def a_container(**fields: Any) -> ContainerDetails:
    return msgspec.convert({"name": "main", "image": "busybox", **fields}, ContainerDetails)


class Node:
    """A cluster, and what containers of its one node find."""

    def __init__(self, cluster: Cluster, contents: Contents, layout: Layout) -> None:
        self.cluster = cluster
        self.contents = contents
        self.layout = layout

    async def add_pod(self, name: str = "web", *, token: bool = False, **spec: Any) -> PodDetails:
        """A pod as the server keeps it."""
        metadata = {"name": name, **spec.pop("metadata", {})}
        filled = {"containers": [{"name": "main", "image": "busybox"}], "automountServiceAccountToken": token, **spec}
        await self.cluster.make(PODS, {"metadata": metadata, "spec": filled})
        return await self.pod(name)

    async def pod(self, name: str = "web") -> PodDetails:
        return await self.cluster.client.get(POD_DETAILS, name, "default")

    def volume(self, pod: PodDetails, name: str) -> Path:
        return self.layout.volume(pod.metadata.uid, name)


@asynccontextmanager
async def contents_of(cluster: Cluster, folder: Path, facts: NodeFacts, **more: Any) -> AsyncIterator[Node]:
    """Contents with their informers running."""
    layout = Layout(folder)
    made: list[Contents] = []

    def add(manager: Any) -> None:
        made.append(
            Contents(
                manager.client,
                layout,
                facts,
                services=manager.cache.informer(SERVICES),
                config_maps=manager.cache.informer(CONFIG_MAPS.view(PartialObject)),
                secrets=manager.cache.informer(SECRETS.view(PartialObject)),
                **{"homes": [], **more},
            )
        )

    async with cluster.controllers(add):
        yield Node(cluster, made[0], layout)


@pytest.fixture
async def node(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Node]:
    facts = NodeFacts(allocatable={"cpu": "4", "memory": "8Gi"})
    memory = MemoryFolders(tmp_path / "memory")
    async with contents_of(cluster, tmp_path / "data", facts, memory=memory) as found:
        yield found


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    return Interpreter(executable="/opt/env/bin/python3", files=["/opt/env", "/usr"])


def mounting(name: str, source: dict[str, Any], **mount: Any) -> dict[str, Any]:
    """A pod's spec with one volume, mounted at /v."""
    container = {"name": "main", "image": "busybox", "volumeMounts": [{"name": name, "mountPath": "/v", **mount}]}
    return {"volumes": [{"name": name, **source}], "containers": [container]}


async def make_config(node: Node, name: str, **data: str) -> None:
    await node.cluster.make(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})


async def change_config(node: Node, name: str, **data: str) -> None:
    await node.cluster.client.merge_patch(CONFIG_MAPS, name, {"data": data}, "default")


async def spec_of(node: Node, pod: PodDetails, **more: Any) -> Any:
    arguments = {"attempt": 0, "address": ADDRESS, **more}
    return await node.contents.container(pod, pod.spec.containers[0], **arguments)
