"""What a PodGang says of topology: the domains that a PodCliqueSet asks for, as keys of node labels.

A domain that the topology does not have is left out, and so is all of it where there is no topology: the pods still
run, only less close together, and the set's condition says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.api.grove import PodCliqueSet, TopologyConstraint, names
from shoal.api.scheduler_grove_io import GangTopologyConstraint, PackConstraint, TopologyGroup
from shoal.gangs.plan import PlannedGang, member_templates

Keys = Mapping[str, str]
"""The key of the node label that means a domain, by the domain's name."""


@dataclass(frozen=True, kw_only=True)
class GangConstraints:
    """Where the pods of a gang run: all of them, those of a scaling group's replica, those of a clique by its name."""

    whole: GangTopologyConstraint | None
    groups: list[TopologyGroup]
    cliques: Mapping[str, GangTopologyConstraint | None]


def gang_constraints(pcs: PodCliqueSet, gang: PlannedGang, keys: Keys) -> GangConstraints:
    """The constraints of a gang.

    A scaled gang is one replica of its scaling group, so that the group's constraint is the whole gang's; the set's
    takes its place where the group has none that could be met.
    """
    whole = translated(pcs.spec.template.topology_constraint, keys)
    groups = []
    if gang.group_template is not None:
        whole = translated(gang.group_template.topology_constraint, keys) or whole
    elif keys:
        groups = _groups_in_base(pcs, gang.set_replica, keys)
    cliques = {clique.name: translated(clique.template.topology_constraint, keys) for clique in gang.cliques}
    return GangConstraints(whole=whole, groups=groups, cliques=cliques)


def translated(constraint: TopologyConstraint | None, keys: Keys) -> GangTopologyConstraint | None:
    """A constraint in keys of node labels; None where nothing of it is left."""
    if constraint is None:
        return None
    required, preferred = keys.get(constraint.required), keys.get(constraint.preferred)
    if required is None and preferred is None:
        return None
    return GangTopologyConstraint(pack_constraint=PackConstraint(required=required, preferred=preferred))


def _groups_in_base(pcs: PodCliqueSet, replica: int, keys: Keys) -> list[TopologyGroup]:
    """Each replica of a scaling group that is in the base gang is kept together for itself."""
    found = []
    for group in pcs.spec.template.pod_clique_scaling_groups:
        constraint = translated(group.topology_constraint, keys)
        if constraint is None:
            continue
        full_name = names.scaling_group(pcs.metadata.name, replica, group.name)
        cliques = member_templates(pcs, group)
        found += [
            TopologyGroup(
                name=names.group_replica(full_name, index),
                pod_group_names=[names.member_clique(full_name, index, clique.name) for clique in cliques],
                topology_constraint=constraint,
            )
            for index in range(group.minimum)
        ]
    return found
