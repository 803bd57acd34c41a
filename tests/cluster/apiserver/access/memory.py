"""A cluster's state in a dict, for the parts that only read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.cluster.apiserver.access.authorization import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    Authorizer,
)
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.kinds.kind import Object

_STORAGE = {
    "ServiceAccount": "serviceaccounts",
    "Pod": "pods",
    "Secret": "secrets",
    "Node": "nodes",
    "Role": ROLES,
    "ClusterRole": CLUSTER_ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
}


class Memory:
    """Objects by kind, namespace and name; every change counts as one of the roles."""

    def __init__(self, *objects: Object) -> None:
        self._objects: dict[tuple[str, str, str], Object] = {}
        self.revision = 0
        self.reads = 0
        for each in objects:
            self.put(each)

    def put(self, new: Object) -> None:
        self._objects[self._key(new)] = new
        self.revision += 1

    def remove(self, gone: Object) -> None:
        del self._objects[self._key(gone)]
        self.revision += 1

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        self.reads += 1
        return self._objects.get((storage, namespace, name))

    def list(self, storage: str, namespace: str | None = None) -> Iterator[Object]:
        self.reads += 1
        for (kind, home, _), each in self._objects.items():
            if kind == storage and namespace in (None, home):
                yield each

    def scan(self, storage: str, namespace: str | None = None) -> tuple[int, Iterator[Object]]:
        found = list(self.list(storage, namespace))
        return len(found), iter(found)

    def changed(self, storage: str) -> int:
        return self.revision

    def authorizer(self) -> Authorizer:
        return Authorizer(self, lambda: self.revision)

    @staticmethod
    def _key(each: Object) -> tuple[str, str, str]:
        metadata = each["metadata"]
        return _STORAGE[each["kind"]], metadata.get("namespace", ""), metadata["name"]


def an_object(kind: str, name: str, namespace: str = "", *, uid: str = "", **more: Any) -> Object:
    metadata: Object = {"name": name, "uid": uid or f"{kind}-{name}".lower()}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= more.pop("metadata", {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def a_role(name: str, *rules: Object, namespace: str = "", **more: Any) -> Object:
    return an_object("Role" if namespace else "ClusterRole", name, namespace, rules=list(rules), **more)


def a_binding(name: str, role: str, *subjects: Object, namespace: str = "", of: str = "ClusterRole") -> Object:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    reference = {"apiGroup": GROUP, "kind": of, "name": role}
    return an_object(kind, name, namespace, subjects=list(subjects), roleRef=reference)


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(name: str, namespace: str = "") -> Object:
    return {"kind": "ServiceAccount", "name": name} | ({"namespace": namespace} if namespace else {})


def on(
    resources: str, verbs: str = "get", *, groups: Iterable[str] = ("",), names: Iterable[str] | None = None
) -> Object:
    rule: Object = {"verbs": verbs.split(","), "apiGroups": list(groups), "resources": resources.split(",")}
    return rule if names is None else rule | {"resourceNames": list(names)}


def at(paths: str, verbs: str = "get") -> Object:
    return {"verbs": verbs.split(","), "nonResourceURLs": paths.split(",")}


ANN = User(name="ann", groups=("devs", "system:authenticated"))
BOT = User(
    name="system:serviceaccount:build:bot",
    groups=("system:serviceaccounts", "system:serviceaccounts:build", "system:authenticated"),
)
