"""Persistent volumes and the claims to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.api.core.pods import ResourceRequirements
from shoal.api.core.references import ObjectReference
from shoal.api.meta import LabelSelector, Object, Resource, ResourceList, Wire


class ClaimSpec(Wire, frozen=True, kw_only=True):
    """What volume is asked for."""

    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    data_source: dict[str, Any] | None = None


class ClaimCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a claim."""

    type: str = ""
    status: str
    """Without a default, since what equals it would not be written."""
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class ClaimStatus(Wire, frozen=True, kw_only=True):
    """Which volume was given."""

    phase: str = ""
    access_modes: list[str] = []
    capacity: ResourceList = {}
    allocated_resources: ResourceList = {}
    modify_volume_status: dict[str, str] | None = None
    conditions: list[ClaimCondition] = []
    current_volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    """A wish for a volume."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeSpec(Wire, frozen=True, kw_only=True):
    """What a volume is."""

    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    csi: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    local: dict[str, Any] | None = None
    node_affinity: dict[str, Any] | None = None


class VolumeStatus(Wire, frozen=True, kw_only=True):
    """Whether a volume is bound."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_phase_transition_time: datetime | None = None


class PersistentVolume(Object, frozen=True, kw_only=True):
    """A piece of storage."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


PERSISTENT_VOLUME_CLAIMS = Resource(
    type=PersistentVolumeClaim, group="", version="v1", kind="PersistentVolumeClaim", plural="persistentvolumeclaims"
)
PERSISTENT_VOLUMES = Resource(
    type=PersistentVolume,
    group="",
    version="v1",
    kind="PersistentVolume",
    plural="persistentvolumes",
    namespaced=False,
)
