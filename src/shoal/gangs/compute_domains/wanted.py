"""The ComputeDomains that a replica of a set needs: one for each MNNVL group of cliques that ask for GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.api.grove import CliqueTemplate, PodCliqueSet, names
from shoal.api.meta import InvalidQuantity, parse_quantity
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.gangs.plan import group_of
from shoal.gangs.settings import GangSettings

GPU: Final = "nvidia.com/gpu"
OPTED_OUT: Final = "none"


def compute_domains(pcs: PodCliqueSet, replica: int, settings: GangSettings) -> list[dict[str, Any]]:
    """The ComputeDomains of a replica, in the order of the cliques that need them; they belong to the set.

    ``numNodes`` is 0: a domain grows and shrinks with the pods in it.
    """
    if not settings.has_mnnvl:
        return []
    cliques = [clique for clique in pcs.spec.template.cliques if asks_for_gpus(clique.spec.pod_spec)]
    groups = dict.fromkeys(group for clique in cliques if (group := mnnvl_group(pcs, clique)))
    return [_domain(pcs, replica, group) for group in groups]


def mnnvl_group(pcs: PodCliqueSet, clique: CliqueTemplate) -> str:
    """The MNNVL group of a clique, said where it is nearest; empty where there is none, or someone opted out."""
    scaling_group = group_of(pcs, clique.name)
    places = [clique.annotations, scaling_group.annotations if scaling_group else {}, pcs.metadata.annotations]
    said = next((place[names.MNNVL_ANNOTATION] for place in places if names.MNNVL_ANNOTATION in place), OPTED_OUT)
    return "" if said == OPTED_OUT else said


def asks_for_gpus(pod_spec: Mapping[str, Any]) -> bool:
    """Whether any container of a pod asks for GPUs."""
    return any(uses_gpus(one) for field in ("initContainers", "containers") for one in pod_spec.get(field) or ())


def uses_gpus(container: Mapping[str, Any]) -> bool:
    """Whether a container asks for GPUs."""
    resources = container.get("resources") or {}
    return any(_is_some((resources.get(field) or {}).get(GPU)) for field in ("limits", "requests"))


def _is_some(amount: Any) -> bool:
    if amount is None:
        return False
    try:
        return parse_quantity(amount).nano != 0
    except InvalidQuantity:
        return False  # the pod will be refused for it


def _domain(pcs: PodCliqueSet, replica: int, group: str) -> dict[str, Any]:
    name = names.compute_domain(pcs.metadata.name, replica, group)
    labels = {
        **names.component_labels(pcs.metadata.name, name, names.COMPUTE_DOMAIN_COMPONENT),
        names.SET_REPLICA_LABEL: str(replica),
        names.MNNVL_ANNOTATION: group,
    }
    return {
        "apiVersion": COMPUTE_DOMAINS.api_version,
        "kind": COMPUTE_DOMAINS.kind,
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": labels,
            "finalizers": [names.COMPUTE_DOMAIN_FINALIZER],
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
    }
