"""Topology: what must be close together is placed in one domain as a whole, or waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.api.core import NODES, Pod
from shoal.api.grove import SCALING_GROUPS, TOPOLOGY_BINDINGS, TOPOLOGY_LEVELS_UNAVAILABLE
from shoal.api.meta import find_condition
from shoal.kube import Forbidden, Invalid
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, of_cliques, of_gang, one_cpu, placed, uids

LEVELS = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "example.com/rack"}]


@pytest.fixture
async def topology(stage: Stage) -> AsyncIterator[str]:
    """A topology of zones and racks, for the length of a test."""
    name = stage.namespace
    body = {"metadata": {"name": name}, "spec": {"levels": LEVELS}}
    await stage.client.create(TOPOLOGY_BINDINGS.documents(), body)
    yield name
    await stage.client.delete(TOPOLOGY_BINDINGS, name)


async def test_a_gang_goes_to_the_one_rack_that_has_room_for_all_of_it(stage: Stage, topology: str) -> None:
    await racks(stage, a=2, b=3)
    await stage.make(a_set("web", *two_cliques(), topologyConstraint=packed("rack", topology)))
    pods = await stage.until_ready("web", 3)
    assert await racks_of(stage, pods) == {"b"}
    gang = await stage.gang("web-0")
    assert gang.spec.topology_constraint is not None
    assert gang.spec.topology_constraint.pack_constraint is not None
    assert gang.spec.topology_constraint.pack_constraint.required == "example.com/rack"


async def test_a_gang_waits_while_no_rack_has_room_for_all_of_it_though_the_cluster_has(
    stage: Stage, topology: str
) -> None:
    await racks(stage, a=2, b=2)
    await stage.make(a_set("web", *two_cliques(), topologyConstraint=packed("rack", topology)))
    waiting = await stage.until_waiting("web", 3)
    await racks(stage, b=1)
    ready = await stage.until_ready("web", 3)
    assert uids(ready) == uids(waiting)
    assert await racks_of(stage, ready) == {"b"}


async def test_each_replica_of_a_scaling_group_has_a_rack_of_its_own(stage: Stage, topology: str) -> None:
    await racks(stage, a=2, b=2, c=3)
    group = a_scaling_group_template(
        "g", ["leader", "worker"], 2, min_available=2, topologyConstraint={"pack": {"required": "rack"}}
    )
    leader, worker = two_cliques(1, 1)
    front = a_clique_template("front", 1, pod_spec=one_cpu())
    constraint = packed("zone", topology)
    await stage.make(a_set("web", front, leader, worker, groups=[group], topologyConstraint=constraint))
    pods = await stage.until_ready("web", 5)
    for replica in (0, 1):
        mine = of_cliques(pods, f"web-0-g-{replica}-leader", f"web-0-g-{replica}-worker")
        assert len(await racks_of(stage, mine)) == 1
    configs = (await stage.gang("web-0")).spec.topology_constraint_group_configs
    assert [config.name for config in configs] == ["web-0-g-0", "web-0-g-1"]

    await stage.scale(SCALING_GROUPS, "web-0-g", 3)
    await stage.until_waiting("web", 2)
    await racks(stage, d=2)
    pods = await stage.until_ready("web", 7)
    assert len(await racks_of(stage, of_gang(pods, "web-0-g-0"))) == 1


async def test_a_clique_alone_may_be_packed(stage: Stage, topology: str) -> None:
    await racks(stage, a=2, b=2)
    leader, worker = two_cliques(2, 2)
    worker["topologyConstraint"] = packed("rack", topology)
    await stage.make(a_set("web", leader, worker))
    pods = await stage.until_ready("web", 4)
    assert len(await racks_of(stage, of_cliques(pods, "web-0-worker"))) == 1
    assert len(await racks_of(stage, pods)) == 2


async def test_a_level_that_is_taken_away_is_asked_for_no_more_and_the_set_says_so(stage: Stage, topology: str) -> None:
    await racks(stage, a=2, b=1)
    await stage.make(a_set("web", *two_cliques(), topologyConstraint=packed("rack", topology)))
    waiting = await stage.until_waiting("web", 3)
    assert not placed(waiting)
    await stage.client.merge_patch(TOPOLOGY_BINDINGS.documents(), topology, {"spec": {"levels": LEVELS[:1]}})
    assert uids(await stage.until_ready("web", 3)) == uids(waiting)

    async def is_told() -> bool:
        condition = find_condition((await stage.set("web")).status.conditions, TOPOLOGY_LEVELS_UNAVAILABLE)
        return condition is not None and (condition.status, condition.reason) == (
            "True",
            "ClusterTopologyLevelsUnavailable",
        )

    await stage.until(is_told, "the condition")


async def test_a_set_that_asks_for_a_level_that_is_not_there_is_refused(stage: Stage, topology: str) -> None:
    with pytest.raises((Invalid, Forbidden), match="block"):
        await stage.make(a_set("web", *two_cliques(), topologyConstraint=packed("block", topology)))


def packed(domain: str, topology: str) -> dict[str, Any]:
    return {"topologyName": topology, "pack": {"required": domain}}


def two_cliques(leaders: int = 1, workers: int = 2) -> list[dict[str, Any]]:
    return [
        a_clique_template("leader", leaders, pod_spec=one_cpu()),
        a_clique_template("worker", workers, pod_spec=one_cpu()),
    ]


async def racks(stage: Stage, **counts: int) -> None:
    """Nodes for one pod each, so many in each rack, all in one zone."""
    for rack, count in counts.items():
        await stage.add_nodes(count, labels={"example.com/rack": rack, "example.com/zone": "z"})


async def racks_of(stage: Stage, pods: list[Pod]) -> set[str]:
    nodes = [await stage.client.get(NODES, pod.spec.node_name) for pod in pods]
    return {node.metadata.labels["example.com/rack"] for node in nodes}
