"""Scaling groups: cliques of the set, each in one group at most, and scaled by that group alone."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.grove import PodCliqueSet
from shoal.gangs.admission.rules.places import clique_at, group_at, missing, repeated
from shoal.kube.admission import FieldProblem, forbidden, invalid, required


def group_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """How many replicas each group has, and which cliques are in it."""
    known = {clique.name for clique in pcs.spec.template.cliques}
    taken: dict[str, str] = {}
    for index, group in enumerate(pcs.spec.template.pod_clique_scaling_groups):
        path = group_at(index)
        if not group.clique_names:
            yield required(f"{path}.cliqueNames", "a scaling group has at least one clique")
        for position, name in enumerate(group.clique_names):
            place = f"{path}.cliqueNames[{position}]"
            if name not in known:
                yield missing(place, name, "name a clique of this set")
            elif name in taken:
                yield repeated(place, name, f'the clique is in scaling group "{taken[name]}" already')
            taken.setdefault(name, group.name)
        if group.count <= 0:
            yield invalid(f"{path}.replicas", group.count, "must be greater than 0")
        if group.minimum <= 0:
            yield invalid(f"{path}.minAvailable", group.minimum, "must be greater than 0")
        elif group.minimum > group.count:
            words = f"must not be greater than replicas, which is {group.count}"
            yield invalid(f"{path}.minAvailable", group.minimum, words)


def member_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """A clique in a group is scaled with the group."""
    places = {clique.name: index for index, clique in enumerate(pcs.spec.template.cliques)}
    for index, group in enumerate(pcs.spec.template.pod_clique_scaling_groups):
        for name in group.clique_names:
            if name in places and pcs.spec.template.cliques[places[name]].spec.auto_scaling_config is not None:
                yield forbidden(
                    f"{clique_at(places[name])}.spec.autoScalingConfig",
                    f'clique "{name}" is scaled by scaling group "{group.name}": use {group_at(index)}.scaleConfig',
                )
