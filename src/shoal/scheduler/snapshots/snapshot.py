"""A snapshot as plain values, and its sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FILE_NAME: Final = "snapshot.json"
"""What the file is called inside of the archive."""

Json = dict[str, Any]

SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "queues": ("scheduling.run.ai/v2", "Queue"),
    "podGroups": ("scheduling.run.ai/v2alpha2", "PodGroup"),
    "bindRequests": ("scheduling.run.ai/v1alpha2", "BindRequest"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "configMaps": ("v1", "ConfigMap"),
    "persistentVolumes": ("v1", "PersistentVolume"),
    "persistentVolumeClaims": ("v1", "PersistentVolumeClaim"),
    "csiStorageCapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "csiDrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "resourceClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io/v1", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io/v1", "DeviceClass"),
    "topologies": ("kai.scheduler/v1alpha1", "Topology"),
    "nodeResourceTopologies": ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"),
    "csiNodes": ("storage.k8s.io/v1", "CSINode"),
    "namespaces": ("v1", "Namespace"),
}
"""What is in it, under KAI's names, with apiVersion and kind of each. The last two KAI does not write, nor look for."""


class InvalidSnapshot(Exception):
    """A file that is no snapshot; says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a scheduler decided upon at some moment."""

    taken_at: float
    """In seconds since 1970; where the file does not say it, the latest moment that anything in it speaks of."""
    objects: Mapping[str, list[Json]]
    """By section; of one that is not there nothing is known, not even that there is nothing."""
    config: Json = field(default_factory=dict)
    """The configuration file."""
    parameters: Json = field(default_factory=dict)
    """The flags, as KAI writes them down."""
    discovery: Json = field(default_factory=dict)

    def of(self, section: str) -> list[Json]:
        """The objects of a section."""
        return self.objects.get(section, [])
