"""A server's state in a dictionary, kinds in few words, and requests for admission to decide on."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.admission import Attributes
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.schema import Schema
from shoal.kube.admission.wire import Operation
from shoal.kube.errors import Status
from tests.support.builders.pods import pod_manifest

ANN = User(name="ann", uid="7", groups=("system:authenticated",))


class Memory:
    """Reader and Writer; an update yields between reading and writing, so that others come in between."""

    def __init__(self, *objects: tuple[str, Object]) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.writes = 0
        self._revision = 0
        for storage, value in objects:
            self.put(storage, value)

    def put(self, storage: str, value: Object) -> None:
        self._revision += 1
        metadata = value["metadata"] | {"resourceVersion": str(self._revision)}
        key = (storage, metadata.get("namespace", ""), metadata["name"])
        self.objects[key] = value | {"metadata": metadata}

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((storage, namespace, name))

    def list(self, storage: str, namespace: str | None = None) -> Iterable[Object]:
        return [
            value
            for (kept, within, _), value in self.objects.items()
            if kept == storage and namespace in (None, within)
        ]

    def scan(self, storage: str, namespace: str | None = None) -> tuple[int, Iterator[Object]]:
        found = list(self.list(storage, namespace))
        return len(found), iter(found)

    def changed(self, storage: str) -> int:
        return self._revision

    async def update(
        self, storage: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object | None:
        while True:
            before = self.get(storage, namespace, name)
            if before is None:
                return None
            new = change(copy.deepcopy(before))
            if new is None:
                return before
            await asyncio.sleep(0)
            if self.get(storage, namespace, name) is before:
                self.writes += 1
                self.put(storage, new)
                return self.get(storage, namespace, name)


def a_kind(kind: str, resource: str, group: str = "", version: str = "v1", **more: Any) -> Kind:
    return Kind(
        group=group,
        version=version,
        kind=kind,
        resource=resource,
        schema=Schema(type="object"),
        storage=f"{resource}.{group}" if group else resource,
        **more,
    )


POD = a_kind("Pod", "pods")
CONFIG_MAP = a_kind("ConfigMap", "configmaps")
SERVICE = a_kind("Service", "services")
CLAIM = a_kind("PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME = a_kind("PersistentVolume", "persistentvolumes", namespaced=False)
NODE = a_kind("Node", "nodes", namespaced=False)
NAMESPACE = a_kind("Namespace", "namespaces", namespaced=False)
DEPLOYMENT = a_kind("Deployment", "deployments", "apps")
PRIORITY_CLASS = a_kind("PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False)


def a_namespace(name: str = "team", *, phase: str = "Active", **labels: str) -> tuple[str, Object]:
    return "namespaces", {"metadata": {"name": name, "labels": labels}, "status": {"phase": phase}}


def an_account(name: str = "default", **more: Any) -> tuple[str, Object]:
    return "serviceaccounts", {"metadata": {"name": name, "namespace": "team"}, **more}


def a_container(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {}, **more}


def a_team_pod(name: str = "p", **given: Any) -> Object:
    pod = pod_manifest(name, namespace="team", **{"containers": [a_container()], **given})
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def asking(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


def creating(kind: Kind, value: Object, **more: Any) -> Attributes:
    metadata = value["metadata"]
    return Attributes(
        kind=kind,
        operation=Operation.CREATE,
        namespace=metadata.get("namespace", "team" if kind.namespaced else ""),
        name=metadata.get("name", ""),
        object=value,
        user=ANN,
        **more,
    )


def updating(kind: Kind, value: Object, old: Object, **more: Any) -> Attributes:
    request = creating(kind, value, **more)
    request.operation, request.old = Operation.UPDATE, old
    return request


def deleting(kind: Kind, old: Object, **more: Any) -> Attributes:
    request = creating(kind, old, **more)
    request.operation, request.old, request.object = Operation.DELETE, old, None
    return request


async def refusal_of(doing: Any) -> Status:
    with pytest.raises(Refused) as refusal:
        await doing
    return refusal.value.status
