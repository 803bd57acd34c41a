"""Kubernetes 1.37: groups can be parts of a group, so that all cliques of a PodGang are one gang.

That needs CompositePodGroups, which the server has behind a gate of its own; without them each clique is a gang by
itself, as in v1alpha2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import GangPodGroup, PodGang
from shoal.api.scheduling_k8s_io import GROUP, POD_GROUPS_V1ALPHA3, WORKLOADS_V1ALPHA3
from shoal.gangs.backends.backend import Wanted
from shoal.gangs.backends.podgang import required_key
from shoal.gangs.backends.workloads.groups import (
    check,
    controller_ref,
    gang_policy,
    metadata,
    minimums,
    pod_group_name,
    templates_of,
)

COMPOSITE_POD_GROUPS: Resource[Document] = Resource(
    type=Document,
    group=GROUP,
    version="v1alpha3",
    kind="CompositePodGroup",
    plural="compositepodgroups",
)
WHOLE = "whole"
"""The template of the group that all others are parts of."""


class V1Alpha3:
    """``scheduling.k8s.io/v1alpha3``."""

    needs = frozenset({WORKLOADS_V1ALPHA3.documents(), POD_GROUPS_V1ALPHA3.documents()})
    kinds = needs | {COMPOSITE_POD_GROUPS}

    def translate(self, gang: PodGang, served: frozenset[Resource[Document]]) -> Iterator[Wanted]:
        """The gang's Workload, the group of the whole where there are parts, and the groups of its cliques."""
        check(gang)
        is_nested = len(gang.spec.pod_groups) > 1 and COMPOSITE_POD_GROUPS in served
        name = gang.metadata.name
        fields = {group.name: _group_fields(gang, group, is_nested=is_nested) for group in gang.spec.pod_groups}
        templates, chosen = templates_of(gang, fields)
        whole = _whole_fields(gang)
        nested = {"compositePodGroupTemplates": [{"name": WHOLE, **whole, "podGroupTemplates": templates}]}
        spec = {"controllerRef": controller_ref(gang), **(nested if is_nested else {"podGroupTemplates": templates})}
        body = {"metadata": metadata(gang, name), "spec": spec}
        yield Wanted(resource=WORKLOADS_V1ALPHA3, body=body, fixed=_fixed_templates)
        if is_nested:
            group = {"workloadRef": {"workloadName": name, "templateName": WHOLE}, **whole}
            yield Wanted(
                resource=COMPOSITE_POD_GROUPS,
                body={"metadata": metadata(gang, name), "spec": group},
                fixed=_fixed_group,
            )
        for clique, template in chosen.items():
            group = {"workloadRef": {"workloadName": name, "templateName": template}, **fields[clique]}
            parent = {"parentCompositePodGroupName": name} if is_nested else {}
            body = {"metadata": metadata(gang, pod_group_name(gang, clique)), "spec": {**parent, **group}}
            yield Wanted(resource=POD_GROUPS_V1ALPHA3, body=body, fixed=_fixed_group)

    def pod_fields(self, gang: PodGang, clique: str) -> Mapping[str, Any]:
        """The PodGroup."""
        return {"schedulingGroup": {"podGroupName": pod_group_name(gang, clique)}}


def _whole_fields(gang: PodGang) -> dict[str, Any]:
    return {
        "schedulingPolicy": {"gang": {"minGroupCount": len(gang.spec.pod_groups)}},
        **_constraints(required_key(gang.spec.topology_constraint)),
        **_priority(gang),
    }


def _group_fields(gang: PodGang, group: GangPodGroup, *, is_nested: bool) -> dict[str, Any]:
    key = required_key(group.topology_constraint)
    if not key and not is_nested and len(gang.spec.pod_groups) == 1:
        key = required_key(gang.spec.topology_constraint)
    return {"schedulingPolicy": gang_policy(group), **_constraints(key), **_priority(gang)}


def _constraints(key: str) -> dict[str, Any]:
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


def _priority(gang: PodGang) -> dict[str, str]:
    name = gang.spec.priority_class_name
    return {"priorityClassName": name} if name else {}


def _fixed_templates(body: Mapping[str, Any]) -> Any:
    """Which templates there are: their number of pods may change, they themselves may not."""
    spec = body["spec"]
    whole = spec.get("compositePodGroupTemplates") or ()
    alone = spec.get("podGroupTemplates") or ()
    inner = [minimums(each.get("podGroupTemplates") or (), "priorityClassName") for each in whole]
    return [minimums(whole, "priorityClassName"), inner, minimums(alone, "priorityClassName")]


def _fixed_group(body: Mapping[str, Any]) -> Any:
    spec = body["spec"]
    return [spec.get(key) for key in ("parentCompositePodGroupName", "workloadRef", "priorityClassName")]
