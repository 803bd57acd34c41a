from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.compute_domains import NoComputeDomains, check_compute_domains
from shoal.gangs.settings import GangSettings
from tests.support.clusters.client import install, until
from tests.support.clusters.in_process import Cluster

ON = GangSettings(has_mnnvl=True)


def a_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": "computedomains.resource.nvidia.com"},
        "spec": {
            "group": "resource.nvidia.com",
            "scope": "Namespaced",
            "names": {"plural": "computedomains", "singular": "computedomain", "kind": "ComputeDomain"},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def test_a_cluster_without_compute_domains_is_refused_only_where_they_are_to_be_made(
    cluster: Cluster,
) -> None:
    await check_compute_domains(cluster.client, GangSettings())
    with pytest.raises(NoComputeDomains, match=r"computedomains\.resource\.nvidia\.com v1beta1"):
        await check_compute_domains(cluster.client, ON)

    await install(cluster.client, a_definition())

    async def is_served() -> bool:
        try:
            await check_compute_domains(cluster.client, ON)
        except NoComputeDomains:
            return False
        return True

    await until(is_served)
