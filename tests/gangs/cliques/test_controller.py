"""PodCliques on a server: their pods are made, replaced, scaled, gated, counted and told of."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import kube
from shoal.api.core import EVENTS, PODS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, names
from shoal.api.meta import Resource
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.plan import base_gang, group_cliques, scaled_gang, standalone_cliques
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from shoal.kube.transport import Request
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set
from tests.gangs.cliques.conftest import WORKERS, Workload, at_work, cliques, indexes, is_gated, pod_names, running
from tests.support.clusters.client import until
from tests.support.clusters.faults import FaultyTransport, behind
from tests.support.clusters.in_process import Cluster, errors_of, writes_of
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

SELECTIVE = GangSettings(pod_selector=f"{names.MANAGED_BY_LABEL}={names.MANAGER}")


def a_web(replicas: int = 2, **more: Any) -> dict[str, Any]:
    return a_set("web", a_clique_template("workers", replicas, **more))


async def reasons(cluster: Cluster, manager: Manager) -> set[str]:
    await manager.events.flush(within=30)
    return {event["reason"] for event in await cluster.all(EVENTS)}


async def test_pods_are_made_gated_once_their_gang_is_there(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        await workload.start(a_web(3), gangs=False)
        await workload.status_is(WORKERS, observedGeneration=1)
        assert await workload.pods(WORKERS) == []
        assert await workload.condition(WORKERS, "PodsGated") == ("True", "PodGangMissing")
        await workload.make_gang(base_gang(workload.pcs, 0))
        pods = await workload.has_pods(WORKERS, 3)
        assert indexes(pods) == [0, 1, 2]
        assert [pod["spec"]["hostname"] for pod in pods] == [f"{WORKERS}-{index}" for index in range(3)]
        assert all(is_gated(pod) for pod in pods)
        gang = await cluster.read(POD_GANGS, "web-0")
        assert gang is not None
        group = f"pg-web-0-{gang['metadata']['uid']}"
        assert {pod["metadata"]["annotations"]["pod-group-name"] for pod in pods} == {group}
        assert {pod["metadata"]["ownerReferences"][0]["name"] for pod in pods} == {WORKERS}
        status = await workload.status_is(WORKERS, replicas=3, scheduleGatedReplicas=3, updatedReplicas=3)
        assert status["hpaPodSelector"].endswith(f"grove.io/podclique={WORKERS}")
        assert status["currentPodCliqueSetGenerationHash"] == workload.pcs.status.current_generation_hash
        assert status["updateProgress"]["updateStartedAt"] == status["updateProgress"]["updateEndedAt"]
        assert await workload.condition(WORKERS, "PodCliqueScheduled") == ("False", "InsufficientScheduledPods")
        assert "PodCreateSuccessful" in await reasons(cluster, manager)


async def test_no_pod_is_made_for_a_gang_of_the_name_that_is_not_the_sets_own(
    cluster: Cluster, workload: Workload
) -> None:
    foreign = {"metadata": {"name": "web-0"}, "spec": {"podgroups": [{"name": WORKERS, "minReplicas": 1}]}}
    foreign["spec"]["podgroups"][0]["podReferences"] = []  # type: ignore[index]
    await cluster.make(POD_GANGS, foreign)
    async with at_work(cluster) as manager:
        await workload.start(a_web(2), gangs=False)
        await until(lambda: _answers(workload, "PodsGated", ("True", "PodGangMissing")), within=30)
        await at_rest(manager)
        assert await workload.pods(WORKERS) == []
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        await workload.make_gang(base_gang(workload.pcs, 0))
        await workload.has_pods(WORKERS, 2)


async def test_a_gate_is_lifted_when_the_complete_gang_names_the_pod(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        await workload.start(a_web(2))
        await workload.has_pods(WORKERS, 2)
        await workload.name_pods("web-0", complete=False)
        await workload.status_is(WORKERS, replicas=2)
        await at_rest(manager)
        assert all(is_gated(pod) for pod in await workload.pods(WORKERS))
        assert await workload.condition(WORKERS, "PodsGated") == ("True", "PodGangIncomplete")
        await workload.name_pods("web-0")
        await workload.are_ungated(WORKERS)
        await until(lambda: _answers(workload, "PodsGated", ("False", "NoPodsGated")), within=30)

        # A pod that comes later is gated until it is named, too.
        await workload.scale(WORKERS, 3)
        pods = await workload.has_pods(WORKERS, 3)
        assert [is_gated(pod) for pod in pods] == [False, False, True]
        await until(lambda: _answers(workload, "PodsGated", ("True", "PodsNotInPodGang")), within=30)
        await workload.name_pods("web-0")
        await workload.are_ungated(WORKERS)


async def test_wrong_marks_are_put_right_when_the_gate_is_lifted(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster):
        await workload.start(a_web(1))
        await workload.has_pods(WORKERS, 1)
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        await until(lambda: _answers(workload, "PodsGated", ("True", "PodGangMissing")), within=30)
        await workload.make_gang(base_gang(workload.pcs, 0))
        await workload.name_pods("web-0")
        pods = await workload.are_ungated(WORKERS)
        gang = await cluster.read(POD_GANGS, "web-0")
        assert gang is not None
        assert pods[0]["metadata"]["annotations"]["pod-group-name"] == f"pg-web-0-{gang['metadata']['uid']}"


async def test_a_scaled_gang_waits_until_the_base_gang_has_nodes(cluster: Cluster, workload: Workload) -> None:
    body = a_set("web", a_clique_template("a", 1), groups=[a_scaling_group_template("group", ["a"], 2)])
    base, scaled = "web-0-group-0-a", "web-0-group-1-a"
    async with at_work(cluster) as manager:
        await workload.start(body)
        group = workload.pcs.spec.template.pod_clique_scaling_groups[0]
        await workload.make_clique(group_cliques(workload.pcs, 0, group, 1)[0])
        await workload.make_gang(scaled_gang(workload.pcs, 0, group, 1))
        await workload.has_pods(base, 1)
        await workload.has_pods(scaled, 1)
        await workload.name_pods("web-0")
        await workload.name_pods("web-0-group-0")
        await workload.are_ungated(base)
        await until(lambda: _answers(workload, "PodsGated", ("True", "BasePodGangNotScheduled"), scaled), within=30)
        await at_rest(manager)
        assert all(is_gated(pod) for pod in await workload.pods(scaled))
        await workload.run_all(base)
        await workload.are_ungated(scaled)


async def test_a_scaled_gang_that_waits_for_the_base_gang_itself_starts_once_it_is_made(
    cluster: Cluster, workload: Workload
) -> None:
    body = a_set("web", a_clique_template("a", 1), groups=[a_scaling_group_template("group", ["a"], 2)])
    base, scaled = "web-0-group-0-a", "web-0-group-1-a"
    async with at_work(cluster) as manager:
        await workload.start(body)
        await workload.has_pods(base, 1)
        await workload.name_pods("web-0")
        await workload.are_ungated(base)
        await workload.run_all(base)
        await workload.status_is(base, scheduledReplicas=1, readyReplicas=1)
        await cluster.client.delete(POD_GANGS, "web-0", "default")
        group = workload.pcs.spec.template.pod_clique_scaling_groups[0]
        await workload.make_clique(group_cliques(workload.pcs, 0, group, 1)[0])
        await workload.make_gang(scaled_gang(workload.pcs, 0, group, 1))
        await workload.has_pods(scaled, 1)
        await workload.name_pods("web-0-group-0")
        await until(lambda: _answers(workload, "PodsGated", ("True", "BasePodGangNotScheduled"), scaled), within=30)
        await at_rest(manager)
        await workload.make_gang(base_gang(workload.pcs, 0))
        await workload.are_ungated(scaled)


async def test_a_pod_that_goes_is_replaced_at_once_with_its_index(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster):
        before = await running(workload, a_web(3), 3)
        await workload.delete_pod(before[1], at_once=False)
        after = await workload.has_pods(WORKERS, 3)
        assert indexes(after) == [0, 1, 2]
        assert after[1]["metadata"]["uid"] != before[1]["metadata"]["uid"]
        assert is_gated(after[1])
        going = [pod for pod in await workload.pods(WORKERS, going=True) if "deletionTimestamp" in pod["metadata"]]
        assert pod_names(going) == [before[1]["metadata"]["name"]], "the old one is still on its way out"
        await workload.status_is(WORKERS, replicas=3, readyReplicas=3)
        await workload.delete_pod(before[1])
        await workload.status_is(WORKERS, replicas=3, readyReplicas=2)


async def test_a_pod_that_failed_is_not_replaced_until_it_is_deleted(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        before = await running(workload, a_web(2), 2)
        await cluster.set_status(PODS, pod_names(before)[0], {"phase": "Failed", "conditions": []})
        await workload.status_is(WORKERS, readyReplicas=1, scheduledReplicas=1)
        await at_rest(manager)
        assert pod_names(await workload.pods(WORKERS)) == pod_names(before)
        await workload.delete_pod(before[0])
        after = await workload.has_pods(WORKERS, 2)
        assert indexes(after) == [0, 1]
        assert after[0]["metadata"]["uid"] != before[0]["metadata"]["uid"]


async def test_a_clique_is_scaled_up_and_in(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        first = await running(workload, a_web(2), 2)
        await workload.scale(WORKERS, 4)
        await workload.has_pods(WORKERS, 4)
        await workload.scale(WORKERS, 1)
        left = await workload.has_pods(WORKERS, 1)
        assert left[0]["metadata"]["name"] in pod_names(first), "those without a node went first"
        await workload.status_is(WORKERS, replicas=1, observedGeneration=3)
        assert "PodDeleteSuccessful" in await reasons(cluster, manager)


async def test_a_refused_template_is_told_and_stops_nobody_else(cluster: Cluster, workload: Workload) -> None:
    bad = a_clique_template("bad", 3, pod_spec={"containers": [{"name": "main", "image": "x", "env": [{"name": "="}]}]})
    async with at_work(cluster) as manager:
        await workload.start(a_set("web", bad, a_clique_template("workers", 2)))
        await workload.has_pods(WORKERS, 2)

        async def tells() -> dict[str, Any] | None:
            found = await cluster.read(POD_CLIQUES, "web-0-bad")
            status: dict[str, Any] = (found or {}).get("status", {})
            return status if status.get("lastErrors") else None

        status = await until(tells, within=30)
        assert [error["code"] for error in status["lastErrors"]] == ["ERR_CREATE_POD"]
        assert "spec.containers[0].env" in status["lastErrors"][0]["description"]
        assert "observedGeneration" not in status
        assert "PodCreateFailed" in await reasons(cluster, manager)
        first = await cluster.read(POD_CLIQUES, "web-0-bad")
        await until(lambda: _tried_again(manager), within=30)
        assert _refusals(manager) <= errors_of(manager) + 1, "one pod was tried each time, not three"
        again = await cluster.read(POD_CLIQUES, "web-0-bad")
        assert first is not None
        assert again is not None
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"], "told once, not each time"

        good = a_pod_spec()
        await cluster.client.merge_patch(POD_CLIQUES.documents(), "web-0-bad", {"spec": {"podSpec": good}}, "default")
        await workload.has_pods("web-0-bad", 3)
        status = await workload.status_is("web-0-bad", replicas=3, observedGeneration=2)
        assert "lastErrors" not in status


async def test_names_of_pods_may_be_cut_short_by_the_server(cluster: Cluster, workload: Workload) -> None:
    name = "a-clique-with-a-name-that-leaves-little-room-for-pods"
    clique = f"web-0-{name}"
    assert len(clique) > 57
    async with at_work(cluster):
        await workload.start(a_set("web", a_clique_template(name, 2)))
        pods = await workload.has_pods(clique, 2)
        assert not any(pod["metadata"]["name"].startswith(f"{clique}-") for pod in pods)
        await workload.name_pods("web-0")
        await workload.are_ungated(clique)
        await workload.delete_pod((await workload.pods(clique))[0])
        await workload.status_is(clique, replicas=2)
        assert indexes(await workload.has_pods(clique, 2)) == [0, 1]


async def test_the_loss_of_all_scheduled_pods_is_told(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        for pod in await running(workload, a_web(2), 2):
            await workload.delete_pod(pod)
        await workload.status_is(WORKERS, scheduledReplicas=0)
        assert await workload.condition(WORKERS, "MinAvailableBreached") == (
            "True",
            "ScheduledReplicasBelowMinAvailable",
        )
        assert "AllScheduledReplicasLost" in await reasons(cluster, manager)


async def test_a_clique_that_goes_is_let_go_and_its_pods_are_left_to_others(
    cluster: Cluster, workload: Workload
) -> None:
    async with at_work(cluster) as manager:
        await running(workload, a_web(2), 2)
        await cluster.client.delete(POD_CLIQUES, WORKERS, "default")
        await until(lambda: _is_gone(cluster, WORKERS), within=30)
        await at_rest(manager)
        assert len(await workload.pods(WORKERS)) == 2


async def test_a_clique_makes_its_pods_once_those_of_an_earlier_one_of_its_name_go(
    cluster: Cluster, workload: Workload
) -> None:
    async with at_work(cluster) as manager:
        before = await running(workload, a_web(2), 2)
        await cluster.client.delete(POD_CLIQUES, WORKERS, "default")
        await until(lambda: _is_gone(cluster, WORKERS), within=30)
        await workload.make_clique(standalone_cliques(workload.pcs, 0)[0])
        await workload.status_is(WORKERS, observedGeneration=1)
        await at_rest(manager)
        assert pod_names(await workload.pods(WORKERS)) == pod_names(before)
        for pod in before:
            await workload.delete_pod(pod, at_once=False)
        pods = await workload.has_pods(WORKERS, 2)
        assert not set(pod_names(pods)) & set(pod_names(before))
        assert indexes(pods) == [0, 1]
        await workload.status_is(WORKERS, replicas=2, readyReplicas=0)


async def test_at_rest_and_after_a_restart_nothing_is_written(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        await running(workload, a_web(3), 3)
        await until(lambda: _answers(workload, "PodsGated", ("False", "NoPodsGated")), within=30)
        await at_rest(manager)
        before = writes_of(manager)
        patch = {"metadata": {"annotations": {"somebody": "was here"}}}
        await cluster.client.merge_patch(POD_CLIQUES.documents(), WORKERS, patch, "default")
        await at_rest(manager)
        assert writes_of(manager) == before
    async with at_work(cluster) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


@pytest.mark.parametrize(
    "settings", [pytest.param(GangSettings(), id="all pods"), pytest.param(SELECTIVE, id="a selection of pods")]
)
async def test_a_cache_that_lags_never_makes_a_pod_twice(
    cluster: Cluster, workload: Workload, settings: GangSettings
) -> None:
    async with at_work(cluster, settings) as manager:
        await at_rest(manager)
        pods = manager.cache.informer(PODS, label_selector=settings.pod_selector)
        with behind(pods):
            await workload.start(a_web(5))
            await workload.has_pods(WORKERS, 5)
            for number in range(5):
                # A change of its labels wakes the clique, though its pods have not arrived in the cache.
                patch = {"metadata": {"labels": {"poke": f"n{number}"}}}
                await cluster.client.merge_patch(POD_CLIQUES.documents(), WORKERS, patch, "default")
                await at_rest(manager)
            assert len(await workload.pods(WORKERS)) == 5
        await workload.status_is(WORKERS, replicas=5)
        assert indexes(await workload.pods(WORKERS)) == [0, 1, 2, 3, 4]


async def test_a_start_takes_few_writes(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        await running(workload, a_web(4), 4)
        await until(lambda: _answers(workload, "PodsGated", ("False", "NoPodsGated")), within=30)
        await at_rest(manager)
        pods, gates, events = 4, 4, 1
        # At most one status for each pod that gets a node or is ready, and two around the gates.
        assert writes_of(manager) <= pods + gates + events + 2 * pods + 2


async def _answers(workload: Workload, question: str, expected: tuple[str, str], clique: str = WORKERS) -> bool:
    return await workload.condition(clique, question) == expected


async def _is_gone(cluster: Cluster, clique: str) -> bool:
    return await cluster.read(POD_CLIQUES, clique) is None


async def _tried_again(manager: Manager) -> bool:
    return errors_of(manager) >= 3


def _refusals(manager: Manager) -> int:
    requests = [sample for family in manager.metrics.requests.collect() for sample in family.samples]
    refused = [sample for sample in requests if sample.name.endswith("_total") and sample.labels["code"] == "422"]
    return int(sum(sample.value for sample in refused))


@pytest.mark.parametrize("what", [POD_CLIQUE_SETS, POD_GANGS], ids=["its set", "its gang"])
async def test_no_gate_is_lifted_by_what_went_while_pods_were_made(
    cluster: Cluster, workload: Workload, what: Resource[Any]
) -> None:
    """Making pods takes its time, and what was so when it began need not be so when it is over."""
    async with at_work(cluster):
        await workload.start(a_web(2))
        first = await workload.has_pods(WORKERS, 2)
    await workload.name_pods("web-0")
    await workload.scale(WORKERS, 3)
    transport = FaultyTransport(cluster.server.transport())
    manager = Manager(transport, name="late")
    cliques()(manager)
    name = workload.pcs.metadata.name if what is POD_CLIQUE_SETS else "web-0"

    async def is_deleted(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/pods"):
            await cluster.client.delete(what, name, "default")
            await eventually(lambda: manager.cache.informer(what).get(name, "default") is None)

    transport.meanwhile = is_deleted
    async with kube.running(manager):
        await workload.has_pods(WORKERS, 3)
        await at_rest(manager)
        assert [is_gated(pod) for pod in await workload.pods(WORKERS)] == [True] * 3
    assert {*pod_names(first)} < {*pod_names(await workload.pods(WORKERS))}


async def test_no_gate_is_lifted_in_a_replica_that_is_taken_away_and_may_be_wanted_again(
    cluster: Cluster, workload: Workload
) -> None:
    """Its PodGang goes in that moment, which the cache of PodGangs may be late to show."""
    async with at_work(cluster) as manager:
        await workload.start(a_web(2))
        await workload.has_pods(WORKERS, 2)
        await cluster.client.merge_patch(POD_CLIQUE_SETS.documents(), "web", {"spec": {"replicas": 0}}, "default")
        await eventually(lambda: manager.cache.informer(POD_CLIQUE_SETS).items()[0].spec.replicas == 0)
        await workload.name_pods("web-0")
        await until(lambda: _answers(workload, "PodsGated", ("True", "PodGangMissing")), within=30)
        assert all(is_gated(pod) for pod in await workload.pods(WORKERS))
        await cluster.client.merge_patch(POD_CLIQUE_SETS.documents(), "web", {"spec": {"replicas": 1}}, "default")
        await workload.are_ungated(WORKERS)
