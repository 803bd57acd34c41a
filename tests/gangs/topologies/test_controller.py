"""Schedulers' own topologies on a real API server: made, made anew, compared or left alone, and told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.api import kai_scheduler
from shoal.api.grove import TOPOLOGY_BINDINGS
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.cli.processes.api import define
from shoal.gangs.caches import Caches
from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies import add_topologies
from shoal.kube import Manager
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from shoal.kube.events import EVENTS
from tests.gangs.topologies.sites import KEYS, a_binding_body
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest


def topologies(*, is_on: bool = True) -> Callable[[Manager], None]:
    return lambda manager: add_topologies(manager, Caches(manager), GangSettings(has_topologies=is_on))


async def binding_when(cluster: Cluster, reason: str, name: str = "site") -> dict[str, Any]:
    """A binding, once its condition says this of its own generation."""

    async def look() -> dict[str, Any] | None:
        found = await cluster.read(TOPOLOGY_BINDINGS, name)
        assert found is not None
        if found.get("status", {}).get("observedGeneration") != found["metadata"]["generation"]:
            return None
        return found if drift(found)[1] == reason else None

    try:
        found = await until(look, within=30)
    except TimeoutError:
        raise AssertionError(f"in vain; it is {await cluster.read(TOPOLOGY_BINDINGS, name)}") from None
    assert isinstance(found, dict)
    return found


def drift(binding: dict[str, Any]) -> tuple[str, str]:
    [condition] = [one for one in binding["status"]["conditions"] if one["type"] == "SchedulerTopologyDrift"]
    return condition["status"], condition["reason"]


async def topology(cluster: Cluster, name: str = "site") -> dict[str, Any]:
    found = await cluster.read(TOPOLOGIES, name)
    assert found is not None
    return found


def labels(found: dict[str, Any]) -> list[str]:
    return [level["nodeLabel"] for level in found["spec"]["levels"]]


async def reasons(cluster: Cluster, manager: Manager) -> set[str]:
    await at_rest(manager)
    return {event["reason"] for event in await cluster.all(EVENTS)}


def a_topology(name: str, *domains: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": KEYS[domain]} for domain in domains]}}


async def test_kai_is_told_the_levels_of_a_binding(cluster: Cluster) -> None:
    made = await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies()) as manager:
        binding = await binding_when(cluster, "InSync")
        found = await topology(cluster)
        assert labels(found) == list(KEYS.values())
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "ClusterTopologyBinding",
            made.metadata.uid,
            True,
        )
        assert binding["status"]["schedulerTopologyStatuses"] == [
            {
                "schedulerName": "kai-scheduler",
                "topologyReference": "site",
                "inSync": True,
                "schedulerBackendTopologyObservedGeneration": 1,
            }
        ]
        assert drift(binding) == ("False", "InSync")
        assert await reasons(cluster, manager) == {"TopologyInSync"}


async def test_levels_that_changed_make_the_topology_anew(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site", "rack", "host"))
    async with cluster.controllers(topologies()):
        await binding_when(cluster, "InSync")
        old = await topology(cluster)
        levels = a_binding_body("site", "block", "rack")["spec"]["levels"]
        await cluster.client.merge_patch(TOPOLOGY_BINDINGS.documents(), "site", {"spec": {"levels": levels}})
        await binding_when(cluster, "InSync")
        new = await topology(cluster)
        assert labels(new) == [KEYS["block"], KEYS["rack"]]
        assert new["metadata"]["uid"] != old["metadata"]["uid"]


async def test_a_topology_that_somebody_deleted_comes_back(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies()):
        await binding_when(cluster, "InSync")
        old = await topology(cluster)
        await cluster.client.delete(TOPOLOGIES, "site")

        async def is_back() -> bool:
            found = await cluster.read(TOPOLOGIES, "site")
            return found is not None and found["metadata"]["uid"] != old["metadata"]["uid"]

        await until(is_back, within=30)


async def test_somebody_elses_topology_of_the_name_is_left_alone_until_it_is_gone(cluster: Cluster) -> None:
    foreign = await cluster.make(TOPOLOGIES, a_topology("site", "rack"))
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies()) as manager:
        binding = await binding_when(cluster, "Drift")
        assert drift(binding) == ("True", "Drift")
        [status] = binding["status"]["schedulerTopologyStatuses"]
        assert status["inSync"] is False
        assert "belongs to somebody else" in status["message"]
        assert "TopologyDriftDetected" in await reasons(cluster, manager)
        assert (await topology(cluster))["metadata"]["resourceVersion"] == foreign.metadata.resource_version

        await cluster.client.delete(TOPOLOGIES, "site")
        await binding_when(cluster, "InSync")
        assert labels(await topology(cluster)) == list(KEYS.values())


async def test_a_topology_that_the_binding_names_is_only_compared(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site", "block", "rack", bound={"kai-scheduler": "theirs"}))
    async with cluster.controllers(topologies()):
        binding = await binding_when(cluster, "TopologyNotFound")
        assert drift(binding) == ("Unknown", "TopologyNotFound")

        await cluster.make(TOPOLOGIES, a_topology("theirs", "rack", "block"))
        binding = await binding_when(cluster, "Drift")
        [status] = binding["status"]["schedulerTopologyStatuses"]
        assert status["topologyReference"] == "theirs"
        assert KEYS["rack"] in status["message"]

        await cluster.client.delete(TOPOLOGIES, "theirs")
        await binding_when(cluster, "TopologyNotFound")
        theirs = await cluster.make(TOPOLOGIES, a_topology("theirs", "block", "rack"))
        await binding_when(cluster, "InSync")
        assert (await topology(cluster, "theirs"))["metadata"]["resourceVersion"] == theirs.metadata.resource_version
        assert await cluster.read(TOPOLOGIES, "site") is None


async def test_levels_that_kai_refuses_are_told_of(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site", "host", "rack"))
    async with cluster.controllers(topologies()):
        binding = await binding_when(cluster, "Drift")
        [status] = binding["status"]["schedulerTopologyStatuses"]
        assert "kubernetes.io/hostname can only be the last level" in status["message"]


async def test_without_kais_kind_one_status_says_so_until_it_comes(cluster: Cluster) -> None:
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, TOPOLOGIES.full_name)

    async def is_gone() -> bool:
        return await cluster.read(CUSTOM_RESOURCE_DEFINITIONS, TOPOLOGIES.full_name) is None

    await until(is_gone, within=30)
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies()) as manager:
        binding = await binding_when(cluster, "TopologyNotFound")
        [status] = binding["status"]["schedulerTopologyStatuses"]
        assert status["message"].startswith("topologies.kai.scheduler is not served")
        assert await reasons(cluster, manager) == {"TopologyDriftDetected"}

        await define(cluster.client, kai_scheduler.DEFINITIONS)
        await binding_when(cluster, "InSync")
        assert labels(await topology(cluster)) == list(KEYS.values())


async def test_nothing_is_written_at_rest_nor_after_a_restart(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies()) as manager:
        await binding_when(cluster, "InSync")
        await at_rest(manager)
        before = writes_of(manager)
        # An alias is the business of whoever gave it.
        aliased = [{"nodeLabel": key, "alias": f"a{index}"} for index, key in enumerate(KEYS.values())]
        await cluster.client.merge_patch(TOPOLOGIES.documents(), "site", {"spec": {"levels": aliased}})
        binding = await cluster.read(TOPOLOGY_BINDINGS, "site")
        assert binding is not None
        await until(lambda: _observed(cluster, 2), within=30)
        await at_rest(manager)
        assert writes_of(manager) == before + 1  # the generation of it that was looked at
        assert (await topology(cluster))["spec"]["levels"] == aliased
    async with cluster.controllers(topologies()) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def _observed(cluster: Cluster, generation: int) -> bool:
    binding = await cluster.read(TOPOLOGY_BINDINGS, "site")
    assert binding is not None
    [status] = binding["status"]["schedulerTopologyStatuses"]
    return bool(status["schedulerBackendTopologyObservedGeneration"] == generation)


async def test_where_sets_may_not_ask_for_topologies_no_scheduler_is_told_of_any(cluster: Cluster) -> None:
    await cluster.make(TOPOLOGY_BINDINGS, a_binding_body("site"))
    async with cluster.controllers(topologies(is_on=False)) as manager:
        await at_rest(manager)
        assert await cluster.all(TOPOLOGIES) == []
        assert writes_of(manager) == 0
