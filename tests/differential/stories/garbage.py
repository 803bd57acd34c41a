"""Garbage: what goes with its owners, what stays, and what never should have had this owner."""

from __future__ import annotations

from typing import Any

from tests.differential.objects import a_bare_pod, a_config_map, a_replica_set, an_object, owned_by
from tests.differential.story import BY_HAND, Story, Teller

NOBODY = "00000000-0000-0000-0000-000000000001"


def _owner(c: Teller, name: str, kind: str = "ConfigMap", version: str = "v1", **more: Any) -> dict[str, Any]:
    return owned_by(c.get(kind, name) | {"apiVersion": version, "kind": kind}, **more)


def _chain(c: Teller) -> None:
    c.create(a_config_map("grandparent"))
    c.create(a_config_map("parent", ownerReferences=[_owner(c, "grandparent")]))
    c.create(a_config_map("child", ownerReferences=[_owner(c, "parent")]))


def _deleted(policy: str) -> Story:
    def tell(c: Teller) -> None:
        _chain(c)
        c.delete("ConfigMap", "grandparent", policy=policy)
        c.until_gone("ConfigMap", "grandparent")
        if policy == "Orphan":
            c.until(lambda: not c.get("ConfigMap", "parent")["metadata"].get("ownerReferences"))
        else:
            c.until_gone("ConfigMap", "child")
        c.snapshot("deleted")

    return Story(f"garbage {policy}", tell)


def _foreground_waits(c: Teller) -> None:
    c.create(a_config_map("owner"))
    c.create(a_config_map("held", finalizers=["example.com/hold"], ownerReferences=[_owner(c, "owner", blocking=True)]))
    c.create(a_config_map("free", ownerReferences=[_owner(c, "owner", blocking=True)]))
    c.delete("ConfigMap", "owner", policy="Foreground")
    c.until_gone("ConfigMap", "free")
    c.snapshot("one that is held holds its owner")
    c.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    c.until_gone("ConfigMap", "owner")
    c.snapshot("all are gone")


def _not_blocking(c: Teller) -> None:
    c.create(a_config_map("owner"))
    c.create(a_config_map("held", finalizers=["example.com/hold"], ownerReferences=[_owner(c, "owner")]))
    c.delete("ConfigMap", "owner", policy="Foreground")
    c.until_gone("ConfigMap", "owner")
    c.until(lambda: "deletionTimestamp" in c.get("ConfigMap", "held")["metadata"])
    c.snapshot("one that does not block holds nobody")


def _dangling(c: Teller) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": NOBODY}
    c.create(a_config_map("orphan", ownerReferences=[reference]))
    c.until_gone("ConfigMap", "orphan")
    c.create(a_config_map("owner"))
    wrong = {**_owner(c, "owner"), "uid": NOBODY}
    c.create(a_config_map("mistaken", ownerReferences=[wrong]))
    c.until_gone("ConfigMap", "mistaken")
    c.snapshot("an owner that never was")


def _two_owners(c: Teller) -> None:
    c.create(a_config_map("one"), a_config_map("two"))
    c.create(a_config_map("child", ownerReferences=[_owner(c, "one"), _owner(c, "two")]))
    c.delete("ConfigMap", "one")
    c.until(lambda: len(c.get("ConfigMap", "child")["metadata"]["ownerReferences"]) == 1)
    c.snapshot("one owner is left")
    c.delete("ConfigMap", "two")
    c.until_gone("ConfigMap", "child")
    c.snapshot("none")


def _cluster_wide(c: Teller) -> None:
    role = f"{c.namespace}.role"
    version = "rbac.authorization.k8s.io/v1"
    c.create(an_object(version, "ClusterRole", role, rules=[]))
    owner = _owner(c, role, "ClusterRole", version)
    c.create(a_config_map("child", ownerReferences=[owner]))
    c.create(an_object(version, "ClusterRole", f"{role}.child", rules=[], metadata={"ownerReferences": [owner]}))
    c.snapshot("owned by an object without a namespace")
    c.delete("ClusterRole", role)
    c.until_gone("ConfigMap", "child")
    c.until_gone("ClusterRole", f"{role}.child")
    c.snapshot("gone with it")


def _cross_namespace(c: Teller) -> None:
    c.create(a_config_map("owner"))
    version = "rbac.authorization.k8s.io/v1"
    c.create(
        an_object(
            version, "ClusterRole", f"{c.namespace}.child", rules=[], metadata={"ownerReferences": [_owner(c, "owner")]}
        )
    )
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": _foreign_uid(c)}
    c.create(a_config_map("mistaken", ownerReferences=[other]))
    c.until_gone("ConfigMap", "mistaken")
    c.snapshot("an owner in another namespace is none; without a namespace nobody can be owned by one with")


def _foreign_uid(c: Teller) -> str:
    found = c.mirror.find("ConfigMap", "default", "kube-root-ca.crt")
    assert found is not None
    uid: str = found["metadata"]["uid"]
    return uid


def _pods(policy: str) -> Story:
    def tell(c: Teller) -> None:
        c.create(a_replica_set(replicas=2))
        c.until_ready(2)
        c.until_status("ReplicaSet", "web", readyReplicas=2)
        c.delete("ReplicaSet", "web", policy=policy)
        c.until_gone("ReplicaSet", "web")
        if policy != "Orphan":
            c.until_pods(0)
        c.until(lambda: all(not pod["metadata"].get("ownerReferences") for pod in c.pods()))
        c.snapshot("deleted")

    return Story(f"garbage pods {policy}", tell)


def _unknown_kind(c: Teller) -> None:
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "one", "uid": NOBODY}
    c.create(a_config_map("child", ownerReferences=[reference]))
    c.later()
    c.snapshot("an owner of a kind that nobody knows is left alone")


def _circle(c: Teller) -> None:
    c.create(a_config_map("one"))
    c.create(a_config_map("two", ownerReferences=[_owner(c, "one", blocking=True)]))
    c.patch("ConfigMap", "one", {"metadata": {"ownerReferences": [_owner(c, "two", blocking=True)]}})
    c.snapshot("each owns the other")
    c.delete("ConfigMap", "one", policy="Foreground")
    c.until_gone("ConfigMap", "one")
    c.until_gone("ConfigMap", "two")
    c.snapshot("both are gone")


def _mixed(c: Teller) -> None:
    c.create(a_config_map("waits"), a_config_map("stays"))
    owners = [_owner(c, "waits", blocking=True), _owner(c, "stays")]
    c.create(a_config_map("child", ownerReferences=owners), a_bare_pod("pod", {"ownerReferences": owners}, **BY_HAND))
    c.delete("ConfigMap", "waits", policy="Foreground")
    c.until_gone("ConfigMap", "waits")
    c.until(lambda: len(c.get("Pod", "pod")["metadata"]["ownerReferences"]) == 1)
    c.snapshot("an owner that stays keeps what both own")


STORIES = [
    *(_deleted(policy) for policy in ("Background", "Foreground", "Orphan")),
    *(_pods(policy) for policy in ("Background", "Foreground", "Orphan")),
    Story("garbage foreground waits", _foreground_waits),
    Story("garbage foreground does not wait", _not_blocking),
    Story("garbage with dangling owners", _dangling),
    Story("garbage with two owners", _two_owners),
    Story("garbage without a namespace", _cluster_wide),
    Story("garbage with owners elsewhere", _cross_namespace),
    Story("garbage of an unknown kind", _unknown_kind),
    Story("garbage in a circle", _circle),
    Story("garbage of two policies", _mixed),
]
