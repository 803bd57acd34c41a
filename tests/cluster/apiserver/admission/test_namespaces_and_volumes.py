from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from shoal.cluster.apiserver.admission.volumes import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from tests.cluster.apiserver.admission.memory import (
    CLAIM,
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    VOLUME,
    Memory,
    a_kind,
    a_namespace,
    creating,
    deleting,
    refusal_of,
    updating,
)

MAP = {"metadata": {"name": "a", "namespace": "team"}}


async def test_nothing_comes_into_a_namespace_that_is_not_there() -> None:
    status = await refusal_of(NamespaceLifecycle(Memory()).mutate(creating(CONFIG_MAP, MAP)))
    assert (status.code, status.reason, status.message) == (404, "NotFound", 'namespaces "team" not found')
    assert (status.details.name, status.details.kind) == ("team", "namespaces")


async def test_nothing_new_comes_into_a_namespace_that_is_going() -> None:
    plugin = NamespaceLifecycle(Memory(a_namespace(phase="Terminating")))
    status = await refusal_of(plugin.mutate(creating(CONFIG_MAP, MAP)))
    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    (cause,) = status.details.causes
    assert (cause.reason, cause.message, cause.field) == (
        "NamespaceTerminating",
        "namespace team is being terminated",
        "metadata.namespace",
    )
    await plugin.mutate(updating(CONFIG_MAP, MAP, MAP))
    await plugin.mutate(deleting(CONFIG_MAP, MAP))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_never_go(name: str) -> None:
    status = await refusal_of(NamespaceLifecycle(Memory()).mutate(deleting(NAMESPACE, {"metadata": {"name": name}})))
    assert (status.code, status.message) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


async def test_what_is_in_no_namespace_needs_none() -> None:
    plugin = NamespaceLifecycle(Memory())
    await plugin.mutate(creating(NODE, {"metadata": {"name": "n"}}))
    await plugin.mutate(creating(NAMESPACE, {"metadata": {"name": "new"}}))
    for name in ("new", "kube-node-lease"):
        await plugin.mutate(deleting(NAMESPACE, {"metadata": {"name": name}}))


async def test_who_asks_about_permissions_does_not_learn_which_namespaces_there_are() -> None:
    review = a_kind("LocalSubjectAccessReview", "localsubjectaccessreviews", "authorization.k8s.io")
    await NamespaceLifecycle(Memory()).mutate(creating(review, MAP))


def a_class(name: str, *, default: str = "true", at: str = "2026-01-01T00:00:00Z", **more: Any) -> tuple[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": default}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": at}
    return "storageclasses.storage.k8s.io", {"metadata": metadata, **more}


@pytest.mark.parametrize(
    ("classes", "spec", "chosen"),
    [
        pytest.param([], {}, None, id="no class"),
        pytest.param([a_class("a", default="false")], {}, None, id="no default"),
        pytest.param([a_class("a")], {}, "a", id="the default"),
        pytest.param([a_class("a")], {"storageClassName": ""}, "", id="none on purpose"),
        pytest.param([a_class("a")], {"storageClassName": "b"}, "b", id="another"),
        pytest.param([a_class("a"), a_class("b", at="2026-02-01T00:00:00Z")], {}, "b", id="the newest"),
        pytest.param([a_class("b"), a_class("a")], {}, "a", id="the first by name"),
    ],
)
async def test_a_claim_without_a_class_gets_the_default(classes: Any, spec: Any, chosen: str | None) -> None:
    claim = {"metadata": {"name": "d"}, "spec": dict(spec)}
    await DefaultStorageClass(Memory(*classes)).mutate(creating(CLAIM, claim))
    assert claim["spec"].get("storageClassName") == chosen


@pytest.mark.parametrize(
    ("kind", "finalizer"), [(CLAIM, "kubernetes.io/pvc-protection"), (VOLUME, "kubernetes.io/pv-protection")]
)
async def test_volumes_and_claims_are_protected_while_in_use(kind: Any, finalizer: str) -> None:
    value: dict[str, Any] = {"metadata": {"name": "d", "finalizers": ["x/y"]}}
    for _ in range(2):
        await StorageObjectInUseProtection().mutate(creating(kind, value))
    assert value["metadata"]["finalizers"] == ["x/y", finalizer]


def a_claim(size: str, *, phase: str = "Bound", name: str | None = "grows") -> Any:
    spec = {"storageClassName": name, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "d"}, "spec": spec, "status": {"phase": phase}}


CANNOT = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


@pytest.mark.parametrize(
    ("new", "old", "problem"),
    [
        pytest.param(a_claim("2Gi"), a_claim("1Gi"), "", id="grows"),
        pytest.param(a_claim("1Gi"), a_claim("2Gi"), "", id="shrinking is for validation"),
        pytest.param(
            a_claim("2Gi"),
            a_claim("1Gi", phase="Pending"),
            "Only bound persistent volume claims can be expanded",
            id="not bound",
        ),
        pytest.param(a_claim("2Gi", name="fixed"), a_claim("1Gi", name="fixed"), CANNOT, id="a class that cannot"),
        pytest.param(a_claim("2Gi", name=None), a_claim("1Gi", name=None), CANNOT, id="no class"),
    ],
)
async def test_a_claim_grows_where_its_class_can(new: Any, old: Any, problem: str) -> None:
    state = Memory(a_class("grows", allowVolumeExpansion=True), a_class("fixed"))
    doing = PersistentVolumeClaimResize(state).validate(updating(CLAIM, new, old))
    if not problem:
        await doing
    else:
        assert (await refusal_of(doing)).message == f'persistentvolumeclaims "d" is forbidden: {problem}'
