"""How volumes, claims and what provides them are printed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age
from shoal.cluster.apiserver.tables.printer import (
    AGE,
    NAME,
    Printer,
    Printers,
    boolean,
    column,
    metadata_of,
    number,
    part_of,
    wide,
)
from shoal.cluster.apiserver.tables.wording import NONE, UNSET

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _volume(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    claim = spec.get("claimRef")
    return [
        metadata.get("name") or "",
        _storage(spec.get("capacity")),
        _modes_text(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(metadata, status),
        "" if claim is None else f"{claim.get('namespace') or ''}/{claim.get('name') or ''}",
        _class_name(metadata, spec),
        _given(spec, "volumeAttributesClassName"),
        status.get("reason") or "",
        age(metadata.get("creationTimestamp"), now),
        _given(spec, "volumeMode"),
    ]


def _claim(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    volume = spec.get("volumeName") or ""
    return [
        metadata.get("name") or "",
        _phase(metadata, status),
        volume,
        _storage(status.get("capacity")) if volume else "",
        _modes_text(status.get("accessModes")) if volume else "",
        _class_name(metadata, spec),
        _given(spec, "volumeAttributesClassName"),
        age(metadata.get("creationTimestamp"), now),
        _given(spec, "volumeMode"),
    ]


def _phase(metadata: Object, status: Object) -> str:
    return "Terminating" if metadata.get("deletionTimestamp") else status.get("phase") or ""


def _storage(capacity: Object | None) -> str:
    return str((capacity or {}).get("storage", "0"))


def _modes_text(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class_name(metadata: Object, spec: Object) -> str:
    annotated: str | None = (metadata.get("annotations") or {}).get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else spec.get("storageClassName") or ""


def _given(spec: Object, field: str) -> str:
    given: str | None = spec.get(field)
    return UNSET if given is None else given


def _storage_class(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    name, annotations = metadata.get("name") or "", metadata.get("annotations") or {}
    if any(annotations.get(annotation) == "true" for annotation in _DEFAULT_ANNOTATIONS):
        name += " (default)"
    return [
        name,
        value.get("provisioner") or "",
        value.get("reclaimPolicy") or "Delete",
        value.get("volumeBindingMode") or "Immediate",
        value.get("allowVolumeExpansion") or False,
        age(metadata.get("creationTimestamp"), now),
    ]


def _attributes_class(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    driver = value.get("driverName") or ""
    return [metadata.get("name") or "", driver, age(metadata.get("creationTimestamp"), now)]


def _attachment(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    return [
        metadata.get("name") or "",
        spec.get("attacher") or "",
        part_of(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        part_of(value, "status").get("attached") or False,
        age(metadata.get("creationTimestamp"), now),
    ]


def _csi_node(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    drivers = len(part_of(value, "spec").get("drivers") or ())
    return [metadata.get("name") or "", drivers, age(metadata.get("creationTimestamp"), now)]


def _csi_driver(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    requests = spec.get("tokenRequests")
    return [
        metadata.get("name") or "",
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount") or False,
        spec.get("storageCapacity") or False,
        UNSET if requests is None else ",".join(request.get("audience") or "" for request in requests),
        spec.get("requiresRepublish") or False,
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(metadata.get("creationTimestamp"), now),
    ]


_CLASS = column("StorageClass", "The class that it is of.")
_ATTRIBUTES = column("VolumeAttributesClass", "The class of its attributes.")
_VOLUME_MODE = wide("VolumeMode", "Whether it holds a file system or is a raw device.")
_ACCESS_MODES = column("Access Modes", "How it may be mounted.")

PRINTERS: Printers = {
    ("", "PersistentVolume"): Printer(
        [
            NAME,
            column("Capacity", "How much it holds."),
            _ACCESS_MODES,
            column("Reclaim Policy", "What becomes of it when its claim is gone."),
            column("Status", "Whether it is claimed."),
            column("Claim", "The claim that it is bound to."),
            _CLASS,
            _ATTRIBUTES,
            column("Reason", "Why it is in this state, in a word."),
            AGE,
            _VOLUME_MODE,
        ],
        _volume,
    ),
    ("", "PersistentVolumeClaim"): Printer(
        [
            NAME,
            column("Status", "Whether it has a volume."),
            column("Volume", "The volume that it is bound to."),
            column("Capacity", "How much the volume holds."),
            _ACCESS_MODES,
            _CLASS,
            _ATTRIBUTES,
            AGE,
            _VOLUME_MODE,
        ],
        _claim,
    ),
    ("storage.k8s.io", "StorageClass"): Printer(
        [
            NAME,
            column("Provisioner", "What makes volumes of this class."),
            column("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
            column("VolumeBindingMode", "When claims get their volume."),
            column("AllowVolumeExpansion", "Whether volumes may grow."),
            AGE,
        ],
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Printer(
        [NAME, column("DriverName", "The driver that it is for."), AGE], _attributes_class
    ),
    ("storage.k8s.io", "VolumeAttachment"): Printer(
        [
            NAME,
            column("Attacher", "The driver that attaches the volume.", format="name"),
            column("PV", "The volume."),
            column("Node", "The node that it is attached to."),
            boolean("Attached", "Whether it is attached."),
            AGE,
        ],
        _attachment,
    ),
    ("storage.k8s.io", "CSINode"): Printer(
        [NAME, number("Drivers", "Drivers that are registered on the node."), AGE], _csi_node
    ),
    ("storage.k8s.io", "CSIDriver"): Printer(
        [
            NAME,
            boolean("AttachRequired", "Whether volumes must be attached first."),
            boolean("PodInfoOnMount", "Whether it is told of the pod when it mounts."),
            boolean("StorageCapacity", "Whether it tells how much room there is."),
            column("TokenRequests", "Audiences of the tokens that it gets."),
            boolean("RequiresRepublish", "Whether it is asked again and again."),
            column("Modes", "How long its volumes live."),
            AGE,
        ],
        _csi_driver,
    ),
}
