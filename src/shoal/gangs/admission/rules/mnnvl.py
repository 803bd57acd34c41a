"""MNNVL groups: the annotation ``grove.io/mnnvl-group`` of a set, its scaling groups and its cliques."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta.names import dns1123_label_problems
from shoal.gangs.admission.rules.places import clique_at, group_at
from shoal.gangs.compute_domains.wanted import OPTED_OUT
from shoal.kube.admission import FieldProblem, forbidden, invalid


class Said(NamedTuple):
    """Where an annotation stands, and what it says."""

    path: str
    group: str


def mnnvl_problems(pcs: PodCliqueSet, *, has_mnnvl: bool) -> Iterator[FieldProblem]:
    """A group is a word that objects may be named after; where the feature is off, nobody asks for one."""
    for path, group in mnnvl_groups(pcs).values():
        if group == OPTED_OUT:
            continue
        if not has_mnnvl:
            words = f'MNNVL is off: turn on network.autoMNNVLEnabled of the operator, say "{OPTED_OUT}" or leave it out'
            yield forbidden(path, words)
            continue
        for problem in dns1123_label_problems(group):
            yield invalid(path, group, f'{problem}; or say "{OPTED_OUT}"')


def mnnvl_groups(pcs: PodCliqueSet) -> dict[str, Said]:
    """The annotations by the part of the set that has them; a part keeps its name when it changes places."""
    template = pcs.spec.template
    places = [("the set", "metadata", pcs.metadata.annotations)]
    places += [
        (f'scaling group "{group.name}"', group_at(index), group.annotations)
        for index, group in enumerate(template.pod_clique_scaling_groups)
    ]
    places += [
        (f'clique "{clique.name}"', clique_at(index), clique.annotations)
        for index, clique in enumerate(template.cliques)
    ]
    key = names.MNNVL_ANNOTATION
    return {
        part: Said(f"{path}.annotations[{key}]", annotations[key])
        for part, path, annotations in places
        if key in annotations
    }
