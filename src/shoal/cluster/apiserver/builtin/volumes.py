"""PersistentVolume: where it lies, what it holds, and what stays once it is made."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from shoal.api.meta import format_time, now, parse_quantity
from shoal.cluster.apiserver.builtin.differences import difference
from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import node_selector_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, named, one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import (
    FieldProblem,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
VOLUME_MODES = ("Block", "Filesystem")
HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"

DEPRECATED_ANNOTATIONS = {
    BETA_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEAD_SOURCES = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}


SOURCE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""What sources of volumes are given where nothing is said, in persistent volumes and in pods."""


def default_volume(new: Object) -> None:
    """A volume is kept, and is a file system, where nothing else is said."""
    spec = new.setdefault("spec", {})
    new.setdefault("status", {}).setdefault("phase", "Pending")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    for kind, defaults in SOURCE_DEFAULTS.items():
        if (source := spec.get(kind)) is not None:
            for field, value in defaults.items():
                source.setdefault(field, value)


def prepare_volume(new: Object) -> None:
    """Starts it waiting, as of now."""
    new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(now())}


def prepare_volume_status(new: Object, old: Object) -> None:
    """Notes when its phase changes."""
    status, before = new.setdefault("status", {}), old.get("status") or {}
    moment, was = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if moment is None and was is not None:
            status["lastPhaseTransitionTime"] = was
    elif moment is None or moment == was:
        status["lastPhaseTransitionTime"] = format_time(now())


def volume_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a volume; of the places where it may lie, those that are still in use are looked into."""
    spec = new["spec"]
    problems: list[FieldProblem] = [] if spec.get("accessModes") else [required("spec.accessModes")]
    problems += access_mode_problems(spec, "spec")
    capacity = spec.get("capacity") or {}
    if not capacity:
        problems.append(required("spec.capacity"))
    if set(capacity) != {"storage"}:
        problems.append(not_supported("spec.capacity", dict(sorted(capacity.items())), ["storage"]))
    for name, value in capacity.items():
        problems += basic_amount_problems(value, f"spec.capacity[{name}]")
        if parse_quantity(value).nano <= 0:
            problems.append(invalid(f"spec.capacity[{name}]", str(value), POSITIVE))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy:
        problems += one_of("spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    if (affinity := spec.get("nodeAffinity")) is not None:
        if affinity.get("required") is None:
            problems.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            problems += node_selector_problems(affinity["required"], "spec.nodeAffinity.required")
    problems += _source_problems(spec)
    path = (spec.get("hostPath") or {}).get("path", "")
    if policy == "Recycle" and path and posixpath.normpath(path) in ("/", "//"):
        words = "may not be 'recycle' for a hostPath mount of '/'"
        problems.append(forbidden("spec.persistentVolumeReclaimPolicy", words))
    if name := spec.get("storageClassName"):
        problems += named("spec.storageClassName", name, subdomain_problems)
    if spec.get("volumeMode") is not None:
        problems += one_of("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)
    if (attributes := spec.get("volumeAttributesClassName")) is not None:
        if attributes:
            problems += named("spec.volumeAttributesClassName", attributes, subdomain_problems)
        else:
            problems.append(required("spec.volumeAttributesClassName", "an empty string is disallowed"))
        if spec.get("csi") is None:
            problems.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return problems


def validate_volume_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: where it lies stays."""
    spec, before = new["spec"], old["spec"]
    problems = volume_problems(new)
    sources, had = ({each: given[each] for each in SOURCES if given.get(each)} for given in (spec, before))
    if "csi" in sources and "controllerExpandSecretRef" not in had.get("csi", {}):
        # A driver that could not expand volumes may learn to.
        sources["csi"] = {key: value for key, value in sources["csi"].items() if key != "controllerExpandSecretRef"}
    if sources != had:
        words = f"spec.persistentvolumesource is immutable after creation\n{difference(had, sources)}"
        problems.append(forbidden("spec.persistentvolumesource", words))
    if spec.get("volumeMode") != before.get("volumeMode"):
        problems.append(immutable("volumeMode", spec.get("volumeMode")))
    affinity, was = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if was is not None and affinity != was:
        problems.append(immutable("nodeAffinity", affinity))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        words = "update from non-nil value to nil is forbidden"
        problems.append(forbidden("spec.volumeAttributesClassName", words))
    return problems


def volume_warnings(new: Object) -> list[str]:
    """What a client is told of a volume that is taken."""
    spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
    told = [
        f"metadata.annotations[{key}]: {words}" for key, words in DEPRECATED_ANNOTATIONS.items() if key in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        told.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    return told + [f"spec.{words}" for source, words in _DEAD_SOURCES.items() if spec.get(source) is not None]


def csi_driver_name_problems(name: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming a storage driver."""
    if not name:
        return [required(path)]
    problems = [too_long(path, 63)] if len(name) > 63 else []
    return problems + [invalid(path, name, each) for each in subdomain_problems(name.lower())]


def access_mode_problems(spec: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with the ways in which pods may mount it."""
    modes = spec.get("accessModes") or ()
    problems = [not_supported(f"{path}.accessModes", each, ACCESS_MODES) for each in modes if each not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(each in ACCESS_MODES[:3] for each in modes):
        words = "may not use ReadWriteOncePod with other access modes"
        problems.append(forbidden(f"{path}.accessModes", words))
    return problems


def _source_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    given = [each for each in SOURCES if spec.get(each) is not None]
    if not given:
        return [required("spec", "must specify a volume type")]
    problems = _one_source_problems(given[0], spec[given[0]], spec)
    for extra in given[1:]:
        shown = "cephFS" if extra == "cephfs" else extra
        problems.append(forbidden(f"spec.{shown}", "may not specify more than 1 volume type"))
    return problems


def _one_source_problems(kind: str, source: dict[str, Any], spec: dict[str, Any]) -> list[FieldProblem]:
    here, path = f"spec.{kind}", source.get("path", "")
    problems: list[FieldProblem] = []
    if kind in ("hostPath", "local"):
        if not path:
            problems.append(required(f"{here}.path"))
        elif ".." in path.split("/"):
            problems.append(invalid(f"{here}.path", path, "must not contain '..'"))
        if kind == "local" and spec.get("nodeAffinity") is None:
            problems.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
        elif kind == "hostPath" and path and source.get("type") is not None:
            problems += one_of(f"{here}.type", source["type"], HOST_PATH_TYPES)
    elif kind == "nfs":
        problems += [required(f"{here}.{each}") for each in ("server", "path") if not source.get(each)]
        if not path.startswith("/"):
            problems.append(invalid(f"{here}.path", path, "must be an absolute path"))
    elif kind == "csi":
        problems += csi_driver_name_problems(source.get("driver", ""), f"{here}.driver")
        if not source.get("volumeHandle"):
            problems.append(required(f"{here}.volumeHandle"))
        for each in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
            if (reference := source.get(f"{each}SecretRef")) is not None:
                for part in ("name", "namespace"):
                    if not reference.get(part):
                        problems.append(required(f"{here}.{each}SecretRef.{part}"))
    return problems


def basic_amount_problems(value: str, path: str) -> list[FieldProblem]:
    """What is wrong with an amount of storage."""
    amount = parse_quantity(value).value()
    return [invalid(path, amount, "must be a valid resource quantity")] if amount < 0 else []


RULES = {
    ("", "PersistentVolume"): Rules(
        name_problems=subdomain_problems,
        defaults=default_volume,
        prepare_create=prepare_volume,
        prepare_status=prepare_volume_status,
        validate_create=volume_problems,
        validate_update=validate_volume_update,
        warnings=volume_warnings,
        has_generation=False,
        resets={"": (("status",),), "status": (("spec",),)},
    ),
}
