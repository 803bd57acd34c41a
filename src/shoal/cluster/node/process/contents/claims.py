"""Volumes behind claims: from a pod's volume to the folder of this machine that its bound volume is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PersistentVolume, PersistentVolumeClaim
from shoal.api.core.pod_details import PodDetails, VolumeDetails
from shoal.api.meta import is_controlled_by
from shoal.cluster.node.process.contents.host_paths import host_path, refuse_hidden
from shoal.cluster.node.process.contents.problems import Missing, Unbound
from shoal.kube import ApiError, Client, ConnectionFault

_OPEN = 0o777
"""The mode of a folder that is made for a claim: whoever the pod runs as may write there."""


@dataclass(frozen=True, kw_only=True)
class ClaimedVolume:
    """A volume that a claim has."""

    folder: Path
    is_local: bool
    """Of the kind ``local``, whose files are given to a pod's group."""
    is_provisioned: bool = False
    """Whether it is a folder that Shoal made for the claim."""


def claim_name(pod: PodDetails, volume: VolumeDetails) -> str:
    """The claim of a volume; empty where it has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


async def claimed_volume(
    client: Client, pod: PodDetails, volume: VolumeDetails, *, provisioned: Path, hidden: Sequence[str]
) -> ClaimedVolume:
    """The folder behind a volume's claim; Unbound where the claim has no volume, Missing where that is not there.

    ``provisioned`` holds the folders that Shoal makes for claims.
    """
    name = claim_name(pod, volume)
    namespace = pod.metadata.namespace
    try:
        claim = await _bound_claim(client, namespace, name)
        if volume.ephemeral is not None and not is_controlled_by(claim.metadata, pod.metadata.uid):
            raise Missing(f"PVC {namespace}/{name} was not created for pod {_key(pod)} (pod is not owner)")
        found = await _volume_of(client, claim)
    except Missing as missing:
        raise Unbound(f"error processing PVC {namespace}/{name}: {missing}") from missing
    return _folder_of(found, provisioned=provisioned, hidden=hidden)


async def _bound_claim(client: Client, namespace: str, name: str) -> PersistentVolumeClaim:
    try:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, name, namespace)
    except ApiError as error:
        raise Missing(f"failed to fetch PVC from API server: {error.message}") from error
    except ConnectionFault as fault:
        raise Missing(f"failed to fetch PVC from API server: {fault}") from fault
    if claim.metadata.is_deleting:
        raise Missing("PVC is being deleted")
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        raise Missing("PVC is not bound")
    return claim


async def _volume_of(client: Client, claim: PersistentVolumeClaim) -> PersistentVolume:
    name = claim.spec.volume_name
    try:
        volume = await client.get(PERSISTENT_VOLUMES, name)
    except (ApiError, ConnectionFault) as error:
        why = error.message if isinstance(error, ApiError) else str(error)
        raise Missing(f"failed to fetch PV {name} from API server: {why}") from error
    if volume.spec.claim_ref is None:
        raise Missing(f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound")
    if volume.spec.claim_ref.uid != claim.metadata.uid:
        raise Missing(f"found PV object {name} but its pv.Spec.ClaimRef.UID does not point to claim.UID")
    if volume.spec.volume_mode == "Block":
        raise Missing(f"volume {name} has volumeMode Block, but is specified in volumeMounts")
    return volume


def _folder_of(volume: PersistentVolume, *, provisioned: Path, hidden: Sequence[str]) -> ClaimedVolume:
    spec = volume.spec
    if spec.host_path is not None:
        path, kind = str(spec.host_path.get("path", "")), str(spec.host_path.get("type") or "")
        is_provisioned = path == str(provisioned / volume.metadata.name)
        folder = host_path(path, kind, mode=_OPEN, hidden=() if is_provisioned else hidden)
        return ClaimedVolume(folder=folder, is_local=False, is_provisioned=is_provisioned)
    if spec.local is not None:
        path = str(spec.local.get("path", ""))
        refuse_hidden(path, hidden)
        if not Path(path).exists():
            raise Missing(f'path "{path}" does not exist')
        return ClaimedVolume(folder=Path(path), is_local=True)
    raise Missing(f"volume {volume.metadata.name} is of a kind that this node cannot mount: use hostPath or local")


def _key(pod: PodDetails) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
