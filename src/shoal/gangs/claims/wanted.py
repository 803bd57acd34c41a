"""The ResourceClaims that should be there, level by level.

Claims of all levels are part of the set by their labels, and of their level by their owner alone: those that are no
longer wanted are looked for among what the owner controls.

The spec of a claim cannot change once it is made, and a ResourceClaimTemplate may: hand a claim's ``spec`` over as
``initial`` (``split``), so that what was made stays. A claim whose template is not there is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal.api.grove import PodCliqueSet, ScalingGroupTemplate, names
from shoal.api.resource_k8s_io import RESOURCE_CLAIMS
from shoal.gangs.claims.templates import NO_TEMPLATES, Sharing, Templates, claim_spec
from shoal.gangs.plan import PlannedClique

ALL_REPLICAS: Final = "AllReplicas"
PER_REPLICA: Final = "PerReplica"

Claim = dict[str, Any]


def set_claims(pcs: PodCliqueSet, *, templates: Templates = NO_TEMPLATES) -> list[Claim]:
    """The claims that all replicas of a set share; they belong to the set."""
    return _claims(pcs, pcs.metadata.name, pcs.spec.template.resource_sharing, None, {}, templates)


def replica_claims(pcs: PodCliqueSet, replica: int, *, templates: Templates = NO_TEMPLATES) -> list[Claim]:
    """The claims of one replica of a set; they belong to the set."""
    labels = {names.SET_REPLICA_LABEL: str(replica)}
    return _claims(pcs, pcs.metadata.name, pcs.spec.template.resource_sharing, replica, labels, templates)


def group_claims(
    pcs: PodCliqueSet,
    group: ScalingGroupTemplate,
    group_name: str,
    replicas: int,
    *,
    templates: Templates = NO_TEMPLATES,
) -> list[Claim]:
    """The claims of a scaling group, given by its full name, and of each of its replicas; they belong to the group."""
    sharings = group.resource_sharing
    labels = {names.SCALING_GROUP_LABEL: group_name}
    claims = _claims(pcs, group_name, sharings, None, labels, templates)
    for index in range(replicas):
        indexed = {**labels, names.SCALING_GROUP_REPLICA_LABEL: str(index)}
        claims += _claims(pcs, group_name, sharings, index, indexed, templates)
    return claims


def clique_claims(
    pcs: PodCliqueSet, planned: PlannedClique, replicas: int, *, templates: Templates = NO_TEMPLATES
) -> list[Claim]:
    """The claims of a clique, and of each of its pods; they belong to the clique."""
    sharings = planned.template.resource_sharing
    labels = {names.CLIQUE_LABEL: planned.name}
    claims = _claims(pcs, planned.name, sharings, None, labels, templates)
    for index in range(replicas):
        indexed = {**labels, names.POD_INDEX_LABEL: str(index)}
        claims += _claims(pcs, planned.name, sharings, index, indexed, templates)
    return claims


def split(claim: Claim) -> tuple[Claim, Claim]:
    """What of a claim is kept true, and what is set when it is made."""
    return {key: value for key, value in claim.items() if key != "spec"}, {"spec": claim["spec"]}


def claim_name(owner: str, sharing: Sharing, index: int | None) -> str | None:
    """The claim that a sharing means for a replica, or for all where none is given; None where it means no such one."""
    if sharing.scope == (ALL_REPLICAS if index is None else PER_REPLICA):
        return (
            names.shared_claim(owner, sharing.name)
            if index is None
            else names.replica_claim(owner, index, sharing.name)
        )
    return None


def _claims(
    pcs: PodCliqueSet,
    owner: str,
    sharings: Sequence[Sharing],
    index: int | None,
    labels: Mapping[str, str],
    templates: Templates,
) -> list[Claim]:
    claims: list[Claim] = []
    for sharing in sharings:
        name = claim_name(owner, sharing, index)
        spec = None if name is None else claim_spec(pcs, sharing, templates)
        if name is None or spec is None:
            continue
        # No label has the claim's name: names of claims may be longer than what a label can hold.
        own_labels = {**names.default_labels(pcs.metadata.name), names.COMPONENT_LABEL: names.CLAIM_COMPONENT}
        claims.append(
            {
                "apiVersion": RESOURCE_CLAIMS.api_version,
                "kind": RESOURCE_CLAIMS.kind,
                "metadata": {"name": name, "namespace": pcs.metadata.namespace, "labels": {**own_labels, **labels}},
                "spec": dict(spec),
            }
        )
    return claims
