"""What a pod says of the claims that it shares: those of its set, of its scaling group, and of its clique."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.api.grove import GroupSharing, PodCliqueSet, SetSharing, start_order
from shoal.api.meta import dns1123_label_problems
from shoal.gangs.claims.templates import Sharing
from shoal.gangs.claims.wanted import claim_name
from shoal.gangs.plan import PlannedClique, group_of

_ENTRY_LENGTH = 63
_DIGEST_LENGTH = 10


def with_claims(spec: Mapping[str, Any], pcs: PodCliqueSet, planned: PlannedClique, pod_index: int) -> dict[str, Any]:
    """The spec of a pod of a clique, with all claims that it shares; every container has all of them.

    The container that waits for other cliques has none: it needs no devices.
    """
    shared = list(dict.fromkeys(_shared(pcs, planned, pod_index)))
    if not shared:
        return dict(spec)
    entries = [{"name": entry_name(claim), "resourceClaimName": claim} for claim in shared]
    claiming = {**spec, "resourceClaims": [*spec.get("resourceClaims", ()), *entries]}
    for field in ("initContainers", "containers"):
        if field in spec:
            claiming[field] = [
                container if container.get("name") == start_order.CONTAINER else claims_in(container, entries)
                for container in spec[field]
            ]
    return claiming


def claims_in(container: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A container that uses these entries of its pod's claims."""
    resources = container.get("resources") or {}
    used = resources.get("claims") or []
    known = {claim.get("name") for claim in used}
    more = [{"name": entry["name"]} for entry in entries if entry["name"] not in known]
    return {**container, "resources": {**resources, "claims": [*used, *more]}}


def entry_name(claim: str) -> str:
    """What a pod calls a claim: its name, or a shorter word for it where that is no DNS label."""
    if not dns1123_label_problems(claim):
        return claim
    digest = hashlib.sha256(claim.encode()).hexdigest()[:_DIGEST_LENGTH]
    start = claim.replace(".", "-")[: _ENTRY_LENGTH - _DIGEST_LENGTH - 1].rstrip("-")
    return f"{start}-{digest}"


def _shared(pcs: PodCliqueSet, planned: PlannedClique, pod_index: int) -> Iterator[str]:
    group = group_of(pcs, planned.template.name) if planned.group else None
    group_name = group.name if group is not None else ""
    of_set = [one for one in pcs.spec.template.resource_sharing if _reaches(one, planned.template.name, group_name)]
    yield from _names(pcs.metadata.name, of_set, planned.set_replica)
    if group is not None:
        of_group = [one for one in group.resource_sharing if _is_shared_by(one, planned.template.name)]
        yield from _names(planned.group, of_group, planned.group_replica)
    yield from _names(planned.name, planned.template.resource_sharing, pod_index)


def _names(owner: str, sharings: Sequence[Sharing], index: int) -> Iterator[str]:
    """First what all replicas share, then what is this one's."""
    for scope in (None, index):
        yield from (name for one in sharings if (name := claim_name(owner, one, scope)) is not None)


def _reaches(sharing: SetSharing, clique: str, group: str) -> bool:
    chosen = sharing.filter
    if chosen is None:
        return True
    return clique in chosen.child_clique_names or (bool(group) and group in chosen.child_scaling_group_names)


def _is_shared_by(sharing: GroupSharing, clique: str) -> bool:
    return sharing.filter is None or clique in sharing.filter.child_clique_names
