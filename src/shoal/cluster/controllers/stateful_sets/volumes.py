"""The volume claims of a StatefulSet's pods: what they are called, what they say, and who owns them.

Whether claims outlive their set or pod is said by owner references alone; the garbage collector does the rest. A claim
that goes with the set is owned by the set; one that goes when the set is scaled down is owned by the pod, from the
moment that the pod is not wanted any more.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from shoal.api.apps import STATEFUL_SETS, StatefulSet
from shoal.api.apps.stateful_sets import DELETE, RETAIN
from shoal.api.core import PODS, PersistentVolumeClaim, Pod
from shoal.api.meta import HasMetadata, OwnerReference, Resource, owner_reference

ClaimOf = Callable[[str], PersistentVolumeClaim | None]
"""Finds a claim of the set's namespace by its name."""


def claim_names(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """The names of an ordinal's claims, by the volume that each is for."""
    suffix = f"{stateful_set.metadata.name}-{ordinal}"
    templates = stateful_set.spec.volume_claim_templates
    return {template["metadata"]["name"]: f"{template['metadata']['name']}-{suffix}" for template in templates}


def wanted_claims(stateful_set: StatefulSet, ordinal: int) -> list[dict[str, Any]]:
    """The claims of an ordinal, whole."""
    names = claim_names(stateful_set, ordinal)
    selector = stateful_set.spec.selector
    selected = selector.match_labels if selector is not None else {}
    claims = []
    for template in stateful_set.spec.volume_claim_templates:
        claim = copy.deepcopy({key: value for key, value in template.items() if key != "status"})
        metadata = claim["metadata"]
        metadata["name"] = names[metadata["name"]]
        metadata["namespace"] = stateful_set.metadata.namespace
        metadata["labels"] = {**metadata.get("labels", {}), **selected}
        claims.append(claim)
    return claims


def may_have_claim(stateful_set: StatefulSet, name: str) -> bool:
    """Whether a claim of this name could be one of the set's."""
    head, _, ordinal = name.rpartition("-")
    if not ordinal.isdigit():
        return False
    templates = stateful_set.spec.volume_claim_templates
    return any(head == f"{template['metadata']['name']}-{stateful_set.metadata.name}" for template in templates)


def is_stale(stateful_set: StatefulSet, name: str, ordinal: int, claim_of: ClaimOf) -> bool:
    """Whether a claim is still on its way out with an earlier pod of that name, so that no new one may begin."""
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_scaled == RETAIN:
        return False
    claims = map(claim_of, claim_names(stateful_set, ordinal).values())
    return any(claim is not None and _refers_to(claim, PODS, name) is not None for claim in claims)


def is_conflicting(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: HasMetadata) -> bool:
    """Whether somebody else manages a claim that the set's policy would delete."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    if policy.when_scaled == RETAIN and policy.when_deleted == RETAIN:
        return False
    ours = (_refers_to(claim, STATEFUL_SETS, stateful_set.metadata.name), _refers_to(claim, PODS, pod.metadata.name))
    return any(owner.controller and owner not in ours for owner in claim.metadata.owner_references)


def changed_owners(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod, *, is_wanted: bool
) -> list[OwnerReference] | None:
    """The owners that a claim should have under the set's policy; None where it has them, or is not to be touched.

    ``is_wanted`` is False for the pod of an ordinal beyond the set's size.
    """
    owners = claim.metadata.owner_references
    set_owner = _refers_to(claim, STATEFUL_SETS, stateful_set.metadata.name)
    pod_owner = _refers_to(claim, PODS, pod.metadata.name)
    if _is_another(set_owner, stateful_set) or _is_another(pod_owner, pod):
        return None
    others = [owner for owner in owners if owner not in (set_owner, pod_owner)]
    if is_conflicting(claim, stateful_set, pod):
        return others if len(others) < len(owners) else None
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    with_pod = policy.when_scaled == DELETE and not is_wanted
    with_set = policy.when_deleted == DELETE and not with_pod
    has_bystander = any(owner is not None and not owner.controller for owner in (set_owner, pod_owner))
    if (set_owner is not None, pod_owner is not None) == (with_set, with_pod) and not has_bystander:
        return None
    wanted = list(others)
    if with_pod:
        wanted.append(owner_reference(pod, PODS))
    if with_set:
        wanted.append(owner_reference(stateful_set, STATEFUL_SETS))
    return wanted


def _refers_to(claim: PersistentVolumeClaim, resource: Resource[Any], name: str) -> OwnerReference | None:
    """The claim's reference to the object of that kind and name, whatever its uid."""
    for owner in claim.metadata.owner_references:
        if (owner.api_version, owner.kind, owner.name) == (resource.api_version, resource.kind, name):
            return owner
    return None


def _is_another(owner: OwnerReference | None, found: HasMetadata) -> bool:
    """Whether a reference means an earlier object of the same name."""
    return owner is not None and owner.uid != found.metadata.uid
