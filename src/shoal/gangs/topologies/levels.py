"""Which topology a PodCliqueSet asks for, what node labels its domains mean, and whether all of them are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.api.grove import TOPOLOGY_LEVELS_UNAVAILABLE, ClusterTopologyBinding, PodCliqueSet, TopologyConstraint
from shoal.api.meta import Condition, ConditionStatus
from shoal.gangs.settings import GangSettings

AVAILABLE, UNAVAILABLE = "AllClusterTopologyLevelsAvailable", "ClusterTopologyLevelsUnavailable"
DISABLED, NAME_MISSING, NOT_FOUND = (
    "TopologyAwareSchedulingDisabled",
    "TopologyNameMissing",
    "ClusterTopologyNotFound",
)
"""Reasons of the condition."""


def constraints_of(pcs: PodCliqueSet) -> Iterator[TopologyConstraint]:
    """Every constraint in a set: its own, those of its scaling groups, those of its cliques."""
    template = pcs.spec.template
    held = [template.topology_constraint]
    held += [group.topology_constraint for group in template.pod_clique_scaling_groups]
    held += [clique.topology_constraint for clique in template.cliques]
    return (constraint for constraint in held if constraint is not None)


def topology_name(pcs: PodCliqueSet) -> str:
    """The ClusterTopologyBinding that a set names, which is one for all its parts; empty where it names none."""
    return next((found.topology_name for found in constraints_of(pcs) if found.topology_name), "")


def domain_keys(binding: ClusterTopologyBinding | None) -> dict[str, str]:
    """The keys of the node labels that mean a topology's domains."""
    return {} if binding is None else {level.domain: level.key for level in binding.spec.levels}


def missing_domains(pcs: PodCliqueSet, binding: ClusterTopologyBinding) -> list[str]:
    """The domains that a set asks for and its topology does not have, each once."""
    known = domain_keys(binding)
    asked = [domain for found in constraints_of(pcs) for domain in (found.required, found.preferred) if domain]
    return [domain for domain in dict.fromkeys(asked) if domain not in known]


def levels_condition(
    pcs: PodCliqueSet, topologies: Mapping[str, ClusterTopologyBinding], settings: GangSettings
) -> Condition | None:
    """Whether a set's pods can be placed as it asks; None where nobody asks, and nobody could."""
    is_asked_for = any(True for _ in constraints_of(pcs))
    if not settings.has_topologies:
        if not is_asked_for:
            return None
        words = "topology-aware scheduling is off: the set's constraints are left out until the operator has it on"
        return _condition(pcs, "Unknown", DISABLED, words)
    if not is_asked_for:
        return _condition(pcs, "False", AVAILABLE, "the set asks for no topology")
    name = topology_name(pcs)
    if not name:
        return _condition(pcs, "Unknown", NAME_MISSING, "no constraint says which topology it means: give topologyName")
    binding = topologies.get(name)
    if binding is None:
        return _condition(pcs, "Unknown", NOT_FOUND, f"ClusterTopologyBinding {name} does not exist: create it")
    if missing := missing_domains(pcs, binding):
        words = f"ClusterTopologyBinding {name} has no level for: {', '.join(missing)}"
        return _condition(pcs, "True", UNAVAILABLE, words)
    return _condition(pcs, "False", AVAILABLE, f"ClusterTopologyBinding {name} has every level that the set asks for")


def _condition(pcs: PodCliqueSet, status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(
        type=TOPOLOGY_LEVELS_UNAVAILABLE,
        status=status,
        reason=reason,
        message=message,
        observed_generation=pcs.metadata.generation,
    )
