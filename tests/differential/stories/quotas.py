"""Quotas: what is counted, and for whom."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import (
    a_bare_pod,
    a_config_map,
    a_container,
    a_deployment,
    a_quota,
    a_service,
    an_object,
)
from tests.differential.story import BY_HAND, Story, Teller


def _used(c: Teller, name: str = "quota", **used: str) -> None:
    """Waits until so much is used; "__" stands for a dot and "_" for a slash."""
    wanted = {key.replace("__", ".").replace("_", "/"): value for key, value in used.items()}

    def holds() -> bool:
        found = (c.find("ResourceQuota", name) or {}).get("status", {}).get("used", {})
        return bool(wanted.items() <= found.items())

    c.until(holds, f"{name} has used {wanted}")


def _sized(name: str, cpu: str, memory: str = "1Gi", **spec: Any) -> Object:
    amounts = {"cpu": cpu, "memory": memory}
    containers = [a_container(resources={"requests": amounts, "limits": amounts})]
    return a_bare_pod(name, containers=containers, **BY_HAND, **spec)


def _counts(c: Teller) -> None:
    c.create(a_service("early"), a_config_map("early"))
    hard = {"services": "3", "pods": "2", "configmaps": "5", "secrets": "1", "replicationcontrollers": "0"}
    c.create(a_quota(**hard, services__nodeports="1", services__loadbalancers="0", count_deployments__apps="1"))
    _used(c, services="1", configmaps="2", pods="0")
    c.snapshot("what was there is counted")
    c.create(a_bare_pod("one", **BY_HAND), a_service("two", type="NodePort"))
    c.try_to_create(a_service("three", type="NodePort"))
    c.try_to_create(a_deployment("web", replicas=0))
    c.try_to_create(a_deployment("more", replicas=0))
    c.snapshot("what is made")
    c.delete("Pod", "one")
    c.delete("Service", "two")
    _used(c, pods="0", services="1", services__nodeports="0")
    c.snapshot("what is gone")


def _compute(c: Teller) -> None:
    hard = {"cpu": "2", "requests.memory": "4Gi", "limits.cpu": "3", "limits.memory": "8Gi"}
    c.create(an_object("v1", "ResourceQuota", "quota", spec={"hard": hard}))
    _used(c, cpu="0")
    c.create(_sized("one", "1500m"))
    c.try_to_create(_sized("two", "600m"))
    c.try_to_create(a_bare_pod("none", **BY_HAND))
    _used(c, cpu="1500m")
    c.snapshot("one fits, the other does not, and one says nothing")
    c.finish(c.get("Pod", "one"))
    _used(c, cpu="0")
    c.snapshot("one that has ended needs nothing")


def _scopes(c: Teller) -> None:
    c.create(
        a_quota("best", scopes=["BestEffort"], pods="1"),
        a_quota("sized", scopes=["NotBestEffort"], pods="1"),
        a_quota("ending", scopes=["Terminating"], pods="1"),
        a_quota("lasting", scopes=["NotTerminating"], pods="5"),
    )
    for name in ("best", "sized", "ending", "lasting"):
        _used(c, name, pods="0")
    c.create(a_bare_pod("plain", **BY_HAND), _sized("sized", "1"))
    c.try_to_create(a_bare_pod("more", **BY_HAND))
    c.try_to_create(_sized("short", "1", activeDeadlineSeconds=60))
    _used(c, "best", pods="1")
    _used(c, "sized", pods="1")
    _used(c, "lasting", pods="2")
    c.snapshot("each counts its own")


def _priority(c: Teller) -> None:
    urgent = f"{c.namespace}.urgent"
    c.create(an_object("scheduling.k8s.io/v1", "PriorityClass", urgent, value=100))
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": [urgent]}
    c.create(a_quota("urgent", selector={"matchExpressions": [expression]}, pods="1"))
    _used(c, "urgent", pods="0")
    c.create(a_bare_pod("plain", **BY_HAND), a_bare_pod("urgent", priorityClassName=urgent, **BY_HAND))
    c.try_to_create(a_bare_pod("second", priorityClassName=urgent, **BY_HAND))
    _used(c, "urgent", pods="1")
    c.snapshot("only urgent pods count")


def _changed(c: Teller) -> None:
    c.create(a_quota(pods="5"))
    _used(c, pods="0")
    c.create(a_bare_pod("one", **BY_HAND))
    _used(c, pods="1")
    c.patch("ResourceQuota", "quota", {"spec": {"hard": {"pods": "1", "configmaps": "3"}}})
    _used(c, pods="1", configmaps="1")
    c.snapshot("another limit and another kind")
    c.patch("ResourceQuota", "quota", {"spec": {"hard": {"pods": None}}})
    c.until(lambda: "pods" not in c.get("ResourceQuota", "quota")["status"]["used"])
    c.snapshot("one limit is gone")


def _storage(c: Teller) -> None:
    by_class = "gold.storageclass.storage.k8s.io/requests.storage"
    hard = {"requests.storage": "10Gi", "persistentvolumeclaims": "2", by_class: "5Gi"}
    c.create(an_object("v1", "ResourceQuota", "quota", spec={"hard": hard}))
    _used(c, persistentvolumeclaims="0")

    def claim(name: str, storage: str, **spec: Any) -> Object:
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **spec}
        return an_object("v1", "PersistentVolumeClaim", name, spec=wanted)

    c.create(claim("one", "4Gi", storageClassName="gold"))
    c.try_to_create(claim("two", "2Gi", storageClassName="gold"))
    c.create(claim("three", "3Gi", storageClassName="iron"))
    _used(c, persistentvolumeclaims="2")
    c.snapshot("by size and class")


def _extended(c: Teller) -> None:
    hard = {"requests.nvidia.com/gpu": "4"}
    c.create(an_object("v1", "ResourceQuota", "quota", spec={"hard": hard}))
    c.until_status("ResourceQuota", "quota", hard=hard)
    gpus = {"limits": {"nvidia.com/gpu": "3"}}
    c.create(a_bare_pod("one", containers=[a_container(resources=gpus)], **BY_HAND))
    c.try_to_create(a_bare_pod("two", containers=[a_container(resources=gpus)], **BY_HAND))
    c.until(lambda: c.get("ResourceQuota", "quota")["status"]["used"] == {"requests.nvidia.com/gpu": "3"})
    c.snapshot("three of four")


def _two(c: Teller) -> None:
    c.create(a_quota("one", pods="5"), a_quota("two", pods="1"))
    _used(c, "one", pods="0")
    _used(c, "two", pods="0")
    c.create(a_bare_pod("first", **BY_HAND))
    c.try_to_create(a_bare_pod("second", **BY_HAND))
    c.delete("ResourceQuota", "two")
    c.until_gone("ResourceQuota", "two")
    c.later()
    c.create(a_bare_pod("third", **BY_HAND))
    _used(c, "one", pods="2")
    c.snapshot("both count, the tighter one refuses")


STORIES = [
    Story("quota counts objects", _counts),
    Story("quota on cpu and memory", _compute),
    Story("quota with scopes", _scopes),
    Story("quota by priority", _priority),
    Story("quota is changed", _changed),
    Story("quota on storage", _storage),
    Story("quota on gpus", _extended),
    Story("quota twice", _two),
]
