"""Changed templates reach the pods of cliques on a server: one by one, or when somebody deletes them."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import POD_CLIQUES
from shoal.gangs.plan import standalone_cliques
from tests.gangs.builders import a_clique_template, a_pod_spec, a_set
from tests.gangs.cliques.conftest import WORKERS, Workload, at_work, indexes, is_gated, pod_names, running
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.support.waiting.at_rest import at_rest


def a_web(image: str, replicas: int, **more: Any) -> dict[str, Any]:
    spec = a_pod_spec(containers=[{"name": "main", "image": image}])
    update = more.pop("update", "RollingRecreate")
    return a_set("web", a_clique_template("workers", replicas, pod_spec=spec, **more), update=update)


def images(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


async def change(workload: Workload, body: dict[str, Any]) -> None:
    """A changed template reaches the set and its clique."""
    await workload.tell_hash(body)
    await workload.refresh_clique(standalone_cliques(workload.pcs, 0)[0])


async def take_turn(workload: Workload, body: dict[str, Any]) -> None:
    """The set says that it is its replica's turn."""
    started = "2026-01-01T00:00:00Z"
    turn = {"replicaIndex": 0, "updateStartedAt": started}
    await workload.tell_hash(body, updateStartedAt=started, currentlyUpdating=[turn])


async def has_images(workload: Workload, *expected: str) -> list[dict[str, Any]]:
    async def agrees() -> list[dict[str, Any]] | None:
        pods = await workload.pods(WORKERS)
        return pods if images(pods) == sorted(expected) else None

    found: list[dict[str, Any]] = await until(agrees, within=30)
    return found


async def go_on(workload: Workload) -> None:
    """Nodes end what is on its way out, the gang names what is new, and all of it runs."""
    for pod in await workload.pods(WORKERS, going=True):
        if "deletionTimestamp" in pod["metadata"]:
            await workload.delete_pod(pod)
    await workload.name_pods("web-0")
    for pod in await workload.pods(WORKERS):
        if not is_gated(pod):
            await workload.run(pod)


async def test_pods_are_replaced_one_at_a_time_once_it_is_their_turn(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        old = await running(workload, a_web("old", 3, min_available=2), 3)
        await change(workload, a_web("new", 3, min_available=2))
        await workload.status_is(WORKERS, observedGeneration=2)  # so that no timer looks at it again
        await at_rest(manager)
        assert pod_names(await workload.pods(WORKERS)) == pod_names(old), "it is not the replica's turn yet"
        await take_turn(workload, a_web("new", 3, min_available=2))
        for left in (2, 1, 0):
            await has_images(workload, *["old"] * left, *["new"] * (3 - left))
            await at_rest(manager)
            assert images(await workload.pods(WORKERS)).count("old") == left, "the next waits for this one"
            assert await workload.condition(WORKERS, "MinAvailableBreached") == ("Unknown", "UpdateInProgress")
            await go_on(workload)
            await workload.are_ungated(WORKERS)
            await go_on(workload)
        goal = workload.pcs.status.current_generation_hash
        status = await workload.status_is(WORKERS, currentPodCliqueSetGenerationHash=goal, readyReplicas=3)
        assert status["updatedReplicas"] == 3
        assert "updateEndedAt" in status["updateProgress"]
        assert "readyPodsSelectedToUpdate" not in status["updateProgress"]
        assert indexes(await workload.pods(WORKERS)) == [0, 1, 2]


async def test_pods_of_no_use_are_replaced_at_once(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster):
        await workload.start(a_web("old", 3))
        await workload.has_pods(WORKERS, 3)
        await workload.status_is(WORKERS, replicas=3)
        await change(workload, a_web("new", 3))
        await take_turn(workload, a_web("new", 3))
        pods = await has_images(workload, "new", "new", "new")
        assert indexes(pods) == [0, 1, 2]


async def test_a_second_change_in_the_middle_of_an_update_arrives(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster):
        await running(workload, a_web("old", 2, min_available=1), 2)
        await change(workload, a_web("second", 2, min_available=1))
        await take_turn(workload, a_web("second", 2, min_available=1))
        await has_images(workload, "old", "second")
        await change(workload, a_web("third", 2, min_available=1))
        await take_turn(workload, a_web("third", 2, min_available=1))
        goal = workload.pcs.status.current_generation_hash

        async def arrives() -> bool:
            await go_on(workload)
            found = await cluster.read(POD_CLIQUES, WORKERS)
            assert found is not None
            return bool(found["status"].get("currentPodCliqueSetGenerationHash") == goal)

        await until(arrives, within=30)
        assert images(await workload.pods(WORKERS)) == ["third", "third"]


async def test_on_delete_pods_change_when_somebody_deletes_them(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        old = await running(workload, a_web("old", 2, update="OnDelete"), 2)
        was = workload.pcs.status.current_generation_hash
        await change(workload, a_web("new", 2, update="OnDelete"))
        goal = workload.pcs.status.current_generation_hash
        status = await workload.status_is(WORKERS, updatedReplicas=0, currentPodCliqueSetGenerationHash=was)
        assert status["updateProgress"]["podCliqueSetGenerationHash"] == goal
        assert status["updateProgress"]["updateStartedAt"] == status["updateProgress"]["updateEndedAt"]
        assert await workload.condition(WORKERS, "MinAvailableBreached") == ("False", "SufficientReadyPods")
        await at_rest(manager)
        assert pod_names(await workload.pods(WORKERS)) == pod_names(old)
        await workload.delete_pod(old[0])
        await has_images(workload, "new", "old")
        await workload.delete_pod(old[1])
        await has_images(workload, "new", "new")
        await workload.status_is(WORKERS, updatedReplicas=2, currentPodCliqueSetGenerationHash=goal)


async def test_a_clique_whose_own_template_stays_tells_of_the_sets_new_ones_without_being_touched(
    cluster: Cluster, workload: Workload
) -> None:
    def with_other(image: str) -> dict[str, Any]:
        other = a_clique_template("other", 1, pod_spec=a_pod_spec(containers=[{"name": "main", "image": image}]))
        return a_set("web", a_clique_template("workers", 1), other, update="OnDelete")

    async with at_work(cluster) as manager:
        await workload.start(with_other("old"))
        [pod] = await workload.has_pods(WORKERS, 1)
        was = workload.pcs.status.current_generation_hash
        await workload.status_is(WORKERS, replicas=1, currentPodCliqueSetGenerationHash=was)
        await at_rest(manager)
        await workload.tell_hash(with_other("new"))
        goal = workload.pcs.status.current_generation_hash
        assert goal != was
        await workload.status_is(WORKERS, replicas=1, currentPodCliqueSetGenerationHash=goal)
        assert pod_names(await workload.pods(WORKERS)) == [pod["metadata"]["name"]]


async def test_scaling_in_gives_up_pods_of_an_old_template_first(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster):
        await running(workload, a_web("old", 2, update="OnDelete"), 2)
        await change(workload, a_web("new", 2, update="OnDelete"))
        await workload.scale(WORKERS, 3)
        await has_images(workload, "new", "old", "old")
        await go_on(workload)
        await workload.are_ungated(WORKERS)
        await go_on(workload)
        await workload.status_is(WORKERS, readyReplicas=3, updatedReplicas=1)
        await workload.scale(WORKERS, 1)
        await has_images(workload, "new")
