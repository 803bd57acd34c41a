"""What of a PodCliqueSet stays as it was made: what its gangs are, who is in them, and where they run.

Pods, labels, annotations, replicas, autoscaling, priority, the delay of termination and the way of updating may change.
What was left out and is filled in by admission counts as said, so that objects from before admission can be changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from shoal.api.grove import ANY_ORDER, CliqueTemplate, PodCliqueSet, ScalingGroupTemplate
from shoal.gangs.admission.rules.cliques import scheduler_of
from shoal.gangs.admission.rules.mnnvl import mnnvl_groups
from shoal.gangs.admission.rules.places import CLIQUES, GROUPS, clique_at, group_at
from shoal.gangs.admission.rules.topology import Constrained, constrained_parts, one_topology
from shoal.kube.admission import FieldProblem, forbidden, invalid


def update_problems(pcs: PodCliqueSet, old: PodCliqueSet, default_scheduler: str) -> Iterator[FieldProblem]:
    """What changed and may not."""
    template, before = pcs.spec.template, old.spec.template
    order, order_before = (each.clique_startup_type or ANY_ORDER for each in (template, before))
    yield from _kept("spec.template.cliqueStartupType", order, order_before)
    yield from _same_members(CLIQUES, "cliques", template.cliques, before.cliques)
    yield from _same_order(pcs, old, order)
    cliques = {clique.name: clique for clique in before.cliques}
    for index, clique in enumerate(template.cliques):
        if clique.name in cliques:
            yield from _clique_problems(clique_at(index), clique, cliques[clique.name], default_scheduler)
    groups = {group.name: group for group in before.pod_clique_scaling_groups}
    yield from _same_members(
        GROUPS, "scaling groups", template.pod_clique_scaling_groups, before.pod_clique_scaling_groups
    )
    for index, group in enumerate(template.pod_clique_scaling_groups):
        if group.name in groups:
            yield from _group_problems(group_at(index), group, groups[group.name])
    yield from _left_alone(
        "spec.template.resourceClaimTemplates", template.resource_claim_templates, before.resource_claim_templates
    )
    yield from _left_alone("spec.template.resourceSharing", template.resource_sharing, before.resource_sharing)
    yield from _topology_problems(pcs, old)
    yield from _mnnvl_problems(pcs, old)


def _clique_problems(
    path: str, clique: CliqueTemplate, before: CliqueTemplate, default_scheduler: str
) -> Iterator[FieldProblem]:
    spec, old = clique.spec, before.spec
    yield from _kept(f"{path}.spec.roleName", spec.role_name or clique.name, old.role_name or before.name)
    yield from _kept(f"{path}.spec.minAvailable", spec.minimum, old.minimum)
    yield from _kept(f"{path}.spec.startsAfter", spec.starts_after, old.starts_after)
    yield from _kept(
        f"{path}.spec.podSpec.schedulerName",
        scheduler_of(clique, default_scheduler),
        scheduler_of(before, default_scheduler),
    )
    yield from _left_alone(f"{path}.resourceSharing", clique.resource_sharing, before.resource_sharing)


def _group_problems(path: str, group: ScalingGroupTemplate, before: ScalingGroupTemplate) -> Iterator[FieldProblem]:
    yield from _kept(f"{path}.cliqueNames", group.clique_names, before.clique_names)
    yield from _kept(f"{path}.minAvailable", group.minimum, before.minimum)
    yield from _left_alone(f"{path}.resourceSharing", group.resource_sharing, before.resource_sharing)


def _same_members(
    path: str,
    what: str,
    parts: Sequence[CliqueTemplate | ScalingGroupTemplate],
    before: Sequence[CliqueTemplate | ScalingGroupTemplate],
) -> Iterator[FieldProblem]:
    now, then = [part.name for part in parts], [part.name for part in before]
    added = [name for name in now if name not in then]
    removed = [name for name in then if name not in now]
    if added or removed:
        told = [f"{word} {_shown(names)}" for word, names in (("added", added), ("removed", removed)) if names]
        yield forbidden(path, f"{what} of a set are immutable ({', '.join(told)}): create another set")


def _same_order(pcs: PodCliqueSet, old: PodCliqueSet, order: str) -> Iterator[FieldProblem]:
    """Cliques keep their places where these decide who starts first."""
    now, then = ([clique.name for clique in each.spec.template.cliques] for each in (pcs, old))
    if order != ANY_ORDER and now != then and sorted(now) == sorted(then):
        yield invalid(CLIQUES, now, f"the order of cliques is immutable under {order}: keep {_shown(then)}")


def _topology_problems(pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldProblem]:
    """Constraints stay; how they are said may be brought up to date, and a topology named where none was."""
    now, then = ({part.part: part for part in constrained_parts(each)} for each in (pcs, old))
    for name, part in now.items():
        if name not in then:
            if _is_part(name, old):
                yield forbidden(part.path, "field is immutable: a constraint cannot be added, create another set")
            continue
        yield from _constraint_problems(part, then[name])
    for name, part in then.items():
        if name not in now and _is_part(name, pcs):
            yield forbidden(part.path, "field is immutable: a constraint cannot be removed, create another set")
    yield from one_topology(pcs)


def _constraint_problems(part: Constrained, before: Constrained) -> Iterator[FieldProblem]:
    yield from _kept(part.required_path, part.constraint.required, before.constraint.required)
    yield from _kept(f"{part.path}.pack.preferred", part.constraint.preferred, before.constraint.preferred)
    if before.topology:
        yield from _kept(f"{part.path}.topologyName", part.topology, before.topology)


def _is_part(name: str, pcs: PodCliqueSet) -> bool:
    """Whether a set has such a part at all; if not, that is told already."""
    template = pcs.spec.template
    cliques = {f'clique "{clique.name}"' for clique in template.cliques}
    groups = {f'scaling group "{group.name}"' for group in template.pod_clique_scaling_groups}
    return name in {"the set", *cliques, *groups}


def _mnnvl_problems(pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldProblem]:
    now, then = mnnvl_groups(pcs), mnnvl_groups(old)
    for part, said in now.items():
        if part in then:
            yield from _kept(said.path, said.group, then[part].group)
        elif _is_part(part, old):
            yield forbidden(said.path, "field is immutable: an MNNVL group cannot be added, create another set")
    for part, said in then.items():
        if part not in now and _is_part(part, pcs):
            yield forbidden(said.path, "field is immutable: an MNNVL group cannot be removed, create another set")


def _kept(path: str, now: Any, before: Any) -> Iterator[FieldProblem]:
    if now != before:
        yield invalid(path, now, f"field is immutable: keep {_shown(before)}, or create another set")


def _left_alone(path: str, now: Any, before: Any) -> Iterator[FieldProblem]:
    """As ``_kept``, for what is too long to be shown."""
    if now != before:
        yield forbidden(path, "field is immutable: keep it as it is, or create another set")


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
