"""What a pod says of the ComputeDomain that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.api.grove import PodCliqueSet, names
from shoal.gangs.compute_domains.wanted import asks_for_gpus, mnnvl_group, uses_gpus
from shoal.gangs.plan import PlannedClique
from shoal.gangs.settings import GangSettings

CLAIM: Final = "mnnvl-claim"


def with_compute_domain(
    spec: Mapping[str, Any], pcs: PodCliqueSet, planned: PlannedClique, settings: GangSettings
) -> dict[str, Any]:
    """The spec of a pod of a clique, with the claim of its ComputeDomain on every container that asks for GPUs."""
    group = mnnvl_group(pcs, planned.template) if settings.has_mnnvl else ""
    claims = spec.get("resourceClaims") or []
    if not group or not asks_for_gpus(spec) or any(claim.get("name") == CLAIM for claim in claims):
        return dict(spec)
    template = names.compute_domain(pcs.metadata.name, planned.set_replica, group)
    claiming = {**spec, "resourceClaims": [*claims, {"name": CLAIM, "resourceClaimTemplateName": template}]}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            claiming[field] = [_claiming(one) if uses_gpus(one) else one for one in spec[field]]
    return claiming


def _claiming(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = container["resources"]
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}
