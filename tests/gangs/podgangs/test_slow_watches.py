"""PodGangs are read from two watches, as values and as documents: the slower one never has the last word."""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.kube import Manager
from tests.gangs.builders import a_clique_template, a_set
from tests.gangs.podgangs.actors import Workload, is_initialized, podgangs, references
from tests.support.clusters.faults import behind
from tests.support.clusters.in_process import Cluster
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest


async def a_whole_gang(cluster: Cluster) -> Workload:
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 2)))
    [clique] = (await workload.make_cliques()).values()
    await workload.make_pods(clique, 2)
    await workload.gang_when("web-0", is_initialized)
    return workload


async def test_a_gang_comes_back_though_its_document_is_still_seen(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload = await a_whole_gang(cluster)
        await at_rest(manager)
        with behind(manager.cache.informer(POD_GANGS.documents())):
            await cluster.client.delete(POD_GANGS, "web-0", "default")
            await _sees(manager, lambda gang: gang is None)
            await at_rest(manager)
        await workload.gang_when("web-0", is_initialized)


async def test_what_somebody_took_from_a_gang_is_put_back_though_its_document_is_old(cluster: Cluster) -> None:
    async with cluster.controllers(podgangs()) as manager:
        workload = await a_whole_gang(cluster)
        await at_rest(manager)
        whole = references(await workload.gang("web-0"))
        with behind(manager.cache.informer(POD_GANGS.documents())):
            await cluster.client.merge_patch(POD_GANGS.documents(), "web-0", {"spec": {"podgroups": []}}, "default")
            await _sees(manager, lambda gang: gang is not None and not gang.spec.pod_groups)
            await at_rest(manager)
        await workload.gang_when("web-0", lambda gang: references(gang) == whole)


async def _sees(manager: Manager, holds: Callable[[PodGang | None], bool]) -> None:
    gangs = manager.cache.informer(POD_GANGS)
    await eventually(lambda: holds(gangs.get("web-0", "default")))
