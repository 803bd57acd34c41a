"""Kubernetes 1.35: one Workload with a group for each clique; pods name both.

Each group is a gang by itself: one clique may start while another of the same PodGang waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.api.scheduling_k8s_io import MOST_POD_GROUPS, WORKLOADS_V1ALPHA1
from shoal.gangs.backends.backend import Wanted
from shoal.gangs.backends.workloads.groups import (
    check,
    controller_ref,
    gang_policy,
    metadata,
    minimums,
    too_many,
)


class V1Alpha1:
    """``scheduling.k8s.io/v1alpha1``."""

    needs = frozenset({WORKLOADS_V1ALPHA1.documents()})
    kinds = needs

    def translate(self, gang: PodGang, served: frozenset[Resource[Document]]) -> Iterable[Wanted]:
        """The gang's Workload."""
        check(gang)
        groups = gang.spec.pod_groups
        if len(groups) > MOST_POD_GROUPS:
            raise too_many(len(groups), "groups")
        spec = {
            "controllerRef": controller_ref(gang),
            "podGroups": [{"name": group.name, "policy": gang_policy(group)} for group in groups],
        }
        body = {"metadata": metadata(gang, gang.metadata.name), "spec": spec}
        return [Wanted(resource=WORKLOADS_V1ALPHA1, body=body, fixed=_fixed)]

    def pod_fields(self, gang: PodGang, clique: str) -> Mapping[str, Any]:
        """The Workload and the group in it."""
        return {"workloadRef": {"name": gang.metadata.name, "podGroup": clique}}


def _fixed(body: Mapping[str, Any]) -> Any:
    return minimums(body["spec"].get("podGroups") or (), "policy")
