"""Quotas: what is counted and measured, what is refused in which words, and that nothing is charged twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.admission.quota import ResourceQuota
from shoal.cluster.apiserver.admission.quota_usage import total_usage
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.admission.memory import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    SERVICE,
    Memory,
    a_container,
    a_kind,
    a_team_pod,
    asking,
    creating,
    refusal_of,
    updating,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_quota(
    hard: dict[str, str], used: dict[str, str] | None = None, *, name: str = "q", **spec: Any
) -> tuple[str, Object]:
    amounts = dict.fromkeys(hard, "0") | (used or {})
    metadata = {"name": name, "namespace": "team"}
    return "resourcequotas", {
        "metadata": metadata,
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": amounts},
    }


def used(state: Memory, name: str = "q") -> dict[str, str]:
    quota = state.get("resourcequotas", "team", name)
    assert quota is not None
    amounts: dict[str, str] = quota["status"]["used"]
    return amounts


def a_pod_asking(requests: dict[str, str], limits: dict[str, str] | None = None, **spec: Any) -> Object:
    return a_team_pod(containers=[a_container(**asking(requests, limits))], **spec)


def a_service(**spec: Any) -> Object:
    return {"metadata": {"name": "s"}, "spec": spec}


def a_claim(size: str, **spec: Any) -> Object:
    return {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": size}}, **spec}}


TWO_PORTS = [{"port": 1}, {"port": 2, "nodePort": 30000}]


@pytest.mark.parametrize(
    ("kind", "value", "charged"),
    [
        pytest.param(POD, a_team_pod(), {"pods": "1", "count/pods": "1"}, id="pods"),
        pytest.param(
            POD,
            a_pod_asking({"cpu": "100m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"}),
            {
                "cpu": "100m",
                "memory": "1Gi",
                "requests.cpu": "100m",
                "requests.memory": "1Gi",
                "limits.cpu": "1",
                "limits.memory": "2Gi",
            },
            id="processor and memory",
        ),
        pytest.param(
            POD,
            a_pod_asking({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "2Gi"}),
            {"ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "2Gi"},
            id="local storage",
        ),
        pytest.param(
            POD,
            a_pod_asking({"nvidia.com/gpu": "2", "example.com/dongle": "3"}),
            {"requests.nvidia.com/gpu": "2", "requests.example.com/dongle": "3"},
            id="extended resources",
        ),
        pytest.param(
            POD,
            a_pod_asking({"hugepages-2Mi": "100Mi"}),
            {"hugepages-2Mi": "100Mi", "requests.hugepages-2Mi": "100Mi"},
            id="huge pages",
        ),
        pytest.param(
            POD, a_pod_asking({"cpu": "1"}, overhead={"cpu": "250m"}), {"requests.cpu": "1250m"}, id="overhead"
        ),
        pytest.param(
            POD,
            a_team_pod(
                containers=[a_container(**asking({"cpu": "1"})), a_container("d", **asking({"cpu": "2"}))],
                initContainers=[a_container("i", **asking({"cpu": "4"}))],
            ),
            {"requests.cpu": "4"},
            id="an init container that needs most",
        ),
        pytest.param(
            POD,
            a_team_pod(resources={"requests": {"cpu": "5"}}),
            {"requests.cpu": "5"},
            id="resources of the whole pod",
        ),
        pytest.param(SERVICE, a_service(ports=TWO_PORTS), {"services": "1", "count/services": "1"}, id="services"),
        pytest.param(
            SERVICE, a_service(type="NodePort", ports=TWO_PORTS), {"services.nodeports": "2"}, id="node ports"
        ),
        pytest.param(
            SERVICE,
            a_service(type="LoadBalancer", ports=TWO_PORTS),
            {"services.nodeports": "2", "services.loadbalancers": "1"},
            id="load balancers",
        ),
        pytest.param(
            SERVICE,
            a_service(type="LoadBalancer", ports=TWO_PORTS, allocateLoadBalancerNodePorts=False),
            {"services.nodeports": "1"},
            id="chosen node ports",
        ),
        pytest.param(
            CLAIM,
            a_claim("5Gi", storageClassName="gold"),
            {
                "requests.storage": "5Gi",
                "persistentvolumeclaims": "1",
                "count/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "5Gi",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            },
            id="claims",
        ),
        pytest.param(CLAIM, a_claim("1500m"), {"requests.storage": "2"}, id="bytes are whole"),
        pytest.param(CONFIG_MAP, {"metadata": {"name": "m"}}, {"configmaps": "1", "count/configmaps": "1"}, id="maps"),
        pytest.param(DEPLOYMENT, {"metadata": {"name": "d"}}, {"count/deployments.apps": "1"}, id="any kind"),
        pytest.param(
            a_kind("Queue", "queues", "shoal.test"),
            {"metadata": {"name": "d"}},
            {"count/queues.shoal.test": "1"},
            id="custom kinds",
        ),
    ],
)
async def test_an_object_is_charged_what_it_uses(kind: Kind, value: Object, charged: dict[str, str]) -> None:
    hard = dict.fromkeys(charged, "1000Gi") | {"count/something.else": "1"}
    state = Memory(a_quota(hard))
    request = creating(kind, copy.deepcopy(value))
    await ResourceQuota(state).validate(request)
    assert used(state) == charged | {"count/something.else": "0"}
    await ResourceQuota(state).refund(request)
    assert used(state) == dict.fromkeys(hard, "0")
    quota = state.get("resourcequotas", "team", "q")
    assert quota is not None
    counted = total_usage(kind.storage, [value, value], quota, NOW)
    assert {name for name in counted if not counted[name].is_zero} == set(charged)


async def test_what_is_too_much_is_refused_with_all_that_is_exceeded() -> None:
    hard = {"pods": "1", "requests.cpu": "1", "requests.nvidia.com/gpu": "2", "limits.memory": "1Gi", "configmaps": "0"}
    state = Memory(a_quota(hard, {"pods": "1"}))
    pod = a_pod_asking({"cpu": "2", "nvidia.com/gpu": "4"}, {"memory": "2Gi"})
    status = await refusal_of(ResourceQuota(state).validate(creating(POD, pod)))
    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message == (
        'pods "p" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,pods=1,requests.cpu=2,'
        "requests.nvidia.com/gpu=4, used: limits.memory=0,pods=1,requests.cpu=0,requests.nvidia.com/gpu=0, "
        "limited: limits.memory=1Gi,pods=1,requests.cpu=1,requests.nvidia.com/gpu=2"
    )
    assert state.writes == 0


async def test_what_a_quota_limits_must_be_said() -> None:
    state = Memory(a_quota({"requests.cpu": "1", "limits.memory": "1Gi", "requests.nvidia.com/gpu": "1"}))
    pod = a_team_pod(containers=[a_container("c"), a_container("b", **asking({"cpu": "1"}))])
    status = await refusal_of(ResourceQuota(state).validate(creating(POD, pod)))
    assert status.message == (
        'pods "p" is forbidden: failed quota: q: must specify limits.memory for: b,c; requests.cpu for: c'
    )


async def test_a_quota_that_nobody_counted_yet_lets_nothing_through() -> None:
    storage, quota = a_quota({"pods": "1", "cpu": "1"})
    quota["status"]["used"] = {"pods": "0"}
    state = Memory((storage, quota))
    status = await refusal_of(ResourceQuota(state).validate(creating(POD, a_pod_asking({"cpu": "1"}))))
    assert status.message == 'pods "p" is forbidden: status unknown for quota: q, resources: cpu,pods'


async def test_a_dry_run_is_refused_but_never_charged() -> None:
    state = Memory(a_quota({"pods": "1"}))
    await ResourceQuota(state).validate(creating(POD, a_team_pod(), dry_run=True))
    assert used(state) == {"pods": "0"}
    state.put(*a_quota({"pods": "1"}, {"pods": "1"}))
    await refusal_of(ResourceQuota(state).validate(creating(POD, a_team_pod(), dry_run=True)))


HIGH = {"priorityClassName": "high"}
BEST = a_team_pod()
BURST = a_pod_asking({"cpu": "1"})
ABROAD = {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", "namespaces": ["x"]}]}
}


@pytest.mark.parametrize(
    ("spec", "pod", "is_charged"),
    [
        pytest.param({"scopes": ["BestEffort"]}, BEST, True, id="best effort"),
        pytest.param({"scopes": ["BestEffort"]}, BURST, False, id="not best effort"),
        pytest.param({"scopes": ["NotBestEffort"]}, BURST, True, id="more than best effort"),
        pytest.param({"scopes": ["Terminating"]}, a_team_pod(activeDeadlineSeconds=5), True, id="terminating"),
        pytest.param({"scopes": ["Terminating"]}, BEST, False, id="not terminating"),
        pytest.param({"scopes": ["NotTerminating", "BestEffort"]}, BEST, True, id="two scopes"),
        pytest.param({"scopes": ["NotTerminating", "NotBestEffort"]}, BEST, False, id="one of two scopes"),
        pytest.param({"scopes": ["PriorityClass"]}, a_team_pod(**HIGH), True, id="has a priority class"),
        pytest.param({"scopes": ["PriorityClass"]}, BEST, False, id="has none"),
        pytest.param(
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                }
            },
            a_team_pod(**HIGH),
            True,
            id="of this class",
        ),
        pytest.param(
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]
                }
            },
            a_team_pod(**HIGH),
            False,
            id="of no such class",
        ),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
            BEST,
            True,
            id="of no class at all",
        ),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, a_team_pod(affinity=ABROAD), True, id="looks abroad"),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, BEST, False, id="stays at home"),
    ],
)
async def test_a_scoped_quota_is_about_the_pods_in_its_scopes(spec: Any, pod: Object, is_charged: bool) -> None:
    state = Memory(a_quota({"pods": "9"}, **spec))
    await ResourceQuota(state).validate(creating(POD, copy.deepcopy(pod)))
    assert used(state) == {"pods": "1" if is_charged else "0"}


async def test_a_scoped_quota_counts_nothing_but_pods() -> None:
    state = Memory(a_quota({"configmaps": "0"}, scopes=["BestEffort"]))
    await ResourceQuota(state).validate(creating(CONFIG_MAP, {"metadata": {"name": "m"}}))


@pytest.mark.parametrize(
    ("kind", "new", "old", "hard", "charged"),
    [
        pytest.param(CLAIM, a_claim("5Gi"), a_claim("2Gi"), "requests.storage", "3Gi", id="what a claim grows by"),
        pytest.param(CLAIM, a_claim("1Gi"), a_claim("2Gi"), "requests.storage", "0", id="nothing for shrinking"),
        pytest.param(
            SERVICE,
            a_service(type="NodePort", ports=TWO_PORTS),
            a_service(ports=TWO_PORTS),
            "services.nodeports",
            "2",
            id="a service that opens ports",
        ),
        pytest.param(SERVICE, a_service(ports=TWO_PORTS), a_service(), "services", "0", id="a service stays one"),
        pytest.param(CONFIG_MAP, {"metadata": {"name": "m"}}, {"metadata": {}}, "configmaps", "0", id="counted once"),
        pytest.param(POD, a_team_pod(), a_team_pod(), "pods", "0", id="a pod stays one"),
    ],
)
async def test_an_update_is_charged_the_difference(kind: Kind, new: Any, old: Any, hard: str, charged: str) -> None:
    state = Memory(a_quota({hard: "100Gi"}))
    old = old | {"metadata": {"name": "x", "resourceVersion": "1"}}
    await ResourceQuota(state).validate(updating(kind, new, old))
    assert used(state) == {hard: charged}


async def test_a_resize_is_charged_the_difference() -> None:
    state = Memory(a_quota({"requests.cpu": "4"}, {"requests.cpu": "1"}))
    old = a_pod_asking({"cpu": "1"})
    old["metadata"]["resourceVersion"] = "1"
    request = updating(POD, a_pod_asking({"cpu": "3"}), old, subresource="resize")
    await ResourceQuota(state).validate(request)
    assert used(state) == {"requests.cpu": "3"}


async def test_a_pod_that_enters_a_scope_is_charged_whole() -> None:
    state = Memory(a_quota({"pods": "4"}, scopes=["Terminating"]))
    old = a_team_pod()
    old["metadata"]["resourceVersion"] = "1"
    await ResourceQuota(state).validate(updating(POD, a_team_pod(activeDeadlineSeconds=5), old))
    assert used(state) == {"pods": "1"}


@pytest.mark.parametrize(("quota", "resource"), [("events", ""), ("events", "events.k8s.io"), ("bindings", "")])
async def test_some_kinds_are_free(quota: str, resource: str) -> None:
    kind = a_kind("Event", quota, resource)
    state = Memory(a_quota({f"count/{kind.storage}": "0"}))
    await ResourceQuota(state).validate(creating(kind, {"metadata": {"name": "e"}}))


@pytest.mark.parametrize(
    ("change", "charged"),
    [
        pytest.param({"status": {"phase": "Succeeded"}}, {"pods": "0", "count/pods": "1"}, id="succeeded"),
        pytest.param({"status": {"phase": "Running"}}, {"pods": "1", "count/pods": "1"}, id="running"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2025-12-31T00:00:00Z", "deletionGracePeriodSeconds": 30}},
            {"pods": "0", "count/pods": "1"},
            id="lost while going",
        ),
    ],
)
def test_a_pod_that_is_over_uses_no_resources(change: Any, charged: dict[str, str]) -> None:
    _, quota = a_quota({"pods": "9", "count/pods": "9"})
    total = total_usage("pods", [a_team_pod() | change], quota, NOW)
    assert {name: str(amount) for name, amount in total.items()} == charged


async def test_creates_at_once_never_share_the_last_place() -> None:
    state = Memory(a_quota({"pods": "5"}), a_quota({"pods": "3"}, name="tight"))
    quota = ResourceQuota(state)
    outcomes = await asyncio.gather(
        *(quota.validate(creating(POD, a_team_pod(f"p{number}"))) for number in range(20)), return_exceptions=True
    )
    assert sum(each is None for each in outcomes) == 3
    assert all(each is None or isinstance(each, Refused) for each in outcomes)
    # Those that the second quota refused have given back what the first one charged them.
    assert (used(state), used(state, "tight")) == ({"pods": "3"}, {"pods": "3"})


async def test_a_refund_gives_back_once() -> None:
    state = Memory(a_quota({"pods": "5"}))
    quota, request = ResourceQuota(state), creating(POD, a_team_pod())
    await quota.validate(request)
    await quota.refund(request)
    await quota.refund(request)
    assert used(state) == {"pods": "0"}


async def test_a_quota_that_goes_meanwhile_is_no_obstacle() -> None:
    class Vanishing(Memory):
        async def update(
            self, storage: str, namespace: str, name: str, change: Callable[[Object], Object | None]
        ) -> Object | None:
            self.objects.clear()
            return await super().update(storage, namespace, name, change)

    request = creating(POD, a_team_pod())
    await ResourceQuota(Vanishing(a_quota({"pods": "1"}))).validate(request)
    assert request.charges == []


@given(st.lists(st.integers(1, 5), max_size=12), st.integers(0, 20))
def test_what_is_used_is_never_more_than_what_is_allowed(sizes: list[int], limit: int) -> None:
    state = Memory(a_quota({"requests.nvidia.com/gpu": str(limit)}))

    async def run() -> int:
        quota = ResourceQuota(state)
        requests = [creating(POD, a_pod_asking({"nvidia.com/gpu": str(size)})) for size in sizes]
        outcomes = await asyncio.gather(*(quota.validate(each) for each in requests), return_exceptions=True)
        return sum(size for size, outcome in zip(sizes, outcomes, strict=True) if outcome is None)

    granted = asyncio.run(run())
    assert used(state) == {"requests.nvidia.com/gpu": str(granted)}
    assert granted <= limit
