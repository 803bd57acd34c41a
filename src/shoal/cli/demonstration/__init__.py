"""What ``shoal demo`` makes: the manifests beside this file, and nodes for them to run on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from shoal.api.meta import Document, PartialObject, Resource
from shoal.cli.output import shortest, write
from shoal.cluster.node.process.layout import NODE_NAME
from shoal.cluster.node.simulated.pools import FAKE, POOL, Pool, node_labels, node_resources
from shoal.kube import AlreadyExists, Client, Forbidden, HttpTransport, NotFound, load_connection

_MANAGER = "shoal-demo"
_LABEL = "shoal.dev/demo"
_POOLS = ("8x8:H100", "4x4:L40S", "4x0")
_GONE_WITHIN = 120.0
_AGAIN = 0.1
_ON_THIS_MACHINE = "7-this-machine.yaml"

_KINDS = {
    "CronJob": ("batch", "v1", "cronjobs", True),
    "DaemonSet": ("apps", "v1", "daemonsets", True),
    "Deployment": ("apps", "v1", "deployments", True),
    "HorizontalPodAutoscaler": ("autoscaling", "v2", "horizontalpodautoscalers", True),
    "Job": ("batch", "v1", "jobs", True),
    "Namespace": ("", "v1", "namespaces", False),
    "Node": ("", "v1", "nodes", False),
    "PodCliqueSet": ("grove.io", "v1alpha1", "podcliquesets", True),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets", True),
    "PriorityClass": ("scheduling.k8s.io", "v1", "priorityclasses", False),
    "Queue": ("scheduling.run.ai", "v2", "queues", False),
    "ResourceQuota": ("", "v1", "resourcequotas", True),
    "Service": ("", "v1", "services", True),
    "StatefulSet": ("apps", "v1", "statefulsets", True),
    "TrainJob": ("trainer.kubeflow.org", "v1alpha1", "trainjobs", True),
}

_NEXT = """
Look at it:
  export KUBECONFIG={kubeconfig}
  kubectl get nodes -L nvidia.com/gpu.product
  kubectl get pods -A -o wide
  kubectl -n demo-research get jobs,cronjobs
  kubectl get queues
  shoal explain job/too-large -n demo-research
  kubectl -n demo-research logs job/train-llama
  shoal get trainjobs -n demo-research
  shoal logs trainjob/finetune -n demo-research --rank 1
  kubectl get podgangs -A
  kubectl -n demo-serving get podcliques
  kubectl -n demo-research events --for podcliqueset/rollouts
  kubectl top pods -n demo-serving
  shoal status
"""


def manifests(*, is_node: bool = True) -> Iterator[dict[str, Any]]:
    """Everything the demo makes, in the order in which it is made.

    What reports its progress really runs, on this machine; it is left out where that is no node.
    """
    for index, text in enumerate(_POOLS):
        pool = Pool.parse(text)
        yield from (_marked(_node(f"demo-{index}-{number}", index, pool)) for number in range(pool.nodes))
    for path in sorted(Path(__file__).parent.glob("*.yaml")):
        if path.name == _ON_THIS_MACHINE and not is_node:
            continue
        yield from map(_marked, yaml.safe_load_all(path.read_text()))


def apply(kubeconfig: Path) -> None:
    """Makes it so."""
    asyncio.run(_with_client(kubeconfig, _apply))
    write(_NEXT.format(kubeconfig=shortest(kubeconfig)))


def take_away(kubeconfig: Path) -> None:
    """Deletes it all, and waits until it is gone."""
    asyncio.run(_with_client(kubeconfig, _take_away))


async def _apply(client: Client) -> None:
    wanted = list(manifests(is_node=await _is_there(client, _resource("Node"), NODE_NAME)))
    for kind in dict.fromkeys(one["kind"] for one in wanted):
        of_kind = [one for one in wanted if one["kind"] == kind]
        await asyncio.gather(*(_applied(client, one) for one in of_kind))
        names = ", ".join(one["metadata"]["name"] for one in of_kind) if kind != "Node" else f"{len(of_kind)} simulated"
        write(f"  {kind:<24} {names}\n")


def _node(name: str, index: int, pool: Pool) -> dict[str, Any]:
    labels = {key: value for key, value in node_labels(name, index, pool).items() if key != POOL}
    resources = node_resources(pool)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {FAKE: "fake"}},
        # For the demo's own pods: somebody else's are meant to run, which they do on this machine.
        "spec": {"taints": [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": resources, "allocatable": resources},
    }


async def _applied(client: Client, wanted: dict[str, Any]) -> None:
    metadata = wanted["metadata"]
    if wanted["kind"] == "Node":
        # What a node has is part of its status, which only a create sets along with the rest.
        with suppress(AlreadyExists):
            await client.create(_resource("Node"), wanted, field_manager=_MANAGER)
        return
    await client.apply(
        _resource(wanted["kind"]),
        wanted,
        metadata.get("namespace", ""),
        name=metadata["name"],
        field_manager=_MANAGER,
        force=True,
    )


async def _take_away(client: Client) -> None:
    """Namespaces first, with all that is in them: pods end on their nodes before those go. Queues below others too."""
    wanted = list(manifests())
    for kind in ("Namespace", "Queue", "PriorityClass", "Node"):
        of_kind = [one for one in wanted if one["kind"] == kind]
        for is_above in (False, True):
            names = [one["metadata"]["name"] for one in of_kind if _is_above(one, of_kind) is is_above]
            await asyncio.gather(*(_deleted(client, _resource(kind), name) for name in names))
        write(f"  {kind:<24} {len(of_kind)} gone\n")


def _is_above(one: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    name = one["metadata"]["name"]
    return any(other.get("spec", {}).get("parentQueue") == name for other in others)


async def _is_there(client: Client, resource: Resource[Document], name: str) -> bool:
    try:
        await client.get(resource.view(PartialObject), name)
    except NotFound:
        return False
    return True


async def _deleted(client: Client, resource: Resource[Document], name: str) -> None:
    async with asyncio.timeout(_GONE_WITHIN):
        try:
            while not await _is_let_go(client, resource, name):  # noqa: ASYNC110 - nobody tells when
                await asyncio.sleep(_AGAIN)
            view = resource.view(PartialObject)
            while True:
                found = await client.get(view, name)
                watching = client.watch(
                    view, resource_version=found.metadata.resource_version, field_selector=f"metadata.name={name}"
                )
                async for event in watching:
                    if event.type.value == "DELETED":
                        return
        except NotFound:
            return


async def _is_let_go(client: Client, resource: Resource[Document], name: str) -> bool:
    """Asks for an object's end. A queue is refused until it is known that those below it are gone."""
    try:
        await client.delete(resource, name, propagation="Background")
    except Forbidden:
        if resource.kind != "Queue":
            raise
        return False
    return True


def _resource(kind: str) -> Resource[Document]:
    group, version, plural, namespaced = _KINDS[kind]
    return Resource(type=Document, group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)


def _marked(wanted: dict[str, Any]) -> dict[str, Any]:
    metadata = wanted["metadata"]
    return {**wanted, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), _LABEL: "true"}}}


async def _with_client(kubeconfig: Path, work: Callable[[Client], Awaitable[None]]) -> None:
    client = Client(HttpTransport(load_connection(kubeconfig)))
    try:
        await work(client)
    finally:
        await client.close()
