"""Gang termination: what is broken for too long is made anew as a whole, and nothing else is touched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shoal.api.core import NODES, Pod
from shoal.api.grove import MIN_AVAILABLE_BREACHED, PodClique
from shoal.api.meta import find_condition, is_true, now
from shoal.gangs.termination import FIRST_REPORT
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, of_cliques, of_gang, of_replica, one_cpu, placed, uids

DELAY = 2.0


async def test_a_replica_with_a_clique_below_its_minimum_is_made_anew_as_a_whole(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=6)
    await stage.make(a_terminating_set(*leader_and_workers(), replicas=2))
    before = await stage.until_ready("web", 6)
    await stage.crash(of_cliques(before, "web-0-worker")[0])
    broken = await stage.until(lambda: a_broken(stage, "web-0-worker"), "a breach")
    assert uids(await stage.pods("web")) == uids(before)

    after = await stage.until_ready("web", 6, without=uids(of_replica(before, 0)))
    assert uids(of_replica(after, 1)) == uids(of_replica(before, 1))
    assert uids(of_replica(after, 0)).isdisjoint(uids(before))
    since = find_condition(broken.status.conditions, MIN_AVAILABLE_BREACHED)
    assert since is not None
    assert since.last_transition_time is not None
    soonest = since.last_transition_time + timedelta(seconds=DELAY - 1)  # the wire counts whole seconds
    for pod in of_replica(after, 0):
        assert pod.metadata.creation_timestamp is not None
        assert pod.metadata.creation_timestamp >= soonest


async def test_a_pod_that_has_failed_for_good_breaks_its_gang(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=2)
    worker = a_clique_template("worker", 2, pod_spec=one_cpu(restartPolicy="Never"))
    await stage.make(a_terminating_set(worker))
    before = await stage.until_ready("web", 2)
    await stage.crash(before[0])
    await stage.until_ready("web", 2, without=uids(before))


@pytest.mark.slow
async def test_a_torn_down_gang_without_room_waits_as_a_whole_and_is_not_torn_down_again(stage: Stage) -> None:
    nodes = await stage.add_nodes(3)
    await stage.make(a_terminating_set(*leader_and_workers()))
    before = await stage.until_ready("web", 3)
    await stage.until(lambda: is_old_enough(stage, "web-0-worker"), "the clique to have been scheduled for a while")
    lost = of_cliques(before, "web-0-worker")[0]
    await stage.cordon(lost.spec.node_name)
    await stage.lose(lost)

    async def are_all_new() -> list[Pod] | None:
        pods = await stage.all_pods("web")
        return pods if len(pods) == 3 and not uids(pods) & uids(before) and not placed(pods) else None

    waiting = await stage.until(are_all_new, "the whole gang to wait")
    await stage.until_waiting("web", 3)
    await stage.stays(lambda: same_pods(stage, waiting), "that the same pods wait", seconds=DELAY + 1)

    await stage.cordon(*nodes, closed=False)
    assert uids(await stage.until_ready("web", 3)) == uids(waiting)


async def test_a_gang_that_never_had_its_nodes_is_not_torn_down(stage: Stage) -> None:
    await stage.add_nodes(2)
    await stage.make(a_terminating_set(*leader_and_workers()))
    waiting = await stage.until_waiting("web", 3)
    await stage.stays(lambda: same_pods(stage, waiting), "that the same pods wait", seconds=DELAY + 1)


async def test_of_a_scaling_group_only_the_broken_replica_is_made_anew_while_enough_are_well(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=10)
    group = a_scaling_group_template("g", ["leader", "worker"], 3)
    await stage.make(
        a_terminating_set(a_clique_template("front", 1, pod_spec=one_cpu()), *leader_and_workers(), groups=[group])
    )
    before = await stage.until_ready("web", 10)
    broken = of_gang(before, "web-0-g-1")
    await stage.crash(of_cliques(broken, "web-0-g-2-worker")[0])
    after = await stage.until_ready("web", 10, without=uids(broken))
    assert uids(after) & uids(before) == uids(before) - uids(broken)


async def test_with_too_few_replicas_of_a_scaling_group_the_whole_replica_of_the_set_is_made_anew(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=20)
    group = a_scaling_group_template("g", ["leader", "worker"], 3, min_available=2)
    front = a_clique_template("front", 1, pod_spec=one_cpu())
    await stage.make(a_terminating_set(front, *leader_and_workers(), groups=[group], replicas=2))
    before = await stage.until_ready("web", 20)
    for clique in ("web-0-g-0-leader", "web-0-g-1-worker"):
        await stage.crash(of_cliques(before, clique)[0])
    after = await stage.until_ready("web", 20, without=uids(of_replica(before, 0)))
    assert uids(of_replica(after, 1)) == uids(of_replica(before, 1))


async def test_what_is_well_again_in_time_is_let_be(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_terminating_set(*leader_and_workers()))
    before = await stage.until_ready("web", 3)
    lost = of_cliques(before, "web-0-worker")[0]
    await stage.lose(lost)
    after = await stage.until_ready("web", 3, without=uids([lost]))
    assert uids(after) > uids(before) - uids([lost])
    await stage.stays(lambda: same_pods(stage, after), "that nothing is torn down", seconds=DELAY + 1)


async def test_losing_pods_above_the_minimum_is_no_breach(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=4)
    await stage.make(a_terminating_set(a_clique_template("worker", 3, min_available=2, pod_spec=one_cpu())))
    before = await stage.until_ready("web", 3)
    await stage.crash(before[0])

    async def has_noticed() -> bool:
        clique = await stage.clique("web-0-worker")
        return clique.status.ready_replicas == 2

    await stage.until(has_noticed, "the crash to be noticed")
    assert not is_true((await stage.clique("web-0-worker")).status.conditions, MIN_AVAILABLE_BREACHED)
    await stage.stays(lambda: same_pods(stage, before), "that nothing is torn down", seconds=DELAY + 1)


@pytest.mark.slow
async def test_when_a_node_falls_silent_its_gang_starts_anew_elsewhere(stage: Stage) -> None:
    lost, *_ = await stage.add_nodes(4)
    await stage.make(a_terminating_set(*leader_and_workers()))
    before = await stage.until_ready("web", 3)
    if lost not in {pod.spec.node_name for pod in before}:
        lost = before[0].spec.node_name
    await stage.client.merge_patch(
        NODES.documents(), lost, {"metadata": {"annotations": {"shoal.dev/sim-down": "true"}}}
    )

    async def is_elsewhere() -> list[Pod] | None:
        pods = await stage.pods("web")
        is_new = not uids(pods) & uids(before)
        return pods if len(placed(pods)) == 3 and is_new else None

    after = await stage.until(is_elsewhere, "three new pods with nodes", within=100)
    assert lost not in {pod.spec.node_name for pod in after}
    await stage.client.merge_patch(NODES.documents(), lost, {"metadata": {"annotations": {"shoal.dev/sim-down": None}}})
    assert uids(await stage.until_ready("web", 3, within=60)) == uids(after)


def a_terminating_set(*cliques: dict[str, Any], **more: Any) -> dict[str, Any]:
    return a_set("web", *cliques, terminationDelay=f"{DELAY:.0f}s", **more)


def leader_and_workers() -> list[dict[str, Any]]:
    return [a_clique_template("leader", 1, pod_spec=one_cpu()), a_clique_template("worker", 2, pod_spec=one_cpu())]


async def a_broken(stage: Stage, clique: str) -> PodClique | None:
    found = await stage.clique(clique)
    return found if is_true(found.status.conditions, MIN_AVAILABLE_BREACHED) else None


async def is_old_enough(stage: Stage, clique: str) -> bool:
    """Whether a change of a clique's conditions counts as one, and not as what was first told of it."""
    created = (await stage.clique(clique)).metadata.creation_timestamp
    return created is not None and now() > created + FIRST_REPORT


async def same_pods(stage: Stage, pods: list[Pod]) -> bool:
    return uids(await stage.all_pods("web")) == uids(pods)
