"""Kubernetes' own scheduler: a gang is a Workload of scheduling.k8s.io, in the newest version that the cluster serves.

Most clusters serve none: then pods have a scheduler's name and nothing else, and are scheduled one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.api.grove import PodCliqueSet
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.backends.backend import Backend, NotServed, Untranslatable, Wanted, with_scheduler
from shoal.gangs.backends.workloads import VERSIONS, newest

SCHEDULER: Final = "default-scheduler"


class DefaultScheduler(Backend):
    """The backend of kube-scheduler, and of pods that name no scheduler."""

    name = "default"
    scheduler_names = frozenset({"", SCHEDULER})
    kinds = tuple(
        sorted({kind for version in VERSIONS for kind in version.kinds}, key=lambda kind: (kind.version, kind.plural))
    )

    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterable[Wanted]:
        """The gang's Workload, and its PodGroups where the version has them."""
        version = newest(served)
        if version is None:
            raise NotServed(
                "the cluster serves no Workload of scheduling.k8s.io: the gang's pods are scheduled one by one; switch "
                "on the Workload API of Kubernetes 1.35 or later, or use another scheduler such as kai-scheduler"
            )
        return list(version.translate(gang, served))

    def pod_spec(
        self, spec: Mapping[str, Any], gang: PodGang, clique: str, served: frozenset[Resource[Document]]
    ) -> Mapping[str, Any]:
        """Names the pod's group, but only one that there will be: pods of a group that is missing are never placed."""
        named = with_scheduler(spec, SCHEDULER)
        version = newest(served)
        if version is None:
            return named
        try:
            list(version.translate(gang, served))
        except Untranslatable:
            return named
        return {**named, **version.pod_fields(gang, clique)}
