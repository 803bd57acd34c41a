"""Where scenarios of gangs play: a namespace, simulated nodes of its own, a gang scheduler, and a record of it all."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from shoal.api.core import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Pod, is_active, is_node_ready, is_ready
from shoal.api.grove import (
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    names,
)
from shoal.api.meta import Resource
from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.kube import Client, NotFound
from tests.support.clusters.client import client_to, transport_to
from tests.support.gangs.history import History, recording
from tests.support.gangs.scheduler import gang_scheduling
from tests.support.waiting import eventually

T = TypeVar("T")

SITE = "site"
"""The label of a stage's own nodes: its pods are sent there, so that no other test is in their way."""
MADE: tuple[Resource[Any], ...] = (PODS, POD_CLIQUES, SCALING_GROUPS, POD_GANGS)
_numbers = itertools.count()


def one_cpu(**fields: Any) -> dict[str, Any]:
    """The spec of a pod that asks for one processor."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {"containers": [container], **fields}


@dataclass
class Stage:
    """One namespace of a running cluster."""

    client: Client
    namespace: str
    history: History
    nodes: list[str] = field(default_factory=list)

    # Nodes

    async def add_nodes(
        self, count: int, *, cpu: int = 1, memory: str = "64Gi", labels: Mapping[str, str] | None = None
    ) -> list[str]:
        """Adds simulated nodes with room for so many pods that ask for one processor, and waits until they are up."""
        made = [f"{self.namespace}-{len(self.nodes) + index}" for index in range(count)]
        for name in made:
            await self.client.create(NODES.documents(), self._node(name, cpu, memory, labels or {}))
        self.nodes += made
        await self.until(lambda: self._are_ready(made), "nodes to be ready")
        return made

    async def cordon(self, *nodes: str, closed: bool = True) -> None:
        """Closes nodes to new pods, or opens them again."""
        for node in nodes:
            await self.client.merge_patch(NODES.documents(), node, {"spec": {"unschedulable": closed}})

    def _node(self, name: str, cpu: int, memory: str, labels: Mapping[str, str]) -> dict[str, Any]:
        room = {"cpu": str(cpu), "memory": memory, "pods": "110", "nvidia.com/gpu": "8"}
        metadata = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, SITE: self.namespace, **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }
        return {"metadata": metadata, "status": {"capacity": room, "allocatable": room}}

    async def _are_ready(self, made: Iterable[str]) -> bool:
        nodes = [await self.client.get(NODES, name) for name in made]
        return all(map(is_node_ready, nodes))

    # Sets

    async def make(self, body: Mapping[str, Any]) -> PodCliqueSet:
        """Makes a set whose pods go to the nodes of this stage."""
        template = body["spec"]["template"]
        cliques = [
            {**clique, "spec": {**clique["spec"], "podSpec": self._at_home(clique["spec"]["podSpec"])}}
            for clique in template["cliques"]
        ]
        spec = {**body["spec"], "template": {**template, "cliques": cliques}}
        metadata = {**body["metadata"], "namespace": self.namespace}
        whole = {**body, "metadata": metadata, "spec": spec}
        await self.client.create(POD_CLIQUE_SETS.documents(), whole, self.namespace)
        return await self.set(metadata["name"])

    async def set(self, name: str) -> PodCliqueSet:
        """A set as it is."""
        return await self.client.get(POD_CLIQUE_SETS, name, self.namespace)

    async def change(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Changes a set as a person with an editor would."""
        found = await self.client.get(POD_CLIQUE_SETS.documents(), name, self.namespace)
        patch = _copy(found.content["spec"])
        change(patch)
        await self.client.merge_patch(POD_CLIQUE_SETS.documents(), name, {"spec": patch}, self.namespace)

    async def roll(self, name: str, image: str, *cliques: str) -> None:
        """Gives pods of a set another image: all, or those of some cliques."""

        def change(spec: dict[str, Any]) -> None:
            for clique in spec["template"]["cliques"]:
                if not cliques or clique["name"] in cliques:
                    clique["spec"]["podSpec"]["containers"][0]["image"] = image

        await self.change(name, change)

    async def scale(self, resource: Resource[Any], name: str, replicas: int) -> None:
        """Scales as an autoscaler does, by the scale subresource."""
        self.history.asked.append((name, replicas))
        await self.client.scale(resource, name, replicas, self.namespace)

    async def delete(self, name: str) -> None:
        """Deletes a set."""
        await self.client.delete(POD_CLIQUE_SETS, name, self.namespace, propagation="Background")

    def _at_home(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {**spec, "nodeSelector": {**spec.get("nodeSelector", {}), SITE: self.namespace}}

    async def crash(self, pod: Pod) -> None:
        """Lets the containers of a pod end badly, over and over."""
        annotations = {"shoal.dev/sim-run-time": "0s", "shoal.dev/sim-outcome": "Failed"}
        patch = {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}}
        await self.client.merge_patch(PODS.documents(), pod.metadata.name, patch, self.namespace)

    async def lose(self, *pods: Pod) -> None:
        """Deletes pods."""
        for pod in pods:
            await self.client.delete(PODS, pod.metadata.name, self.namespace, uid=pod.metadata.uid)

    # What there is

    async def pods(self, name: str = "", clique: str = "") -> list[Pod]:
        """The pods that are not on their way out, in the order of their names; those of a set, or of a clique."""
        return [pod for pod in await self.all_pods(name, clique) if not pod.metadata.is_deleting]

    async def all_pods(self, name: str = "", clique: str = "") -> list[Pod]:
        """The pods, those on their way out as well."""
        listing = await self.client.list(PODS, self.namespace)
        found = [
            pod
            for pod in listing.items
            if not name or pod.metadata.labels.get(names.PART_OF_LABEL) == name
            if not clique or pod.metadata.labels.get(names.CLIQUE_LABEL) == clique
        ]
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def clique(self, name: str) -> PodClique:
        """A PodClique."""
        return await self.client.get(POD_CLIQUES, name, self.namespace)

    async def group(self, name: str) -> PodCliqueScalingGroup:
        """A PodCliqueScalingGroup."""
        return await self.client.get(SCALING_GROUPS, name, self.namespace)

    async def gang(self, name: str) -> PodGang:
        """A PodGang."""
        return await self.client.get(POD_GANGS, name, self.namespace)

    async def names(self, resource: Resource[Any]) -> list[str]:
        """The names of all objects of a kind."""
        listing = await self.client.list(resource, self.namespace)
        return sorted(item.metadata.name for item in listing.items)

    # Waiting

    async def until(self, holds: Callable[[], Awaitable[T | None]], what: str, *, within: float = 60.0) -> T:
        """The first answer that is neither None nor False; a story of what there is where there is none in time."""
        deadline = time.monotonic() + within
        while (answer := await self._asked(holds)) is None or answer is False:
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {within:.0f} s in vain for {what}:\n{await self.story()}")
            await asyncio.sleep(0.05)
        return answer

    async def stays(self, holds: Callable[[], Awaitable[object]], what: str, *, seconds: float) -> None:
        """Fails as soon as something is not so any more within this time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert await holds(), f"{what} is not so any more:\n{await self.story()}"
            await asyncio.sleep(0.05)

    async def _asked(self, holds: Callable[[], Awaitable[T | None]]) -> T | None:
        try:
            return await holds()
        except NotFound:
            return None

    async def until_ready(
        self, name: str, count: int, *, without: frozenset[str] = frozenset(), within: float = 60.0
    ) -> list[Pod]:
        """The pods of a set, once there are exactly so many, all of them ready, and none of those on its way out.

        ``without`` are the uids of pods that must be gone.
        """

        async def found() -> list[Pod] | None:
            pods = await self.all_pods(name)
            are_all = len(pods) == count and not uids(pods) & without and self.history.shows(pods)
            return pods if are_all and all(is_ready(pod) and is_active(pod) for pod in pods) else None

        return await self.until(found, f"{count} ready pods of {name}", within=within)

    async def until_waiting(self, name: str, count: int) -> list[Pod]:
        """The pods of a set, once there are so many without a node, none of them gated, and the scheduler gave up."""

        async def found() -> list[Pod] | None:
            waiting = [pod for pod in await self.pods(name) if not pod.spec.node_name and is_active(pod)]
            is_told = all(
                any(one.reason == "Unschedulable" for one in pod.status.conditions) and not pod.spec.scheduling_gates
                for pod in waiting
            )
            return waiting if len(waiting) == count and is_told else None

        return await self.until(found, f"{count} pods of {name} to wait for a node")

    async def until_waiting_beside_gated(self, name: str, *, waiting: int, gated: int) -> list[Pod]:
        """Those pods of a set without a node that may have one, once there are so many, and so many gated ones."""

        async def found() -> list[Pod] | None:
            pods = [pod for pod in await self.pods(name) if not pod.spec.node_name]
            free = [pod for pod in pods if not pod.spec.scheduling_gates]
            return free if (len(free), len(pods) - len(free)) == (waiting, gated) else None

        return await self.until(found, f"{waiting} pods of {name} to wait, and {gated} to be gated")

    async def until_phase(self, gang: str, phase: str) -> None:
        """Waits until a PodGang says so."""

        async def is_so() -> bool:
            return (await self.gang(gang)).status.phase == phase

        await self.until(is_so, f"PodGang {gang} to be {phase}")

    async def until_names(self, resource: Resource[Any], expected: Sequence[str]) -> None:
        """Waits until these are all the objects of a kind."""

        async def are_there() -> bool:
            return await self.names(resource) == sorted(expected)

        await self.until(are_there, f"{resource.kind}s {list(expected)}")

    async def until_gone(self, *sets: str) -> None:
        """Waits until nothing is left of sets that were deleted, or of the whole namespace."""
        kinds = (*MADE, POD_CLIQUE_SETS)

        async def is_empty() -> bool:
            for resource in kinds:
                for item in (await self.client.list(resource, self.namespace)).items:
                    owner = item.metadata.labels.get(names.PART_OF_LABEL, item.metadata.name)
                    if not sets or owner in sets:
                        return False
            return True

        await self.until(is_empty, "everything to be gone")

    async def until_updated(self, name: str, *, within: float = 90.0) -> PodCliqueSet:
        """A set whose update has ended with all its replicas."""

        async def found() -> PodCliqueSet | None:
            pcs = await self.set(name)
            progress = pcs.status.update_progress
            is_over = progress is not None and progress.update_ended_at is not None
            is_seen = pcs.status.observed_generation == pcs.metadata.generation
            return pcs if is_over and is_seen and pcs.status.updated_replicas == pcs.spec.replicas else None

        return await self.until(found, f"{name} to be updated", within=within)

    async def story(self) -> str:
        """What there is, for whoever reads a failure."""
        lines = []
        for pod in await self.all_pods():
            gated = " gated" if pod.spec.scheduling_gates else ""
            going = " going" if pod.metadata.is_deleting else ""
            lines.append(f"pod {pod.metadata.name} {pod.status.phase} on {pod.spec.node_name or '-'}{gated}{going}")
        for resource in (POD_CLIQUE_SETS, SCALING_GROUPS, POD_CLIQUES, POD_GANGS):
            for item in (await self.client.list(resource.documents(), self.namespace)).items:
                lines.append(f"{resource.kind} {item.metadata.name} {_brief(item.content.get('status') or {})}")
        return "\n".join(lines)


def images(pods: Iterable[Pod]) -> list[str]:
    """The image of each pod's first container."""
    return [pod.spec.containers[0].image for pod in pods]


def uids(pods: Iterable[Pod]) -> frozenset[str]:
    """Who the pods are."""
    return frozenset(pod.metadata.uid for pod in pods)


def of_cliques(pods: Iterable[Pod], *cliques: str) -> list[Pod]:
    """Those of some PodCliques, by their full names."""
    return [pod for pod in pods if pod.metadata.labels[names.CLIQUE_LABEL] in cliques]


def of_replica(pods: Iterable[Pod], index: int) -> list[Pod]:
    """Those of one replica of a set."""
    return [pod for pod in pods if pod.metadata.labels[names.SET_REPLICA_LABEL] == str(index)]


def of_gang(pods: Iterable[Pod], gang: str) -> list[Pod]:
    """Those of a PodGang."""
    return [pod for pod in pods if pod.metadata.labels[names.GANG_LABEL] == gang]


def placed(pods: Iterable[Pod]) -> list[Pod]:
    """Those with a node."""
    return [pod for pod in pods if pod.spec.node_name]


@asynccontextmanager
async def a_stage(kubeconfig: Path) -> AsyncIterator[Stage]:
    """A namespace for one scenario, with a gang scheduler at work. In the end it is left as it was found."""
    before = _open_sockets()
    async with (
        client_to(kubeconfig) as client,
        transport_to(kubeconfig) as transport,
        gang_scheduling(transport),
        a_namespace(client) as stage,
    ):
        yield stage
    # A watch that was cut short closes its connection by and by, which the end of the loop must not meet.
    await eventually(lambda: _open_sockets() <= before)


@asynccontextmanager
async def a_namespace(client: Client) -> AsyncIterator[Stage]:
    """A namespace, where others schedule. In the end its sets are deleted; nothing may be left, or have gone wrong."""
    namespace = f"gangs-{next(_numbers)}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    async with recording(client, namespace) as history:
        stage = Stage(client, namespace, history)
        await stage.until(lambda: client.get(SERVICE_ACCOUNTS, "default", namespace), "the default account")
        yield stage
        for name in await stage.names(POD_CLIQUE_SETS):
            await stage.delete(name)
        await stage.until_gone()
        for node in stage.nodes:
            await client.delete(NODES, node)
    await client.delete(NAMESPACES, namespace)
    problems = history.violations()
    assert not problems, "\n".join(problems[:20])


def _open_sockets() -> int:
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def _brief(status: Mapping[str, Any]) -> str:
    conditions = [
        f"{one['type']}={one['status']}/{one['reason']}@{one['lastTransitionTime'][14:19]}"
        for one in status.get("conditions", ())
    ]
    others = {key: value for key, value in status.items() if key not in ("conditions", "podGangStatuses", "selector")}
    return f"{conditions} {others}"


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_copy(inner) for inner in value]
    return value
