"""What every namespace has: its default account and the authority's certificate."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, ConfigMap
from shoal.api.meta import ObjectMeta, Resource
from shoal.cluster.controllers.accounts import add_accounts
from shoal.cluster.controllers.accounts.residents import DESCRIPTION, DESCRIPTION_KEY, mended
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of

Content = dict[str, Any]
AUTHORITY = "kube-root-ca.crt"


def add(manager: Manager) -> None:
    add_accounts(manager, authority=b"CERT", signer=None)


async def appears(cluster: Cluster, resource: Resource[Any], name: str, namespace: str = "team") -> Content:
    async def found() -> Content | None:
        return await cluster.read(resource, name, namespace)

    answer: Content = await until(found, within=10)
    return answer


async def has_data(cluster: Cluster, data: Content) -> None:
    async def is_mended() -> bool:
        found = await cluster.read(CONFIG_MAPS, AUTHORITY, "team")
        return found is not None and found.get("data") == data

    await until(is_mended, within=10)


async def test_a_new_namespace_gets_an_account_and_the_authority(cluster: Cluster) -> None:
    async with cluster.controllers(add):
        await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
        await appears(cluster, SERVICE_ACCOUNTS, "default")
        published = await appears(cluster, CONFIG_MAPS, AUTHORITY)
        assert published["data"] == {"ca.crt": "CERT"}
        assert published["metadata"]["annotations"] == {DESCRIPTION_KEY: DESCRIPTION}


async def test_what_is_deleted_comes_back(cluster: Cluster) -> None:
    async with cluster.controllers(add):
        await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
        for resource, name in ((SERVICE_ACCOUNTS, "default"), (CONFIG_MAPS, AUTHORITY)):
            uid = (await appears(cluster, resource, name))["metadata"]["uid"]
            await cluster.client.delete(resource, name, "team")

            async def is_another(resource: Any = resource, name: str = name, uid: str = uid) -> bool:
                found = await cluster.read(resource, name, "team")
                return found is not None and found["metadata"]["uid"] != uid

            await until(is_another)


async def test_what_was_changed_is_mended(cluster: Cluster) -> None:
    async with cluster.controllers(add):
        await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
        await appears(cluster, CONFIG_MAPS, AUTHORITY)
        await cluster.client.merge_patch(CONFIG_MAPS, AUTHORITY, {"data": {"ca.crt": "FORGED", "more": "x"}}, "team")
        await has_data(cluster, {"ca.crt": "CERT"})


async def test_a_namespace_on_its_way_out_gets_nothing(cluster: Cluster) -> None:
    await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
    await cluster.client.delete(NAMESPACES, "team")
    async with cluster.controllers(add):
        await cluster.make(NAMESPACES, {"metadata": {"name": "next"}})
        await appears(cluster, CONFIG_MAPS, AUTHORITY, "next")
        assert await cluster.read(CONFIG_MAPS, AUTHORITY, "team") is None
        assert await cluster.read(SERVICE_ACCOUNTS, "default", "team") is None


async def test_at_rest_nothing_is_written(cluster: Cluster) -> None:
    async with cluster.controllers(add):
        for namespace in await cluster.all(NAMESPACES):
            await appears(cluster, CONFIG_MAPS, AUTHORITY, namespace["metadata"]["name"])
            await appears(cluster, SERVICE_ACCOUNTS, "default", namespace["metadata"]["name"])
    async with cluster.controllers(add) as manager:
        await cluster.make(NAMESPACES, {"metadata": {"name": "team"}})
        await appears(cluster, CONFIG_MAPS, AUTHORITY)
        assert writes_of(manager) == 2


@pytest.mark.parametrize(
    ("data", "description", "is_right"),
    [
        pytest.param({"ca.crt": "CERT"}, DESCRIPTION, True, id="as it should be"),
        pytest.param({"ca.crt": "CERT"}, "ours", True, id="described in other words"),
        pytest.param({"ca.crt": "CERT"}, "", False, id="not described"),
        pytest.param({"ca.crt": "OLD"}, DESCRIPTION, False, id="another authority"),
        pytest.param({"ca.crt": "CERT", "more": "x"}, DESCRIPTION, False, id="more than that"),
        pytest.param({}, DESCRIPTION, False, id="empty"),
    ],
)
def test_the_authority_is_published_alone_and_described(data: Content, description: str, is_right: bool) -> None:
    found = ConfigMap(metadata=ObjectMeta(annotations={DESCRIPTION_KEY: description}), data=data)
    patch = mended(found, "CERT")
    assert (patch is None) is is_right
    if patch is not None:
        left = {key: value for key, value in {**data, **patch["data"]}.items() if value is not None}
        assert left == {"ca.crt": "CERT"}
