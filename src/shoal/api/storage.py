"""storage.k8s.io: classes of storage, and what their drivers can do on which nodes."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import LabelSelector, Object, QuantityString, Resource, Wire

IMMEDIATE, WAIT_FOR_FIRST_CONSUMER = "Immediate", "WaitForFirstConsumer"
"""When a claim of a class gets its volume: at once, or when a pod that uses it has a node."""

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Annotation: ``true`` on the class that claims get which name none."""

_OLD_IS_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


class StorageClass(Object, frozen=True, kw_only=True):
    """A kind of storage, and who provides it."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str = "Delete"
    mount_options: list[str] = []
    allow_volume_expansion: bool = False
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: list[dict[str, Any]] = []


STORAGE_CLASSES = Resource(
    type=StorageClass,
    group="storage.k8s.io",
    version="v1",
    kind="StorageClass",
    plural="storageclasses",
    namespaced=False,
)


class AttachLimit(Wire, frozen=True, kw_only=True):
    """How many volumes a driver can attach to a node."""

    count: int | None = None


class NodeDriver(Wire, frozen=True, kw_only=True):
    """A driver on a node."""

    name: str = ""
    allocatable: AttachLimit | None = None


class CSINodeSpec(Wire, frozen=True, kw_only=True):
    """The drivers of a node."""

    drivers: list[NodeDriver] = []


class CSINode(Object, frozen=True, kw_only=True):
    """What storage drivers say about a node; it bears the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, frozen=True, kw_only=True):
    """What a driver asks of those who use it."""

    storage_capacity: bool = False
    """Whether it says how much room there is, and is to be asked before a volume is made."""


class CSIDriver(Object, frozen=True, kw_only=True):
    """A storage driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True, kw_only=True):
    """How much room a class of storage has for nodes of some labels."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    """The nodes; none where nothing is said."""
    capacity: QuantityString | None = None
    maximum_volume_size: QuantityString | None = None


def _resource(type_: type[Any], kind: str, plural: str, *, namespaced: bool = False) -> Resource[Any]:
    return Resource(type=type_, group="storage.k8s.io", version="v1", kind=kind, plural=plural, namespaced=namespaced)


CSI_NODES: Resource[CSINode] = _resource(CSINode, "CSINode", "csinodes")
CSI_DRIVERS: Resource[CSIDriver] = _resource(CSIDriver, "CSIDriver", "csidrivers")
CSI_STORAGE_CAPACITIES: Resource[CSIStorageCapacity] = _resource(
    CSIStorageCapacity, "CSIStorageCapacity", "csistoragecapacities", namespaced=True
)


def is_default_class(storage_class: StorageClass) -> bool:
    """Whether claims that name no class get this one."""
    annotations = storage_class.metadata.annotations
    return "true" in (annotations.get(IS_DEFAULT_CLASS), annotations.get(_OLD_IS_DEFAULT_CLASS))
