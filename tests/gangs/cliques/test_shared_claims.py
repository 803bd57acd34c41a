"""Claims that the pods of a clique share, on a server."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import POD_CLIQUES
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.gangs.builders import a_clique_template, a_set
from tests.gangs.cliques.conftest import WORKERS, Workload, at_work, indexes
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, errors_of, writes_of
from tests.support.waiting.at_rest import at_rest

DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}


def a_sharing_set(*scopes: tuple[str, str], own: bool = True) -> dict[str, Any]:
    sharing = [{"name": name, "scope": scope} for name, scope in scopes]
    more: dict[str, Any] = {}
    if own:
        more["resourceClaimTemplates"] = [{"name": name, "templateSpec": {"spec": DEVICES}} for name, _ in scopes]
    return a_set("web", a_clique_template("workers", 3, resourceSharing=sharing), **more)


async def has_claims(cluster: Cluster, *expected: str) -> list[dict[str, Any]]:
    async def agrees() -> list[dict[str, Any]] | None:
        claims = await cluster.all(RESOURCE_CLAIMS)
        return claims if [claim["metadata"]["name"] for claim in claims] == sorted(expected) else None

    found: list[dict[str, Any]] = await until(agrees, within=30)
    return found


async def test_claims_are_there_for_all_pods_and_for_each(cluster: Cluster, workload: Workload) -> None:
    each = [f"{WORKERS}-{index}-own" for index in range(3)]
    async with at_work(cluster) as manager:
        await workload.start(a_sharing_set(("all", "AllReplicas"), ("own", "PerReplica")))
        claims = await has_claims(cluster, f"{WORKERS}-all-all", *each)
        assert {claim["metadata"]["ownerReferences"][0]["kind"] for claim in claims} == {"PodClique"}
        pods = await workload.has_pods(WORKERS, 3)
        for index, pod in enumerate(pods):
            used = [claim["resourceClaimName"] for claim in pod["spec"]["resourceClaims"]]
            assert used == [f"{WORKERS}-all-all", each[index]]

        await workload.status_is(WORKERS, replicas=3)  # so that no timer looks at it again
        await at_rest(manager)
        await cluster.client.delete(RESOURCE_CLAIMS, each[1], "default")
        await until(lambda: cluster.read(RESOURCE_CLAIMS, each[1]), within=30)

        await workload.scale(WORKERS, 1)
        await has_claims(cluster, f"{WORKERS}-all-all", each[0])
        await workload.status_is(WORKERS, replicas=1, observedGeneration=2)
        await at_rest(manager)
    async with at_work(cluster) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_a_pod_keeps_its_claim_when_the_clique_becomes_smaller_than_its_number(
    cluster: Cluster, workload: Workload
) -> None:
    async with at_work(cluster) as manager:
        await workload.start(a_sharing_set(("own", "PerReplica")))
        last = (await workload.has_pods(WORKERS, 3))[2]
        await workload.name_pods("web-0")
        await workload.are_ungated(WORKERS)
        await workload.run(last)
        await workload.status_is(WORKERS, readyReplicas=1)
        await workload.scale(WORKERS, 1)
        assert indexes(await workload.has_pods(WORKERS, 1)) == [2]
        await workload.status_is(WORKERS, replicas=1)
        await at_rest(manager)
        assert await cluster.read(RESOURCE_CLAIMS, f"{WORKERS}-2-own") is not None


async def test_a_template_that_is_missing_is_told_and_waited_for(cluster: Cluster, workload: Workload) -> None:
    async with at_work(cluster) as manager:
        await workload.start(a_sharing_set(("theirs", "AllReplicas"), own=False))

        async def tells() -> list[dict[str, Any]]:
            found = await cluster.read(POD_CLIQUES, WORKERS)
            errors: list[dict[str, Any]] = (found or {}).get("status", {}).get("lastErrors", [])
            return errors

        errors = await until(tells, within=30)
        assert [error["code"] for error in errors] == ["ERR_SYNC_RESOURCE_CLAIM"]
        assert "ResourceClaimTemplate default/theirs does not exist" in errors[0]["description"]
        await workload.status_is(WORKERS, replicas=3)
        await at_rest(manager)
        assert errors_of(manager) == 0, "it is waited for, and not tried again and again"
        await cluster.make(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "theirs"}, "spec": {"spec": DEVICES}})
        await has_claims(cluster, f"{WORKERS}-all-theirs")
        status = await workload.status_is(WORKERS, replicas=3, observedGeneration=1)
        assert "lastErrors" not in status


async def test_a_foreign_claim_of_the_name_is_left_alone(cluster: Cluster, workload: Workload) -> None:
    name = f"{WORKERS}-all-shared"
    async with at_work(cluster):
        await cluster.make(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": DEVICES})
        before = await cluster.read(RESOURCE_CLAIMS, name)
        await workload.start(a_sharing_set(("shared", "AllReplicas")))

        async def tells() -> bool:
            found = await cluster.read(POD_CLIQUES, WORKERS)
            return bool((found or {}).get("status", {}).get("lastErrors"))

        await until(tells, within=30)
        assert await cluster.read(RESOURCE_CLAIMS, name) == before
