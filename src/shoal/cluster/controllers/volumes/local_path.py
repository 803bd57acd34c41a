"""Volumes that are folders of this machine: what is written of one, and the removal of its folder.

A folder is made by whoever mounts it first. It is removed here, and only where the volume's path is the very one that
was given out: the volume's own name, directly in our folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.core import PersistentVolume, PersistentVolumeClaim
from shoal.api.storage import StorageClass
from shoal.cluster.controllers.volumes.binding import reference_to
from shoal.cluster.controllers.volumes.names import (
    BOUND_BY_CONTROLLER,
    CONTENT_PROTECTION,
    PROVISIONED_BY,
    PROVISIONER,
    class_of,
    volume_for,
)


class NotOurs(Exception):
    """A volume whose path was not given out here."""


def provisioning_problem(claim: PersistentVolumeClaim, storage_class: StorageClass) -> str | None:
    """Why a claim cannot have a folder; None where it can."""
    if claim.spec.data_source is not None:
        return f'plugin "{PROVISIONER}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource'
    name = storage_class.metadata.name
    if storage_class.mount_options:
        options = " ".join(storage_class.mount_options)
        return (
            f'Mount options are not supported by the provisioner but StorageClass "{name}" '
            f"has mount options [{options}]"
        )
    if claim.spec.volume_mode == "Block":
        return (
            f'Failed to provision volume with StorageClass "{name}": {PROVISIONER} does not support block volume '
            "provisioning"
        )
    return None


def new_volume(claim: PersistentVolumeClaim, storage_class: StorageClass, folder: Path) -> dict[str, Any]:
    """The volume for a claim, bound to it from the start."""
    name = volume_for(claim)
    keeps_content = storage_class.reclaim_policy != "Delete"
    return {
        "metadata": {
            "name": name,
            "annotations": {BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: PROVISIONER},
            "finalizers": [] if keeps_content else [CONTENT_PROTECTION],
        },
        "spec": {
            "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
            "accessModes": claim.spec.access_modes,
            "claimRef": msgspec.to_builtins(reference_to(claim)),
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
            "storageClassName": class_of(claim),
            "volumeMode": "Filesystem",
            "hostPath": {"path": str(folder / name), "type": "DirectoryOrCreate"},
        },
    }


def folder_of(volume: PersistentVolume, folder: Path) -> Path:
    """Where a volume's content is; raises NotOurs where that is not a place of ours."""
    path = folder / volume.metadata.name
    given = (volume.spec.host_path or {}).get("path", "")
    if given != str(path) or path.parent != folder or path.name in ("", ".", ".."):
        raise NotOurs(
            f"the path {given!r} is not in {folder}: set the volume's reclaim policy to Retain, "
            "and delete the volume and its content by hand"
        )
    return path


def remove_folder(path: Path) -> None:
    """Removes a folder with all that is in it; what a link leads to stays."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
