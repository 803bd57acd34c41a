"""PodGangs that others made, of pods that others make: told what pods carry, their pods named, their gates lifted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from shoal.api import scheduling_volcano_sh
from shoal.api.core import PODS
from shoal.api.scheduler_grove_io import POD_GANGS, PodFields, PodGang, pod_fields
from shoal.api.scheduling_k8s_io import WORKLOADS_V1ALPHA1
from shoal.api.scheduling_run_ai import POD_GROUPS as KAI_GROUPS
from shoal.api.scheduling_volcano_sh import POD_GROUPS as VOLCANO_GROUPS
from shoal.cli.processes.api import define
from shoal.gangs.backends.controller import add_backends
from shoal.gangs.backends.registry import Backends, built_in
from shoal.gangs.caches import Caches
from shoal.gangs.podgangs import add_podgangs
from shoal.gangs.podgangs.guests import hospitality
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from tests.gangs.podgangs.actors import answers, is_initialized, podgangs, references, set_pod
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

BACKENDS = Backends(built_in(), served=lambda: frozenset({WORKLOADS_V1ALPHA1.documents()}))


def a_guest_gang(
    *, scheduler: str | None = "volcano", groups: dict[str, int] | None = None, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """A gang of somebody's, of two workers and a leader that nobody waits for."""
    named = {} if scheduler is None else {"grove.io/scheduler-name": scheduler}
    groups = groups or {"work-node": 2, "work-leader": 0}
    return {
        "metadata": {"name": "work", "namespace": "default", "labels": {**named, **(labels or {})}},
        "spec": {
            "podgroups": [{"name": name, "minReplicas": count, "podReferences": []} for name, count in groups.items()]
        },
    }


async def make_pod(cluster: Cluster, name: str, *, group: str = "work-node", is_gated: bool = False) -> None:
    labels = {"grove.io/podgang": "work", "grove.io/podclique": group}
    gates = [{"name": "grove.io/podgang-pending-creation"}, {"name": "acme/other"}] if is_gated else []
    await cluster.make(PODS, pod_manifest(name, labels=labels, schedulingGates=gates))


async def gang_when(cluster: Cluster, holds: Any) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await cluster.read(POD_GANGS, "work")
        return found if found is not None and holds(found) else None

    try:
        found: dict[str, Any] = await until(look, within=30)
    except TimeoutError:
        raise AssertionError(f"in vain; it is {await cluster.read(POD_GANGS, 'work')}") from None
    return found


def carried(gang: dict[str, Any]) -> Any:
    return json.loads(gang["metadata"].get("annotations", {}).get("grove.io/pods-carry", "{}"))


CARRIED: dict[str, tuple[str, str, PodFields]] = {
    "kai-scheduler": (
        "kai",
        "kai-scheduler",
        PodFields(
            labels={"kai.scheduler/subgroup-name": "work-node"},
            annotations={"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "pg-work-u"},
            spec={"schedulerName": "kai-scheduler"},
        ),
    ),
    "default-scheduler": (
        "default",
        "default-scheduler",
        PodFields(
            spec={"schedulerName": "default-scheduler", "workloadRef": {"name": "work", "podGroup": "work-node"}}
        ),
    ),
    "koord-scheduler": (
        "koordinator",
        "koord-scheduler",
        PodFields(
            labels={"pod-group.scheduling.sigs.k8s.io": "work-work-node"}, spec={"schedulerName": "koord-scheduler"}
        ),
    ),
    "volcano": (
        "volcano",
        "volcano",
        PodFields(
            annotations={"scheduling.volcano.sh/group-name": "work", "scheduling.k8s.io/group-name": "work"},
            spec={"schedulerName": "volcano"},
        ),
    ),
    "none, where KAI is the usual one": (
        "kai",
        "",
        PodFields(
            labels={"kai.scheduler/subgroup-name": "work-node"},
            annotations={"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "pg-work-u"},
            spec={"schedulerName": "kai-scheduler"},
        ),
    ),
}


@pytest.mark.parametrize(("backend", "scheduler", "fields"), CARRIED.values(), ids=CARRIED)
def test_what_pods_carry_for_each_scheduler(backend: str, scheduler: str, fields: PodFields) -> None:
    body = a_guest_gang(scheduler=scheduler, groups={"work-node": 2})
    gang = msgspec.convert({**body, "metadata": {**body["metadata"], "uid": "u"}}, PodGang)
    given = hospitality(gang, BACKENDS, "kai-scheduler")
    assert given.labels == {"grove.io/scheduler-backend": backend}
    assert pod_fields(given.annotations) == {"work-node": fields}


def test_words_of_somebody_else_are_none() -> None:
    assert pod_fields({"grove.io/pods-carry": "[not this]"}) == {}


async def test_a_gang_is_told_what_its_pods_carry_before_there_are_any(cluster: Cluster) -> None:
    await cluster.make(POD_GANGS, a_guest_gang())
    async with cluster.controllers(podgangs()) as manager:
        gang = await gang_when(cluster, carried)
        assert set(carried(gang)) == {"work-node", "work-leader"}
        assert gang["metadata"]["labels"]["grove.io/scheduler-backend"] == "volcano"
        await gang_when(cluster, answers)
        await at_rest(manager)
        before = writes_of(manager)
        await asyncio.sleep(0.3)  # longer than anything here waits
        await at_rest(manager)
        assert writes_of(manager) == before


async def test_its_pods_are_named_and_it_is_told_how_far_it_is(cluster: Cluster) -> None:
    await cluster.make(POD_GANGS, a_guest_gang())
    async with cluster.controllers(podgangs()):
        await make_pod(cluster, "node-0")
        await make_pod(cluster, "other", group="unheard-of")
        gang = await gang_when(cluster, lambda gang: references(gang)["work-node"] == ["node-0"])
        assert not is_initialized(gang)
        await make_pod(cluster, "node-1")
        gang = await gang_when(cluster, is_initialized)
        assert references(gang) == {"work-node": ["node-0", "node-1"], "work-leader": []}
        for name in ("node-0", "node-1"):
            await set_pod(cluster, name, ready=True)
        await gang_when(cluster, lambda gang: gang["status"]["phase"] == "Running")
        for name in ("node-0", "node-1"):
            ended = {"phase": "Succeeded", "conditions": [{"type": "PodScheduled", "status": "True"}]}
            await cluster.set_status(PODS, name, ended)
        await make_pod(cluster, "leader", group="work-leader")
        gang = await gang_when(cluster, lambda gang: references(gang)["work-leader"] == ["leader"])
        assert (gang["status"]["phase"], answers(gang)["Unhealthy"]) == ("Running", "False")


async def test_gates_are_lifted_once_the_gang_is_whole_with_what_its_scheduler_needs(cluster: Cluster) -> None:
    await cluster.make(POD_GANGS, a_guest_gang())
    async with cluster.controllers(podgangs()) as manager:
        await make_pod(cluster, "node-0", is_gated=True)

        async def is_marked() -> bool:
            pod = await cluster.read(PODS, "node-0")
            assert pod is not None
            return "scheduling.volcano.sh/group-name" in pod["metadata"].get("annotations", {})

        await until(is_marked, within=30)
        await at_rest(manager)
        pod = await cluster.read(PODS, "node-0")
        assert pod is not None
        assert len(pod["spec"]["schedulingGates"]) == 2
        await make_pod(cluster, "node-1", is_gated=True)

        async def are_free() -> bool:
            pods = [await cluster.read(PODS, name) for name in ("node-0", "node-1")]
            return all(pod and pod["spec"]["schedulingGates"] == [{"name": "acme/other"}] for pod in pods)

        await until(are_free, within=30)


async def test_pods_of_a_gang_that_is_made_anew_are_marked_anew(cluster: Cluster) -> None:
    """KAI's group has the gang's uid in its name."""
    await cluster.make(POD_GANGS, a_guest_gang(scheduler="kai-scheduler", groups={"work-node": 1}))
    async with cluster.controllers(podgangs()):
        await make_pod(cluster, "node-0")
        await gang_when(cluster, is_initialized)
        await cluster.client.delete(POD_GANGS, "work", "default")
        again = await cluster.make(POD_GANGS, a_guest_gang(scheduler="kai-scheduler", groups={"work-node": 1}))

        async def is_so() -> bool:
            pod = await cluster.read(PODS, "node-0")
            assert pod is not None
            return bool(pod["metadata"]["annotations"]["pod-group-name"] == f"pg-work-{again.metadata.uid}")

        await until(is_so, within=30)


@pytest.mark.parametrize(
    "gang",
    [a_guest_gang(scheduler=None), a_guest_gang(labels={"app.kubernetes.io/managed-by": "grove-operator"})],
    ids=["mute", "set"],
)
async def test_a_gang_that_does_not_ask_is_left_alone(cluster: Cluster, gang: dict[str, Any]) -> None:
    made = await cluster.make(POD_GANGS, gang)
    async with cluster.controllers(podgangs()) as manager:
        await at_rest(manager)
        found = await cluster.read(POD_GANGS, "work")
        assert found is not None
        assert found["metadata"]["resourceVersion"] == made.metadata.resource_version


async def test_its_scheduler_is_told(cluster: Cluster) -> None:
    def whole(manager: Manager) -> None:
        caches, backends = Caches(manager), Backends.load(manager)
        add_podgangs(manager, caches, GangSettings(), backends)
        add_backends(manager, caches, backends, look_again=0.05, good_news=0.05)

    await define(cluster.client, scheduling_volcano_sh.DEFINITIONS)
    body = a_guest_gang(groups={"work-node": 2}, labels={"kai.scheduler/queue": "team-a"})
    await cluster.make(POD_GANGS, body)
    async with cluster.controllers(whole):
        group = await until(lambda: cluster.read(VOLCANO_GROUPS, "work"), within=30)
        assert (group["spec"]["minMember"], group["spec"]["queue"]) == (2, "team-a")
        assert "annotations" not in group["metadata"]
        patch = {"metadata": {"labels": {"grove.io/scheduler-name": "kai-scheduler"}}}
        gang = await cluster.client.merge_patch(POD_GANGS, "work", patch, "default")
        group = await until(lambda: cluster.read(KAI_GROUPS, f"pg-work-{gang.metadata.uid}"), within=30)
        assert group["spec"]["queue"] == "team-a"

        async def is_gone() -> bool:
            return await cluster.read(VOLCANO_GROUPS, "work") is None

        await until(is_gone, within=30)
        found = await gang_when(cluster, lambda gang: "pod-group-name" in str(carried(gang)))
        assert found["metadata"]["labels"]["grove.io/scheduler-backend"] == "kai"
