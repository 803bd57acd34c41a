"""What admission reads of other objects, on a real (embedded) API server."""

from __future__ import annotations

from shoal.api.grove import POD_CLIQUE_SETS, TOPOLOGY_BINDINGS, PodCliqueSet
from shoal.gangs.admission import Lookups
from shoal.kube import Informer, Manager
from tests.gangs.builders import a_set
from tests.support.clusters.client import requests
from tests.support.clusters.in_process import Cluster
from tests.support.waiting import eventually

OPEN = {"annotations": {"grove.io/disable-managed-resource-protection": "true"}}


async def test_what_was_made_a_moment_ago_is_seen(cluster: Cluster) -> None:
    lookups = Lookups.live(cluster.client)
    assert await lookups.topology("racks") is None
    assert await lookups.pod_clique_set("default", "web") is None
    levels = [{"domain": "rack", "key": "example.com/rack"}]
    await cluster.make(TOPOLOGY_BINDINGS, {"metadata": {"name": "racks"}, "spec": {"levels": levels}})
    await cluster.make(POD_CLIQUE_SETS, a_set("web", metadata=OPEN))
    topology = await lookups.topology("racks")
    assert topology is not None
    assert [level.domain for level in topology.spec.levels] == ["rack"]
    found = await lookups.pod_clique_set("default", "web")
    assert found is not None
    assert found.metadata.annotations == OPEN["annotations"]
    assert await lookups.pod_clique_set("elsewhere", "web") is None


async def test_a_set_that_an_informer_knows_is_not_asked_for(cluster: Cluster) -> None:
    informers: list[Informer[PodCliqueSet]] = []

    def add(manager: Manager) -> None:
        informers.append(manager.cache.informer(POD_CLIQUE_SETS))

    async with cluster.controllers(add) as manager:
        [sets] = informers
        lookups = Lookups.live(manager.client, sets)
        await cluster.make(POD_CLIQUE_SETS, a_set("web", metadata=OPEN))
        await eventually(lambda: sets.get("web", "default") is not None)
        before = requests(manager.metrics)
        found = await lookups.pod_clique_set("default", "web")
        assert found is not None
        assert found.metadata.annotations == OPEN["annotations"]
        assert requests(manager.metrics) == before
        assert await lookups.pod_clique_set("default", "other") is None
        assert requests(manager.metrics) == before + 1
