"""Checks of the sources of a pod's volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.cluster.apiserver.admission.pod_security.checks import Check, CheckedPod, Violation
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.admission.pod_security.wording import listed, named, used

_ALLOWED = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_RESTRICTED = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def host_path_volumes(pod: CheckedPod) -> Violation | None:
    """No folder of the host is mounted."""
    bad = [each.get("name", "") for each in pod.spec.get("volumes") or () if each.get("hostPath") is not None]
    return Violation("hostPath volumes", named("volume", bad)) if bad else None


def restricted_volumes(pod: CheckedPod) -> Violation | None:
    """Volumes hold objects of the API, claims, images or new folders; not storage of the host or of a network."""
    names: list[str] = []
    types: set[str] = set()
    for volume in pod.spec.get("volumes") or ():
        if _source(volume, _ALLOWED) is None:
            names.append(volume.get("name", ""))
            types.add(_source(volume, _RESTRICTED) or "unknown")
    if not names:
        return None
    detail = used("volume", names, "restricted volume type", types, listed(sorted(types)))
    return Violation("restricted volume types", detail)


def _source(volume: Mapping[str, Any], sources: tuple[str, ...]) -> str | None:
    return next((source for source in sources if volume.get(source) is not None), None)


CHECKS = (
    Check(id="hostPathVolumes", level=Level.BASELINE, forms={0: host_path_volumes}),
    Check(id="restrictedVolumes", level=Level.RESTRICTED, forms={0: restricted_volumes}, replaces="hostPathVolumes"),
)
