"""PodGangs on a real API server: made, filled, told of, taken away; and nothing written where nothing is to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shoal.api.core import PODS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, TOPOLOGY_BINDINGS
from shoal.api.meta import Resource
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.backends.outcome import synced
from shoal.gangs.backends.registry import Backends, built_in
from shoal.gangs.settings import GangSettings
from shoal.kube import Key, Manager
from shoal.kube.events import EVENTS
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.gangs.podgangs.actors import (
    Workload,
    answers,
    is_initialized,
    podgangs,
    reason,
    references,
    set_pod,
)
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest


async def a_whole_gang(cluster: Cluster, **fields: Any) -> tuple[Workload, list[str]]:
    """A set of one gang with two pods, all made."""
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 2), **fields))
    [clique] = (await workload.make_cliques()).values()
    await workload.gang("web-0")
    pods = await workload.make_pods(clique, 2)
    await workload.gang_when("web-0", is_initialized)
    return workload, pods


async def events_of(cluster: Cluster, uid: str) -> set[str]:
    return {event["reason"] for event in await cluster.all(EVENTS) if event["involvedObject"].get("uid") == uid}


async def sees(manager: Manager, resource: Resource[Any], name: str, holds: Callable[[Any], object]) -> None:
    """Waits until a manager's cache shows an object so."""
    store = manager.cache.informer(resource).store
    await eventually(lambda: (found := store.get(Key("default", name))) is not None and holds(found))


async def test_a_gang_is_made_empty_filled_once_and_then_initialized(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 2), a_clique_template("b", 1)))
    async with cluster.controllers(podgangs()):
        assert await workload.gangs() == []  # no PodClique, no gang
        cliques = await workload.make_cliques()
        gang = await workload.gang_when("web-0", answers)
        assert references(gang) == {"web-0-a": [], "web-0-b": []}
        assert gang["status"]["phase"] == "Pending"
        assert reason(gang, "Initialized") == "PodGangPodsCreationPending"
        owner = gang["metadata"]["ownerReferences"]
        assert [(one["kind"], one["uid"], one["controller"]) for one in owner] == [
            ("PodCliqueSet", workload.made.metadata.uid, True)
        ]

        first = await workload.make_pods(cliques["web-0-a"], 2)
        second = await workload.make_pods(cliques["web-0-b"], 1)
        gang = await workload.gang_when("web-0", is_initialized)
        assert references(gang) == {"web-0-a": first, "web-0-b": second}
        assert reason(gang, "Initialized") == "PodGangPodsCreated"
        assert gang["metadata"]["generation"] == 2  # made, and filled in one piece


async def test_what_a_backend_came_to_is_told_with_the_rest(cluster: Cluster) -> None:
    backends = Backends(built_in())
    async with cluster.controllers(podgangs(backends=backends)):
        workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 1)))
        [clique] = (await workload.make_cliques()).values()
        gang = await workload.gang_when("web-0", lambda gang: True)
        backends.outcomes.note(POD_GANGS.decode(msgspec.json.encode(gang)), synced([]))
        await workload.make_pods(clique, 1)
        gang = await workload.gang_when("web-0", is_initialized)
        assert answers(gang)["BackendReady"] == "True"


async def test_what_is_there_of_a_gang_is_shown_though_the_rest_never_comes(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 2)))
    async with cluster.controllers(podgangs()):
        [clique] = (await workload.make_cliques()).values()
        [only] = await workload.make_pods(clique, 1)
        gang = await workload.gang_when(
            "web-0", lambda gang: references(gang) == {"web-0-a": [only]} and "Initialized" in answers(gang)
        )
        assert answers(gang)["Initialized"] == "False"


async def test_a_gang_that_somebody_deleted_comes_back_with_all_its_pods(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()):
        workload, pods = await a_whole_gang(cluster)
        old = await workload.gang("web-0")
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        gang = await workload.gang_when(
            "web-0", lambda gang: gang["metadata"]["uid"] != old["metadata"]["uid"] and is_initialized(gang)
        )
        assert references(gang) == {"web-0-a": pods}
        assert gang["metadata"]["generation"] == 1


async def test_phases_follow_the_pods(cluster: Cluster) -> None:
    body = a_set("web", a_clique_template("a", 2, min_available=1), a_clique_template("b", 1))
    workload = await Workload.create(cluster, body)

    def is_in(phase: str) -> Any:
        return lambda gang: gang.get("status", {}).get("phase") == phase

    async with cluster.controllers(podgangs()):
        cliques = await workload.make_cliques()
        one, _ = await workload.make_pods(cliques["web-0-a"], 2)
        [other] = await workload.make_pods(cliques["web-0-b"], 1)
        await workload.gang_when("web-0", is_initialized)
        await set_pod(cluster, one)
        assert (await workload.gang("web-0"))["status"]["phase"] == "Pending"  # nothing of b has a node
        await set_pod(cluster, other)
        gang = await workload.gang_when("web-0", is_in("Starting"))
        assert answers(gang) == {"Initialized": "True", "Scheduled": "True", "Ready": "False", "Unhealthy": "False"}
        await set_pod(cluster, one, ready=True)
        await set_pod(cluster, other, ready=True)
        gang = await workload.gang_when("web-0", is_in("Running"))
        assert answers(gang) == {"Initialized": "True", "Scheduled": "True", "Ready": "True", "Unhealthy": "False"}
        await set_pod(cluster, other, ready=False)
        gang = await workload.gang_when("web-0", is_in("Starting"))
        assert answers(gang) == {"Initialized": "True", "Scheduled": "True", "Ready": "False", "Unhealthy": "True"}
        await set_pod(cluster, other, ready=True)
        gang = await workload.gang_when("web-0", is_in("Running"))
        assert answers(gang)["Unhealthy"] == "False"


async def test_a_gang_survives_its_teardown_and_begins_anew(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()):
        workload, pods = await a_whole_gang(cluster)
        before = await workload.gang("web-0")
        await cluster.client.delete(POD_CLIQUES, "web-0-a", "default")
        await workload.gang_when("web-0", lambda gang: not is_initialized(gang))
        # The old pods linger: they belong to a PodClique that is gone, and do not count for the new one.
        [clique] = (await workload.make_cliques()).values()
        [first] = await workload.make_pods(clique, 1)
        gang = await workload.gang_when("web-0", lambda gang: references(gang) == {"web-0-a": [first]})
        assert not is_initialized(gang)
        [second] = await workload.make_pods(clique, 1)
        gang = await workload.gang_when("web-0", is_initialized)
        assert references(gang) == {"web-0-a": [first, second]}
        assert gang["metadata"]["uid"] == before["metadata"]["uid"]
        assert not set(pods) & {first, second}


async def test_one_pod_that_is_replaced_leaves_its_gang_initialized(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload, [kept, replaced] = await a_whole_gang(cluster)
        await cluster.client.delete(PODS, replaced, "default")
        gang = await workload.gang_when("web-0", lambda gang: references(gang) == {"web-0-a": [kept]})
        assert is_initialized(gang)
        [clique] = await cluster.all(POD_CLIQUES)
        found = await cluster.client.get(POD_CLIQUES.documents(), clique["metadata"]["name"], "default")
        [new] = await workload.make_pods(found, 1)
        gang = await workload.gang_when("web-0", lambda gang: references(gang) == {"web-0-a": [kept, new]})
        await at_rest(manager)
        assert is_initialized(await workload.gang("web-0"))


def a_scaled_set(**fields: Any) -> dict[str, Any]:
    return a_set(
        "web",
        a_clique_template("front", 1),
        a_clique_template("p", 1),
        a_clique_template("d", 1),
        groups=[a_scaling_group_template("grp", ["p", "d"], 3)],
        **fields,
    )


async def test_replicas_beyond_a_scaling_groups_minimum_are_gangs_of_their_own(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_scaled_set())
    async with cluster.controllers(podgangs()) as manager:
        await workload.make_groups()
        await workload.make_cliques()
        await workload.gang("web-0-grp-1")
        await at_rest(manager)
        assert await workload.gangs() == ["web-0", "web-0-grp-0", "web-0-grp-1"]
        assert list(references(await workload.gang("web-0"))) == ["web-0-front", "web-0-grp-0-p", "web-0-grp-0-d"]
        scaled = await workload.gang("web-0-grp-1")
        assert list(references(scaled)) == ["web-0-grp-2-p", "web-0-grp-2-d"]
        labels = {key: value for key, value in scaled["metadata"]["labels"].items() if key.startswith("grove.io/")}
        assert labels == {
            "grove.io/podcliqueset-replica-index": "0",
            "grove.io/podcliquescalinggroup": "web-0-grp",
            "grove.io/podcliquescalinggroup-replica-index": "2",
            "grove.io/scheduler-name": "default-scheduler",
            "grove.io/scheduler-backend": "default",
        }


async def test_gangs_that_were_scaled_in_go(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_scaled_set(replicas=2))
    async with cluster.controllers(podgangs()) as manager:
        await workload.make_groups()
        await workload.make_cliques()
        await until(lambda: _has_gangs(workload, 6), within=30)
        for name in await workload.gangs():
            await workload.gang_when(name, answers)  # so that no timer looks at it again
        await at_rest(manager)

        await cluster.client.merge_patch(SCALING_GROUPS.documents(), "web-0-grp", {"spec": {"replicas": 2}}, "default")
        await until(lambda: _has_gangs(workload, 5), within=30)
        await workload.change({"spec": {"replicas": 1}})
        await until(lambda: _has_gangs(workload, 2), within=30)
        await at_rest(manager)
        assert await workload.gangs() == ["web-0", "web-0-grp-0"]
        assert "PodGangDeleteSuccessful" in await events_of(cluster, workload.made.metadata.uid)


async def _has_gangs(workload: Workload, count: int) -> bool:
    return len(await workload.gangs()) == count


async def test_a_scaling_groups_live_replicas_decide_not_the_templates(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_scaled_set())
    async with cluster.controllers(podgangs()) as manager:
        await workload.make_groups()
        await cluster.client.merge_patch(SCALING_GROUPS.documents(), "web-0-grp", {"spec": {"replicas": 1}}, "default")
        await sees(manager, SCALING_GROUPS, "web-0-grp", lambda group: group.spec.replicas == 1)
        await workload.make_cliques()
        await workload.gang("web-0")
        await at_rest(manager)
        assert await workload.gangs() == ["web-0"]


async def test_labels_and_annotations_of_the_set_are_mirrored_and_others_kept(cluster: Cluster) -> None:
    metadata = {
        "labels": {"team": "red", "grove.io/mine": "1", "app.kubernetes.io/name": "shop"},
        "annotations": {"kai.scheduler/queue": "q", "note": "n", "grove.io/reconcile-trigger": "1"},
    }
    async with cluster.controllers(podgangs()) as manager:
        workload, _ = await a_whole_gang(cluster, metadata=metadata)
        await cluster.client.merge_patch(
            POD_GANGS.documents(),
            "web-0",
            {"metadata": {"labels": {"other": "x", "grove.io/kept": "y"}, "annotations": {"theirs": "z"}}},
            "default",
        )
        await at_rest(manager)
        gang = await workload.gang("web-0")
        assert gang["metadata"]["labels"] == {
            "team": "red",
            "app.kubernetes.io/name": "shop",
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "web",
            "app.kubernetes.io/component": "podgang",
            "grove.io/podcliqueset-replica-index": "0",
            "grove.io/scheduler-name": "default-scheduler",
            "grove.io/scheduler-backend": "default",
            "other": "x",
            "grove.io/kept": "y",
        }
        assert gang["metadata"]["annotations"] == {"kai.scheduler/queue": "q", "note": "n", "theirs": "z"}

        await workload.change({"metadata": {"labels": {"team": None}, "annotations": {"note": None, "new": "1"}}})
        gang = await workload.gang_when("web-0", lambda gang: "team" not in gang["metadata"]["labels"])
        assert gang["metadata"]["labels"]["other"] == "x"
        assert gang["metadata"]["annotations"] == {"kai.scheduler/queue": "q", "new": "1", "theirs": "z"}


async def test_somebody_elses_podgang_of_the_name_is_left_alone_and_told_of(cluster: Cluster) -> None:
    foreign = await cluster.make(POD_GANGS, {"metadata": {"name": "web-0"}, "spec": {"podgroups": []}})
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 1)))
    async with cluster.controllers(podgangs()):
        await workload.make_cliques()

        async def is_told() -> bool:
            return "PodGangCreateOrUpdateFailed" in await events_of(cluster, workload.made.metadata.uid)

        await until(is_told, within=30)
        found = await workload.gang("web-0")
        assert found["metadata"]["resourceVersion"] == foreign.metadata.resource_version

        await cluster.client.delete(POD_GANGS, "web-0", "default")
        gang = await workload.gang_when("web-0", answers)
        assert gang["metadata"]["ownerReferences"][0]["uid"] == workload.made.metadata.uid


async def test_a_gang_that_an_earlier_set_of_the_name_left_is_waited_for_without_a_word(cluster: Cluster) -> None:
    earlier = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "web", "uid": "u", "controller": True}
    left = {"metadata": {"name": "web-0", "ownerReferences": [earlier]}, "spec": {"podgroups": []}}
    await cluster.make(POD_GANGS, left)
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 1)))
    async with cluster.controllers(podgangs()) as manager:
        await workload.make_cliques()
        await sees(manager, POD_CLIQUES, "web-0-a", lambda clique: True)
        await at_rest(manager)
        assert await cluster.all(EVENTS) == []
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        gang = await workload.gang_when("web-0", answers)
        assert gang["metadata"]["ownerReferences"][0]["uid"] == workload.made.metadata.uid


async def test_a_gang_of_a_set_that_goes_is_left_to_the_garbage_collector(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload, _ = await a_whole_gang(cluster, metadata={"finalizers": ["example.com/wait"]})
        await cluster.client.delete(POD_CLIQUE_SETS, "web", "default")
        await sees(manager, POD_CLIQUE_SETS, "web", lambda pcs: pcs.metadata.is_deleting)
        await at_rest(manager)
        before = writes_of(manager)
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        await eventually(lambda: not manager.cache.informer(POD_GANGS).items())
        await at_rest(manager)
        assert await workload.gangs() == []
        assert writes_of(manager) == before


async def test_nothing_is_written_at_rest_nor_after_a_restart(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload, pods = await a_whole_gang(cluster)
        await set_pod(cluster, pods[0], ready=True)
        await set_pod(cluster, pods[1], ready=True)
        await workload.gang_when("web-0", lambda gang: gang["status"]["phase"] == "Running")
        await at_rest(manager)
        before, version = writes_of(manager), (await workload.gang("web-0"))["metadata"]["resourceVersion"]
        await cluster.set_status(PODS, pods[0], {"message": "still here"})
        await cluster.set_status(POD_CLIQUES, "web-0-a", {"replicas": 2})
        await workload.change({"spec": {"template": {"terminationDelay": "1h"}}})
        await sees(manager, PODS, pods[0], lambda pod: pod.status.message == "still here")
        await sees(manager, POD_CLIQUES, "web-0-a", lambda clique: clique.status.replicas == 2)
        await sees(manager, POD_CLIQUE_SETS, "web", lambda pcs: pcs.spec.template.termination_delay == "1h")
        await at_rest(manager)
        assert writes_of(manager) == before
    async with cluster.controllers(podgangs()) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
        assert (await workload.gang("web-0"))["metadata"]["resourceVersion"] == version


async def test_filling_a_gang_costs_two_writes_and_running_two_more(cluster: Cluster) -> None:
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 2)))
    async with cluster.controllers(podgangs()) as manager:
        [clique] = (await workload.make_cliques()).values()
        await workload.gang_when("web-0", answers)
        await at_rest(manager)
        before = writes_of(manager)
        pods = await workload.make_pods(clique, 2)
        await workload.gang_when("web-0", is_initialized)
        await at_rest(manager)
        assert writes_of(manager) == before + 2  # references, status
        for pod in pods:
            await set_pod(cluster, pod)
        await at_rest(manager)
        for pod in pods:
            await set_pod(cluster, pod, ready=True)
        await workload.gang_when("web-0", lambda gang: gang["status"]["phase"] == "Running")
        await at_rest(manager)
        assert writes_of(manager) <= before + 4


async def test_conditions_of_others_are_kept(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload, pods = await a_whole_gang(cluster)
        gang = await workload.gang("web-0")
        theirs = {
            "type": "BackendReady",
            "status": "True",
            "reason": "Synced",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await cluster.set_status(POD_GANGS, "web-0", {"conditions": [*gang["status"]["conditions"], theirs]})
        for pod in pods:
            await set_pod(cluster, pod, ready=True)
        gang = await workload.gang_when("web-0", lambda gang: gang["status"]["phase"] == "Running")
        await at_rest(manager)
        assert theirs in gang["status"]["conditions"]


@pytest.mark.parametrize("has_topologies", [True, False], ids=["on", "off"])
async def test_a_change_of_a_topology_reaches_the_gangs_of_sets_that_name_it(
    cluster: Cluster, *, has_topologies: bool
) -> None:
    constraint = {"topologyName": "site", "pack": {"required": "rack"}}
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 1), topologyConstraint=constraint))
    async with cluster.controllers(podgangs(GangSettings(has_topologies=has_topologies))) as manager:
        await workload.make_cliques()
        gang = await workload.gang_when("web-0", answers)
        assert "topologyConstraint" not in gang["spec"]
        levels = [{"domain": "rack", "key": "example.com/rack"}]
        await cluster.make(TOPOLOGY_BINDINGS, {"metadata": {"name": "site"}, "spec": {"levels": levels}})
        if not has_topologies:
            await eventually(lambda: manager.cache.informer(TOPOLOGY_BINDINGS).items())
            await at_rest(manager)
            assert "topologyConstraint" not in (await workload.gang("web-0"))["spec"]
            assert "annotations" not in (await workload.gang("web-0"))["metadata"]
            return
        gang = await workload.gang_when("web-0", lambda gang: "topologyConstraint" in gang["spec"])
        assert gang["spec"]["topologyConstraint"] == {"packConstraint": {"required": "example.com/rack"}}
        assert gang["metadata"]["annotations"] == {"grove.io/topology-name": "site"}
