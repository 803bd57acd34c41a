"""Shared claims: templates that ask for something, and who shares which of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from shoal.api.grove import CliqueSharing, GroupSharing, PodCliqueSet, SetSharing
from shoal.gangs.admission.rules.places import clique_at, group_at, missing, repeated
from shoal.gangs.claims.wanted import ALL_REPLICAS, PER_REPLICA
from shoal.kube.admission import FieldProblem, forbidden, not_supported, required

SCOPES: Final = (ALL_REPLICAS, PER_REPLICA)


def claim_template_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Every template of claims has a name of its own and asks for a device."""
    seen: set[str] = set()
    for index, template in enumerate(pcs.spec.template.resource_claim_templates):
        path = f"spec.template.resourceClaimTemplates[{index}]"
        if not template.name:
            yield required(f"{path}.name", "name the template")
        elif template.name in seen:
            yield repeated(f"{path}.name", template.name, "name each template differently")
        seen.add(template.name)
        if not _requests(template.template_spec):
            yield required(f"{path}.templateSpec.spec.devices.requests", "ask for at least one device")


def sharing_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Every level shares claims of templates by name, once each, with children that it has."""
    template = pcs.spec.template
    own = {one.name for one in template.resource_claim_templates}
    cliques = [clique.name for clique in template.cliques]
    groups = [group.name for group in template.pod_clique_scaling_groups]
    yield from _list_problems("spec.template.resourceSharing", template.resource_sharing, own, cliques, groups)
    for index, clique in enumerate(template.cliques):
        yield from _list_problems(f"{clique_at(index)}.resourceSharing", clique.resource_sharing, own, (), ())
    for index, group in enumerate(template.pod_clique_scaling_groups):
        path = f"{group_at(index)}.resourceSharing"
        yield from _list_problems(path, group.resource_sharing, own, group.clique_names, ())


def _list_problems(
    place: str,
    sharings: Sequence[SetSharing | GroupSharing | CliqueSharing],
    own: Collection[str],
    cliques: Collection[str],
    groups: Collection[str],
) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, sharing in enumerate(sharings):
        path = f"{place}[{index}]"
        if not sharing.name:
            yield required(f"{path}.name", "name a template of resourceClaimTemplates or a ResourceClaimTemplate")
        elif sharing.name in seen:
            yield repeated(f"{path}.name", sharing.name, "share each template once")
        seen.add(sharing.name)
        if sharing.namespace and sharing.name in own:
            words = f'"{sharing.name}" is a template of this set: leave the namespace out'
            yield forbidden(f"{path}.namespace", words)
        if sharing.scope not in SCOPES:
            yield not_supported(f"{path}.scope", sharing.scope, SCOPES)
        if not isinstance(sharing, CliqueSharing):
            yield from _filter_problems(f"{path}.filter", sharing, cliques, groups)


def _filter_problems(
    path: str, sharing: SetSharing | GroupSharing, cliques: Collection[str], groups: Collection[str]
) -> Iterator[FieldProblem]:
    chosen = sharing.filter
    if chosen is None:
        return
    chosen_groups = (
        sharing.filter.child_scaling_group_names if isinstance(sharing, SetSharing) and sharing.filter else []
    )
    if not chosen.child_clique_names and not chosen_groups:
        yield required(path, "name who shares the claim, or leave the filter out to share it with all")
    owner = "this set" if isinstance(sharing, SetSharing) else "this scaling group"
    for index, name in enumerate(chosen.child_clique_names):
        if name not in cliques:
            yield missing(f"{path}.childCliqueNames[{index}]", name, f"name a clique of {owner}")
    for index, name in enumerate(chosen_groups):
        if name not in groups:
            yield missing(f"{path}.childScalingGroupNames[{index}]", name, "name a scaling group of this set")


def _requests(template_spec: dict[str, Any]) -> Any:
    devices = (template_spec.get("spec") or {}).get("devices") or {}
    return devices.get("requests")
