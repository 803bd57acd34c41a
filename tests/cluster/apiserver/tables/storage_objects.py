"""Volumes, claims, their classes and devices for their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.apiserver.tables.cases import Case, Object, named


def storage_cases(prefix: str) -> Iterator[Case]:
    modes = ["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"]
    size = {"storage": "1Gi"}
    source = {"nfs": {"server": "s", "path": "/"}}
    annotated = {"annotations": {"volume.beta.kubernetes.io/storage-class": "annotated"}}

    def volume(name: str, *, metadata: Object | None = None, is_deleted: bool = False, **spec: Any) -> Case:
        made = {"capacity": size, "accessModes": modes, **source, **spec}
        body = named(f"{prefix}-pv-{name}", metadata=metadata or {}, spec=made)
        return Case("v1", "PersistentVolume", body, {}, is_deleted)

    yield volume("plain")
    yield volume("claimed", claimRef={"namespace": "x", "name": "y"}, accessModes=["ReadWriteOncePod"])
    yield volume("class", storageClassName="fast", volumeMode="Block", persistentVolumeReclaimPolicy="Recycle")
    yield volume("annotated", metadata=annotated, storageClassName="annotated")
    yield volume("deleted", is_deleted=True)

    def claim(name: str, status: Object | None = None, *, metadata: Object | None = None, **spec: Any) -> Case:
        made = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, **spec}
        body = named(f"pvc-{name}", metadata=metadata or {}, spec=made)
        return Case("v1", "PersistentVolumeClaim", body, {"status": {"status": status}} if status else {})

    yield claim("plain", storageClassName="")
    yield claim("lost", {"phase": "Lost"}, volumeName=f"{prefix}-gone", storageClassName="slow")
    bound = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
    yield claim("bound", bound, volumeName=f"{prefix}-gone", storageClassName="slow", volumeMode="Block")
    yield claim("annotated", metadata=annotated)

    default = {"annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}}
    classes: tuple[tuple[str, Object], ...] = (
        ("plain", {}),
        ("beta", {"metadata": default}),
        (
            "full",
            {"reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True},
        ),
    )
    for name, more in classes:
        made = named(f"{prefix}-{name}", **more, provisioner="test.io/p")
        yield Case("storage.k8s.io/v1", "StorageClass", made)
    yield Case(
        "storage.k8s.io/v1",
        "VolumeAttributesClass",
        named(f"{prefix}-vac", driverName="d.test", parameters={"a": "b"}),
    )
    attached = {"attacher": "a.test", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    yield Case("storage.k8s.io/v1", "VolumeAttachment", named(f"{prefix}-va", spec=attached))
    yield Case(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        named(f"{prefix}-va-attached", spec=attached),
        {"status": {"status": {"attached": True}}},
    )
    yield Case("storage.k8s.io/v1", "CSIDriver", named(f"{prefix}.plain", spec={}))
    full = {
        "attachRequired": False,
        "podInfoOnMount": True,
        "storageCapacity": True,
        "requiresRepublish": True,
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    }
    yield Case("storage.k8s.io/v1", "CSIDriver", named(f"{prefix}.full", spec=full))
    drivers = [{"name": f"d{each}.test", "nodeID": "n"} for each in range(2)]
    yield Case("storage.k8s.io/v1", "CSINode", named(f"{prefix}-csi", spec={"drivers": drivers}))
    yield Case("storage.k8s.io/v1", "CSIStorageCapacity", named("capacity", storageClassName="c", capacity="1Gi"))


def device_cases(prefix: str) -> Iterator[Case]:
    group = "resource.k8s.io/v1"
    yield Case(group, "DeviceClass", named(f"{prefix}-class", spec={}))
    request = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    yield Case(group, "ResourceClaimTemplate", named("claims", spec={"spec": request}))
    given = {"devices": {"results": [{"request": "r", "driver": "d.test", "pool": "p", "device": "x"}]}}
    reserved = [{"resource": "pods", "name": "p", "uid": "1"}]
    for name, status, is_deleted in (
        ("pending", {}, False),
        ("allocated", {"allocation": given}, False),
        ("reserved", {"allocation": given, "reservedFor": reserved}, False),
        ("deleted", {}, True),
        ("deleted-allocated", {"allocation": given}, True),
    ):
        patches = {"status": {"status": status}} if status else {}
        yield Case(group, "ResourceClaim", named(f"claim-{name}", spec=request), patches, is_deleted)
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    places: dict[str, Object] = {"node": {"nodeName": "n"}, "all": {"allNodes": True}}
    for name, where in places.items():
        spec = {"driver": "d.test", "pool": pool, **where}
        yield Case(group, "ResourceSlice", named(f"{prefix}-{name}", spec=spec))
