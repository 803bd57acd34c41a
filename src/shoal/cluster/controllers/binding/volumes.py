"""What a pod's claims say about where it may be, and whether it must wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from shoal.api.meta import is_controlled_by
from shoal.cluster.controllers.binding.demand import pinned_hostnames
from shoal.cluster.controllers.binding.picture import NodeState
from shoal.cluster.placement import matches_node_selector

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"

FindClaim = Callable[[str], PersistentVolumeClaim | None]
FindVolume = Callable[[str], PersistentVolume | None]


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """Where a pod's volumes let it be."""

    problem: str = ""
    """Why the pod can be nowhere yet; empty where it can."""
    selectors: tuple[Mapping[str, Any], ...] = ()
    """Node selectors of its volumes; all must hold."""
    has_lost_volume: bool = False
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Claims that are bound once a node is chosen."""
    selected: frozenset[str] = frozenset()
    """The nodes that were chosen for those of them before: there is no other than the one for all."""

    def reason_against(self, state: NodeState) -> str:
        """What the volumes have against a node; empty where nothing."""
        node = state.node
        if node is None or not all(matches_node_selector(selector, node) for selector in self.selectors):
            return "node(s) didn't match PersistentVolume's node affinity"
        if self.has_lost_volume:
            return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
        if self.selected and self.selected != {state.name}:
            return "node(s) didn't find available persistent volumes to bind"
        return ""

    @property
    def are_choosy(self) -> bool:
        """Whether there can be a reason against a node at all."""
        return bool(self.selectors) or self.has_lost_volume or bool(self.selected)

    @property
    def hostnames(self) -> frozenset[str] | None:
        """The only host names that come into question; None where the volumes name none."""
        named = [names for selector in self.selectors if (names := pinned_hostnames(selector)) is not None]
        return frozenset.intersection(*named) if named else None


NO_NEEDS = VolumeNeeds()


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The names of the claims that a pod uses."""
    names = (
        volume.persistent_volume_claim.claim_name
        if volume.persistent_volume_claim is not None
        else f"{pod.metadata.name}-{volume.name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    )
    return tuple(dict.fromkeys(names))


def volume_needs(
    pod: Pod,
    *,
    claim: FindClaim,
    volume: FindVolume,
    is_delayed: Callable[[PersistentVolumeClaim], bool],
    node_for: Callable[[PersistentVolumeClaim], str],
) -> VolumeNeeds:
    """What a pod's claims ask for as they are now; ``node_for`` is the node that was chosen for one, if any."""
    bound: list[PersistentVolumeClaim] = []
    unbound: list[PersistentVolumeClaim] = []
    for used in pod.spec.volumes:
        if used.persistent_volume_claim is None and used.ephemeral is None:
            continue
        is_own = used.persistent_volume_claim is None
        name = f"{pod.metadata.name}-{used.name}" if is_own else _named(used)
        found = claim(name)
        if problem := _problem(pod, name, found, is_own):
            return VolumeNeeds(problem=problem)
        assert found is not None
        is_bound = found.spec.volume_name and BIND_COMPLETED in found.metadata.annotations
        (bound if is_bound else unbound).append(found)
    delayed = tuple(found for found in unbound if not found.spec.volume_name and is_delayed(found))
    if len(delayed) < len(unbound):
        return VolumeNeeds(problem=UNBOUND)
    volumes = [volume(found.spec.volume_name) for found in bound]
    affinities = [(held.spec.node_affinity or {}).get("required") for held in volumes if held is not None]
    return VolumeNeeds(
        selectors=tuple(required for required in affinities if required),
        has_lost_volume=None in volumes,
        delayed=delayed,
        selected=frozenset(node for held in delayed if (node := node_for(held))),
    )


def _named(used: Any) -> str:
    return str(used.persistent_volume_claim.claim_name)


def _problem(pod: Pod, name: str, found: PersistentVolumeClaim | None, is_own: bool) -> str:
    if found is None:
        if is_own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if found.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{found.spec.volume_name}"'
    if found.metadata.is_deleting:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if is_own and not is_controlled_by(found.metadata, pod.metadata.uid):
        place = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return f"PVC {found.metadata.namespace}/{name} was not created for pod {place} (pod is not owner)"
    return ""
