"""The ComputeDomains of a set's replicas: made, held by a finalizer, and let go."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.gangs.settings import GangSettings
from tests.gangs.builders import a_clique_template, a_pod_spec, a_set
from tests.gangs.sets.running_sets import Running
from tests.support.clusters.client import install, until

DEFINITION = {
    "metadata": {"name": COMPUTE_DOMAINS.full_name},
    "spec": {
        "group": COMPUTE_DOMAINS.group,
        "names": {"kind": "ComputeDomain", "plural": "computedomains", "singular": "computedomain"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": COMPUTE_DOMAINS.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
MNNVL = GangSettings(has_mnnvl=True)


def with_gpus(replicas: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    clique = a_clique_template("workers", pod_spec=a_pod_spec(containers=[container]))
    return a_set("web", clique, replicas=replicas, metadata={"annotations": {"grove.io/mnnvl-group": "fast"}})


async def test_each_replica_has_its_domains_and_those_of_a_replica_that_goes_are_let_go(running: Running) -> None:
    await install(running.cluster.client, DEFINITION)
    async with running.sets(MNNVL):
        await running.make(with_gpus(2))
        assert await running.names(COMPUTE_DOMAINS, 2) == ["web-0-fast", "web-1-fast"]
        held = await running.cluster.read(COMPUTE_DOMAINS, "web-1-fast")
        assert held is not None
        assert held["metadata"]["finalizers"] == ["grove.io/computedomain-finalizer"]
        assert held["metadata"]["ownerReferences"][0]["kind"] == "PodCliqueSet"
        await running.change({"spec": {"replicas": 1}})
        assert await running.names(COMPUTE_DOMAINS, 1) == ["web-0-fast"]


async def test_a_domain_that_somebody_deletes_is_let_go_and_made_anew(running: Running) -> None:
    await install(running.cluster.client, DEFINITION)
    async with running.sets(MNNVL):
        await running.make(with_gpus(1))
        await running.names(COMPUTE_DOMAINS, 1)
        first = await running.cluster.read(COMPUTE_DOMAINS, "web-0-fast")
        await running.cluster.client.delete(COMPUTE_DOMAINS, "web-0-fast", "default")

        async def is_new() -> bool:
            found = await running.cluster.read(COMPUTE_DOMAINS, "web-0-fast")
            return bool(found and first and found["metadata"]["uid"] != first["metadata"]["uid"])

        await until(is_new, within=30)


async def test_domains_go_with_the_set(running: Running) -> None:
    await install(running.cluster.client, DEFINITION)
    async with running.sets(MNNVL):
        await running.make(with_gpus(2))
        await running.names(COMPUTE_DOMAINS, 2)
        await running.names(POD_CLIQUES, 2)
        await running.cluster.client.delete(POD_CLIQUE_SETS, "web", "default")
        assert await running.names(POD_CLIQUE_SETS, 0) == []
        assert await running.names(COMPUTE_DOMAINS, 0) == []
