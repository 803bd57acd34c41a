"""The grouper on a test's server, and what a test asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from shoal.api.core import EVENTS, PODS
from shoal.api.meta import Document, Resource
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import Manager, NotFound
from shoal.scheduler.grouper import GrouperSettings, add_grouper
from shoal.scheduler.grouper.knowledge import PRIORITY_CLASSES
from tests.scheduler.builders import kai_pod_manifest
from tests.support.clusters.client import install, until
from tests.support.clusters.in_process import Cluster

CONTAINERS = [{"name": "c", "image": "i"}]


def grouper(manager: Manager) -> None:
    """The grouper as it is by itself."""
    add_grouper(manager, GrouperSettings())


def template(*, labels: dict[str, str] | None = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    """What a workload says of its pods."""
    metadata = {"labels": {"app": "a", **(labels or {})}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"schedulerName": "kai-scheduler", "containers": CONTAINERS, **spec}}


def grouped_pod_manifest(name: str, *, owner: Mapping[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    """A pod for KAI's scheduler, below an object that was read if one is given."""
    return kai_pod_manifest(name, owner=reference(owner) if owner else None, **given)


def reference(owner: Mapping[str, Any]) -> dict[str, str]:
    """The reference of a child to an object that was read."""
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def a_kind(api_version: str, kind: str, plural: str) -> Resource[Document]:
    group, _, version = api_version.partition("/")
    return Resource(type=Document, group=group, version=version, kind=kind, plural=plural)


THINGS = a_kind("example.com/v1", "Thing", "things")
"""A kind that no rule knows."""


async def define_kinds(cluster: Cluster, *kinds: Resource[Document]) -> None:
    """Installs definitions that take any fields."""
    for kind in kinds:
        names = {
            "kind": kind.kind,
            "plural": kind.plural,
            "singular": kind.kind.lower(),
            "listKind": f"{kind.kind}List",
        }
        version = {
            "name": kind.version,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        spec = {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]}
        manifest = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": kind.full_name},
            "spec": spec,
        }
        await install(cluster.client, manifest)
        await until(partial(is_served, cluster, kind))


async def is_served(cluster: Cluster, kind: Resource[Document]) -> bool:
    """Whether the server takes objects of a kind, which may be a moment after it said so."""
    try:
        await cluster.all(kind)
    except NotFound:
        return False
    return True


async def made(
    cluster: Cluster, kind: Resource[Any], name: str, spec: Any = None, *, owner: Any = None, **metadata: Any
) -> Any:
    """An object of a kind, below another where one is given."""
    owners = {"ownerReferences": [reference(owner)]} if owner else {}
    body = {"metadata": {"name": name, **owners, **metadata}, "spec": spec or {}}
    return (await cluster.make(kind, body)).content


async def add_priorities(cluster: Cluster, *names: str) -> None:
    """Makes PriorityClasses."""
    for name in names:
        await cluster.make(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 100})


async def groups_there(cluster: Cluster, count: int) -> list[dict[str, Any]]:
    """The PodGroups, once there are so many."""

    async def there() -> list[dict[str, Any]]:
        found = await cluster.all(POD_GROUPS)
        return found if len(found) == count else []

    found: list[dict[str, Any]] = await until(there)
    return found


async def marked_pods(cluster: Cluster, count: int) -> list[dict[str, Any]]:
    """The pods that name their group, once there are so many."""

    async def marked() -> list[dict[str, Any]]:
        found = [pod for pod in await cluster.all(PODS) if group_of(pod)]
        return found if len(found) == count else []

    found: list[dict[str, Any]] = await until(marked)
    return found


def group_of(pod: dict[str, Any]) -> str:
    """The group that a pod names."""
    return str(pod["metadata"].get("annotations", {}).get("pod-group-name", ""))


def part_of(pod: dict[str, Any]) -> str:
    """The part that a pod names."""
    return str(pod["metadata"].get("labels", {}).get("kai.scheduler/subgroup-name", ""))


async def told(cluster: Cluster, words: str) -> dict[str, Any]:
    """The warning of the grouper that contains these words."""

    async def there() -> dict[str, Any] | None:
        events = await cluster.all(EVENTS)
        found = [
            one
            for one in events
            if one["reason"] == "PodGrouperWarning" and words in one.get("message", one.get("note", ""))
        ]
        return found[0] if found else None

    found: dict[str, Any] = await until(there)
    return found
