from __future__ import annotations

import asyncio

from shoal.cluster.apiserver.core import Core
from shoal.cluster.apiserver.upkeep.bootstrap import make_first_objects, publish_address
from tests.cluster.apiserver.conftest import Ask


def at() -> str:
    return "2026-01-01T00:00:00Z"


async def test_a_second_start_writes_nothing(core: Core) -> None:
    await publish_address(core.state, host="127.0.0.1", port=1, cluster_ip="10.96.0.1", now=at)
    before = core.state.store.revision
    await make_first_objects(core.state, now=at)
    await publish_address(core.state, host="127.0.0.1", port=1, cluster_ip="10.96.0.1", now=at)
    assert core.state.store.revision == before


async def test_pods_find_a_server_that_has_moved(core: Core, ask: Ask) -> None:
    await publish_address(core.state, host="127.0.0.1", port=1, cluster_ip="10.96.0.1", now=at)
    await publish_address(core.state, host="127.0.0.1", port=2, cluster_ip="10.96.0.1", now=at)
    _, endpoints = await ask("GET", "/api/v1/namespaces/default/endpoints/kubernetes")
    assert endpoints["subsets"][0]["ports"] == [{"name": "https", "port": 2, "protocol": "TCP"}]


async def test_a_role_that_gathers_others_follows_them(ask: Ask) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rule = {"apiGroups": ["sea.example"], "resources": ["boats"], "verbs": ["get"]}
    role = {
        "metadata": {"name": "boats", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule],
    }
    assert (await ask("POST", roles, role))[0] == 201
    async with asyncio.timeout(5):
        while rule not in (await ask("GET", f"{roles}/view"))[1]["rules"]:
            await asyncio.sleep(0)
        while rule not in (await ask("GET", f"{roles}/admin"))[1]["rules"]:
            await asyncio.sleep(0)
