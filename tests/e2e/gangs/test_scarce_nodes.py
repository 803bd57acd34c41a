"""Gangs on nodes that have too little room: all of a gang runs, or none of it."""

from __future__ import annotations

from shoal.api.core import is_ready
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, PODS_GATED, SCALING_GROUPS
from shoal.api.meta import find_condition
from tests.e2e.gangs.conftest import on_both_engines
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, of_cliques, of_gang, of_replica, one_cpu, placed, uids

pytestmark = on_both_engines


async def test_nothing_runs_until_there_is_room_for_the_whole_gang(stage: Stage) -> None:
    nodes = await stage.add_nodes(3)
    await stage.cordon(nodes[0])
    await stage.make(a_set("web", *leader_and_workers()))
    waiting = await stage.until_waiting("web", 3)
    await stage.until_phase("web-0", "Pending")

    await stage.cordon(nodes[0], closed=False)
    ready = await stage.until_ready("web", 3)
    assert uids(ready) == uids(waiting)
    assert {pod.spec.node_name for pod in ready} == set(nodes)
    await stage.until_phase("web-0", "Running")


async def test_of_two_replicas_one_runs_whole_while_the_other_waits_whole(stage: Stage) -> None:
    await stage.add_nodes(5)
    await stage.make(a_set("web", *leader_and_workers(), replicas=2))
    waiting = await stage.until_waiting("web", 3)
    running = placed(await stage.pods("web"))
    assert {len(of_replica(running, index)) for index in (0, 1)} == {0, 3}

    await stage.add_nodes(1)
    ready = await stage.until_ready("web", 6)
    assert uids(ready) == uids(running) | uids(waiting)


async def test_of_two_sets_that_compete_the_second_runs_when_the_first_is_gone(stage: Stage) -> None:
    await stage.add_nodes(4)
    await stage.make(a_set("first", *leader_and_workers()))
    first = await stage.until_ready("first", 3)
    await stage.make(a_set("second", *leader_and_workers()))
    second = await stage.until_waiting("second", 3)
    assert uids(await stage.pods("first")) == uids(first)

    await stage.delete("first")
    await stage.until_gone("first")
    assert uids(await stage.until_ready("second", 3)) == uids(second)


async def test_a_gang_runs_with_its_minimum_and_takes_the_rest_when_there_is_room(stage: Stage) -> None:
    await stage.add_nodes(2)
    cliques = [
        a_clique_template("leader", 1, pod_spec=one_cpu()),
        a_clique_template("worker", 3, min_available=1, pod_spec=one_cpu()),
    ]
    await stage.make(a_set("web", *cliques))
    waiting = await stage.until_waiting("web", 2)
    running = placed(await stage.pods("web"))
    assert sorted(pod.metadata.labels["grove.io/podclique"] for pod in running) == ["web-0-leader", "web-0-worker"]
    await stage.until_phase("web-0", "Running")

    await stage.add_nodes(2)
    assert uids(await stage.until_ready("web", 4)) == uids(running) | uids(waiting)


async def test_scaled_gangs_wait_at_their_gates_until_the_base_gang_has_nodes(stage: Stage) -> None:
    await stage.make(a_set("web", *scaling_cliques(), groups=[a_scaling_group_template("g", ["worker"], 3)]))

    async def is_held() -> bool:
        clique = await stage.clique("web-0-g-1-worker")
        gated = find_condition(clique.status.conditions, PODS_GATED)
        return gated is not None and gated.reason == "BasePodGangNotScheduled"

    await stage.until(is_held, "the reason why pods are gated")
    pods = await stage.until_waiting_beside_gated("web", waiting=3, gated=4)
    assert {pod.metadata.labels["grove.io/podgang"] for pod in pods} == {"web-0"}

    await stage.add_nodes(5)
    waiting = await stage.until_waiting("web", 2)
    running = placed(await stage.pods("web"))
    assert len(of_gang(running, "web-0")) == 3
    assert sorted(len(of_gang(running, gang)) for gang in ("web-0-g-0", "web-0-g-1")) == [0, 2]
    assert sorted(len(of_gang(waiting, gang)) for gang in ("web-0-g-0", "web-0-g-1")) == [0, 2]

    await stage.add_nodes(2)
    await stage.until_ready("web", 7)
    bound = stage.history.first(lambda pod: bool(pod.spec.node_name))
    everyone = stage.history.pods()
    base = [bound[uid] for uid, pod in everyone.items() if of_gang([pod], "web-0")]
    scaled = [bound[uid] for uid, pod in everyone.items() if not of_gang([pod], "web-0")]
    assert max(base) < min(scaled)


async def test_a_gang_that_is_scaled_out_runs_whole_or_waits_whole(stage: Stage) -> None:
    await stage.add_nodes(3)
    await stage.make(a_set("web", *scaling_cliques(), groups=[a_scaling_group_template("g", ["worker"])]))
    before = await stage.until_ready("web", 3)
    await stage.scale(SCALING_GROUPS, "web-0-g", 3)
    waiting = await stage.until_waiting("web", 4)
    assert {pod.metadata.labels["grove.io/podgang"] for pod in waiting} == {"web-0-g-0", "web-0-g-1"}

    await stage.add_nodes(1)
    await stage.add_nodes(2)
    still = await stage.until_waiting("web", 2)
    assert uids(still) < uids(waiting)
    assert len({pod.metadata.labels["grove.io/podgang"] for pod in still}) == 1

    await stage.scale(SCALING_GROUPS, "web-0-g", 1)
    assert uids(await stage.until_ready("web", 3)) == uids(before)


async def test_replicas_come_and_go_with_the_set_and_leave_the_others_alone(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=9)
    await stage.make(a_set("web", *leader_and_workers()))
    first = await stage.until_ready("web", 3)
    await stage.scale(POD_CLIQUE_SETS, "web", 3)
    three = await stage.until_ready("web", 9)
    assert uids(of_replica(three, 0)) == uids(first)

    await stage.scale(POD_CLIQUE_SETS, "web", 2)
    two = await stage.until_ready("web", 6)
    assert uids(two) == uids(of_replica(three, 0)) | uids(of_replica(three, 1))
    await stage.scale(POD_CLIQUE_SETS, "web", 0)
    await stage.until_ready("web", 0)
    await stage.until_names(POD_CLIQUES, [])
    await stage.scale(POD_CLIQUE_SETS, "web", 1)
    assert uids(await stage.until_ready("web", 3)).isdisjoint(uids(three))


async def test_a_clique_that_is_scaled_in_gives_up_the_pods_that_do_not_run_first(stage: Stage) -> None:
    await stage.add_nodes(4)
    cliques = [a_clique_template("worker", 3, min_available=2, pod_spec=one_cpu())]
    await stage.make(a_set("web", *cliques))
    running = await stage.until_ready("web", 3)
    await stage.scale(POD_CLIQUES, "web-0-worker", 6)
    await stage.until_waiting("web", 2)
    four = placed(await stage.pods("web"))
    await stage.scale(POD_CLIQUES, "web-0-worker", 4)
    assert uids(await stage.until_ready("web", 4)) == uids(four) >= uids(running)
    await stage.scale(POD_CLIQUES, "web-0-worker", 3)
    left = await stage.until_ready("web", 3)
    assert uids(left) == uids(running)
    assert all(map(is_ready, of_cliques(left, "web-0-worker")))


def leader_and_workers() -> list[dict[str, object]]:
    return [a_clique_template("leader", 1, pod_spec=one_cpu()), a_clique_template("worker", 2, pod_spec=one_cpu())]


def scaling_cliques() -> list[dict[str, object]]:
    return [a_clique_template("front", 1, pod_spec=one_cpu()), a_clique_template("worker", 2, pod_spec=one_cpu())]
