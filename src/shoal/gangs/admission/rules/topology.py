"""Topology constraints: of a topology that exists, in domains that it has, and never wider inside than outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shoal.api.grove import ClusterTopologyBinding, PodCliqueSet, TopologyConstraint
from shoal.gangs.admission.rules.places import clique_at, group_at, missing
from shoal.gangs.plan import group_of
from shoal.kube.admission import FieldProblem, Finding, Warn, forbidden, invalid, not_supported, required


@dataclass(frozen=True, kw_only=True)
class Constrained:
    """A part of a set with a constraint, and the parts with constraints that it is in, nearest first."""

    path: str
    part: str
    """As messages call it: ``clique "workers"``."""
    constraint: TopologyConstraint
    outer: tuple[Constrained, ...] = ()

    @property
    def topology(self) -> str:
        """The ClusterTopologyBinding that is meant: named here, or by the nearest part around that names one."""
        named = (one.constraint.topology_name for one in (self, *self.outer))
        return next(filter(None, named), "")

    @property
    def required_path(self) -> str:
        """Where the required domain is written."""
        pack = self.constraint.pack
        return f"{self.path}.pack.required" if pack is not None and pack.required else f"{self.path}.packDomain"


def constrained_parts(pcs: PodCliqueSet) -> list[Constrained]:
    """The set, its scaling groups and its cliques, as far as they have constraints."""
    template = pcs.spec.template
    whole: tuple[Constrained, ...] = ()
    if template.topology_constraint is not None:
        path = "spec.template.topologyConstraint"
        whole = (Constrained(path=path, part="the set", constraint=template.topology_constraint),)
    groups = {
        group.name: Constrained(
            path=f"{group_at(index)}.topologyConstraint",
            part=f'scaling group "{group.name}"',
            constraint=group.topology_constraint,
            outer=whole,
        )
        for index, group in enumerate(template.pod_clique_scaling_groups)
        if group.topology_constraint is not None
    }
    parts = [*whole, *groups.values()]
    for index, clique in enumerate(template.cliques):
        if clique.topology_constraint is not None:
            group = group_of(pcs, clique.name)
            around = groups.get(group.name) if group is not None else None
            parts.append(
                Constrained(
                    path=f"{clique_at(index)}.topologyConstraint",
                    part=f'clique "{clique.name}"',
                    constraint=clique.topology_constraint,
                    outer=(around, *whole) if around is not None else whole,
                )
            )
    return parts


def new_topology_problems(
    pcs: PodCliqueSet, binding: ClusterTopologyBinding | None, *, has_topologies: bool
) -> Iterator[Finding]:
    """What is wrong with the constraints of a new set; ``binding`` is the topology that it names, if it exists."""
    parts = constrained_parts(pcs)
    if not has_topologies:
        for part in parts:
            yield forbidden(
                part.path,
                "topology-aware scheduling is off: turn on topologyAwareScheduling.enabled of the operator, "
                "or leave the constraint out",
            )
        return
    for part in parts:
        if not part.topology:
            yield required(f"{part.path}.topologyName", "name a ClusterTopologyBinding, here or for the whole set")
        if part.constraint.pack_domain:
            yield forbidden(f"{part.path}.packDomain", "it is superseded: use pack.required")
    yield from one_topology(pcs)
    named = next((part for part in parts if part.constraint.topology_name), None)
    if named is None:
        return
    if binding is None:
        words = "no ClusterTopologyBinding of this name exists: create it first"
        yield missing(f"{named.path}.topologyName", named.constraint.topology_name, words)
        return
    domains = [level.domain for level in binding.spec.levels]
    for part in parts:
        if part.topology == named.topology:
            yield from _domain_problems(part, domains)


def one_topology(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """All parts of a set mean the same topology."""
    first = ""
    for part in constrained_parts(pcs):
        name = part.constraint.topology_name
        first = first or name
        if name and name != first:
            words = f'a set has one topology, and "{first}" is named before: name that one, or none here'
            yield invalid(f"{part.path}.topologyName", name, words)


def _domain_problems(part: Constrained, domains: list[str]) -> Iterator[Finding]:
    required_domain, preferred = part.constraint.required, part.constraint.preferred
    if required_domain and required_domain not in domains:
        yield not_supported(part.required_path, required_domain, domains)
    if preferred and preferred not in domains:
        yield not_supported(f"{part.path}.pack.preferred", preferred, domains)
    for outer in part.outer:
        if _is_wider(required_domain, outer.constraint.required, domains):
            yield invalid(
                part.required_path,
                required_domain,
                f'{outer.part} requires the narrower "{outer.constraint.required}": ask for that or a narrower one',
            )
        if _is_wider(preferred, outer.constraint.preferred, domains):
            yield invalid(
                f"{part.path}.pack.preferred",
                preferred,
                f'{outer.part} prefers the narrower "{outer.constraint.preferred}": ask for that or a narrower one',
            )
    if _is_wider(preferred, required_domain, domains):
        yield Warn(
            f'{part.path}: preferred "{preferred}" is wider than required "{required_domain}" and changes nothing'
        )


def _is_wider(domain: str, than: str, domains: list[str]) -> bool:
    """Whether both are known and the first is the wider one; domains are listed widest first."""
    return domain in domains and than in domains and domains.index(domain) < domains.index(than)
