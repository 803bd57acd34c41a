"""Kubernetes 1.36: a Workload with templates, and a PodGroup for each clique that is made from one; pods name theirs.

Each group is a gang by itself: one clique may start while another of the same PodGang waits. What a clique must share
of the cluster's topology is said in its group; what the whole gang must share has no words unless it has one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import GangPodGroup, PodGang
from shoal.api.scheduling_k8s_io import POD_GROUPS_V1ALPHA2, WORKLOADS_V1ALPHA2
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


class V1Alpha2:
    """``scheduling.k8s.io/v1alpha2``."""

    needs = frozenset({WORKLOADS_V1ALPHA2.documents(), POD_GROUPS_V1ALPHA2.documents()})
    kinds = needs

    def translate(self, gang: PodGang, served: frozenset[Resource[Document]]) -> Iterator[Wanted]:
        """The gang's Workload, then its PodGroups, which the server admits only after it."""
        check(gang)
        fields = {group.name: _group_fields(gang, group) for group in gang.spec.pod_groups}
        templates, chosen = templates_of(gang, fields)
        spec = {"controllerRef": controller_ref(gang), "podGroupTemplates": templates}
        body = {"metadata": metadata(gang, gang.metadata.name), "spec": spec}
        yield Wanted(resource=WORKLOADS_V1ALPHA2, body=body, fixed=_fixed_templates)
        for clique, template in chosen.items():
            source = {"workloadName": gang.metadata.name, "podGroupTemplateName": template}
            group = {"podGroupTemplateRef": {"workload": source}, **fields[clique]}
            body = {"metadata": metadata(gang, pod_group_name(gang, clique)), "spec": group}
            yield Wanted(resource=POD_GROUPS_V1ALPHA2, body=body, fixed=_fixed_group)

    def pod_fields(self, gang: PodGang, clique: str) -> Mapping[str, Any]:
        """The PodGroup."""
        return {"schedulingGroup": {"podGroupName": pod_group_name(gang, clique)}}


def _group_fields(gang: PodGang, group: GangPodGroup) -> dict[str, Any]:
    key = required_key(group.topology_constraint)
    if not key and len(gang.spec.pod_groups) == 1:
        key = required_key(gang.spec.topology_constraint)
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    return {"schedulingPolicy": gang_policy(group), **constraints}


def _fixed_templates(body: Mapping[str, Any]) -> Any:
    return minimums(body["spec"].get("podGroupTemplates") or (), "schedulingPolicy")


def _fixed_group(body: Mapping[str, Any]) -> Any:
    return body["spec"].get("podGroupTemplateRef"), body["spec"].get("schedulingPolicy")
