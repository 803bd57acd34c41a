"""Objects that pods need, in few words: claims, volumes, classes, devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from shoal.api.core.config import Existence, Namespace
from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass, ResourceSlice
from shoal.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import ResourceNames
from tests.scheduler.builders import a_model_node
from tests.support.builders.pods import a_pod

ZONE = "topology.kubernetes.io/zone"
LATE, SOON = "WaitForFirstConsumer", "Immediate"


def some_nodes(**labels: Mapping[str, str]) -> Nodes:
    """Nodes by name, with their labels."""
    return Nodes([a_model_node(name, labels=own) for name, own in labels.items()], ResourceNames())


def on(*nodes: str) -> dict[str, Any]:
    """The node affinity of a volume that only some nodes reach."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def a_claim(
    name: str,
    *,
    of: str = "late",
    bound_to: str = "",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    owner: str = "",
    deleted: bool = False,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim of a volume."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "annotations": dict(annotations or {}),
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": owner, "controller": True}
        ]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    body = {
        "metadata": metadata,
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": size}},
            "storageClassName": of,
            "volumeName": bound_to,
            **spec,
        },
        "status": {"phase": phase or ("Bound" if bound_to else "Pending")},
    }
    return msgspec.convert(body, PersistentVolumeClaim)


def a_volume(
    name: str,
    *,
    of: str = "late",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    affinity: Mapping[str, Any] | None = None,
    claimed_by: str = "",
    claim_uid: str = "",
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    driver: str = "",
    **spec: Any,
) -> PersistentVolume:
    """A volume."""
    body: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "storageClassName": of,
            **({"nodeAffinity": affinity} if affinity else {}),
            **({"csi": {"driver": driver, "volumeHandle": name}} if driver else {}),
            **spec,
        },
        "status": {"phase": phase},
    }
    if claimed_by:
        body["spec"]["claimRef"] = {"namespace": "default", "name": claimed_by, "uid": claim_uid}
    return msgspec.convert(body, PersistentVolume)


def a_class(name: str, *, mode: str = LATE, provisioner: str = "x.io/disk", **fields: Any) -> StorageClass:
    """A class of storage."""
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields}
    return msgspec.convert(body, StorageClass)


def a_driver(name: str, *, tells_capacity: bool) -> CSIDriver:
    """A storage driver."""
    return msgspec.convert({"metadata": {"name": name}, "spec": {"storageCapacity": tells_capacity}}, CSIDriver)


def a_capacity(name: str, *, of: str = "late", topology: Mapping[str, str] | None = None, **fields: str) -> Any:
    """How much room a class has where."""
    body: dict[str, Any] = {"metadata": {"name": name, "namespace": "storage"}, "storageClassName": of, **fields}
    if topology is not None:
        body["nodeTopology"] = {"matchLabels": dict(topology)}
    return msgspec.convert(body, CSIStorageCapacity)


def a_csi_node(name: str, **limits: int) -> CSINode:
    """What storage drivers say about a node."""
    drivers = [{"name": driver, "allocatable": {"count": count}} for driver, count in limits.items()]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode)


def a_config_map(name: str, namespace: str = "default") -> Existence:
    """A ConfigMap, as far as it is there."""
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}}, Existence)


def a_namespace(name: str, **labels: str) -> Namespace:
    """A namespace with labels."""
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


def a_device_claim(
    name: str,
    *,
    of: str = "gpu.x.io",
    count: int | None = None,
    mode: str = "ExactCount",
    requests: Sequence[Mapping[str, Any]] | None = None,
    constraints: Sequence[Mapping[str, Any]] = (),
    queue: str = "",
    allocation: Mapping[str, Any] | None = None,
    users: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
) -> DeviceClaim:
    """A claim of devices."""
    exactly = {"deviceClassName": of, "allocationMode": mode, **({} if count is None else {"count": count})}
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": one, "uid": one} for one in users]}
    if allocation is not None:
        status["allocation"] = allocation
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"kai.scheduler/queue": queue} if queue else {},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "devices": {
                "requests": [{"name": "devices", "exactly": exactly}] if requests is None else list(requests),
                "constraints": list(constraints),
            }
        },
        "status": status,
    }
    return msgspec.convert(body, DeviceClaim)


def a_device_class(name: str = "gpu.x.io", *expressions: str) -> DeviceClass:
    """A class of devices: those of the driver of its name, or those that expressions select."""
    found = expressions or (f"device.driver == '{name}'",)
    selectors = [{"cel": {"expression": expression}} for expression in found]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": selectors}}, DeviceClass)


def a_slice(
    node: str,
    *devices: str,
    driver: str = "gpu.x.io",
    generation: int = 1,
    slices: int = 1,
    attributes: Mapping[str, Any] | None = None,
    name: str = "",
    **spec: Any,
) -> ResourceSlice:
    """The devices of a node; of no node: of all."""
    place = {"nodeName": node} if node else {"allNodes": True}
    body = {
        "metadata": {"name": name or f"{node}-{driver}-{generation}"},
        "spec": {
            "driver": driver,
            "pool": {"name": node or "everywhere", "generation": generation, "resourceSliceCount": slices},
            **place,
            "devices": [{"name": one, "attributes": dict(attributes or {})} for one in devices],
            **spec,
        },
    }
    return msgspec.convert(body, ResourceSlice)


def a_user(
    name: str = "web", *, namespace: str = "default", status: Mapping[str, Any] | None = None, **spec: Any
) -> Pod:
    """A pod that uses something."""
    return a_pod(name, namespace=namespace, uid=f"uid-{name}", status=status, **spec)


def claims(*names: str) -> list[dict[str, Any]]:
    """The volumes of a pod that uses these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
