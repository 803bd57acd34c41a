"""All controllers together, as ``shoal up`` runs them."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import shoal.cluster.controllers
from shoal.api.core import NAMESPACES, PODS
from shoal.api.meta import Document, Resource
from shoal.cli.demonstration import manifests
from shoal.cluster.controllers import everything
from shoal.cluster.controllers.binding import add_binding
from shoal.cluster.node.simulated import add_simulated_nodes
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

DEMO = [one for one in manifests() if one["kind"] not in ("Queue", "PodCliqueSet", "TrainJob")]
PASSING = ("CronJob", "HorizontalPodAutoscaler")
"""What does something every minute, or every fifteen seconds."""


def exported() -> Iterator[str]:
    for room in pkgutil.iter_modules(shoal.cluster.controllers.__path__):
        module = importlib.import_module(f"shoal.cluster.controllers.{room.name}")
        if room.ispkg:
            yield from (name for name in getattr(module, "__all__", ()) if name.startswith("add_"))


def test_no_controller_is_left_out() -> None:
    source = inspect.getsource(everything.add_controllers) + inspect.getsource(everything.add_own_controllers)
    assert {name for name in exported() if f"{name}(" not in source} == {"add_binding"}


async def test_the_demo_comes_to_rest_survives_a_restart_and_goes_without_a_trace(
    cluster: Cluster, tmp_path: Path
) -> None:
    def add(manager: Manager) -> None:
        everything.add_controllers(manager, tmp_path)
        add_binding(manager)
        add_simulated_nodes(manager, sockets=tmp_path / "agents", pools=())

    async with cluster.controllers(add):
        for wanted in DEMO:
            if wanted["kind"] not in PASSING:
                await make(cluster, wanted)

        async def is_settled() -> bool:
            running = [pod for pod in await all_pods(cluster) if pod["status"]["phase"] == "Running"]
            return len(running) >= 8 + 4 + 3 + 3 + 12

        await until(is_settled, within=20)
    await cluster.client.delete_collection(JOBS, "demo-research", propagation="Background")  # they go on by the clock
    await cluster.client.delete(DEPLOYMENTS, "broken", "demo-operations", propagation="Background")
    async with cluster.controllers(add) as manager:

        async def are_gone() -> bool:
            return len(await all_pods(cluster)) == 3 + 3 + 12

        async def is_quiet() -> bool:
            before = writes_of(manager)
            await asyncio.sleep(1.0)
            return writes_of(manager) == before

        await until(are_gone, within=20)
        await at_rest(manager)
        await until(is_quiet, within=20)
    written: list[int] = []
    while 1 not in written and len(written) < 3:  # what comes by the clock comes once, what has no need each time
        async with cluster.controllers(add) as manager:
            await at_rest(manager)
            await asyncio.sleep(0.5)  # for what would be written without a need
            written.append(writes_of(manager))
    assert 1 in written, f"more than the lease of the simulated nodes is written by each start: {written}"
    async with cluster.controllers(add) as manager:
        for namespace in ("demo-research", "demo-serving", "demo-operations"):
            await cluster.client.delete(NAMESPACES, namespace)

        async def is_empty() -> bool:
            return not await all_pods(cluster) and len(await cluster.all(NAMESPACES)) == 4

        await until(is_empty, within=20)


async def all_pods(cluster: Cluster) -> list[dict[str, Any]]:
    return await cluster.all(PODS, "")


def resource(kind: str, api_version: str) -> Resource[Document]:
    group, _, version = api_version.rpartition("/")
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    is_cluster_wide = kind in ("Node", "Namespace", "PriorityClass")
    return Resource(
        type=Document, group=group, version=version, kind=kind, plural=plural, namespaced=not is_cluster_wide
    )


JOBS = resource("Job", "batch/v1")
DEPLOYMENTS = resource("Deployment", "apps/v1")


async def make(cluster: Cluster, wanted: dict[str, Any]) -> None:
    await cluster.make(resource(wanted["kind"], wanted["apiVersion"]), wanted, wanted["metadata"].get("namespace", ""))
