"""A backend for gangs that Shoal does not bring: the coscheduling plugin of Kubernetes' scheduler-plugins.

A package with this module makes it known by an entry point in its pyproject.toml; docs/scheduler-backends.md shows how.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.grove import PodCliqueSet
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.backends import Backend, Marks, Wanted

POD_GROUPS = Resource(
    type=Document, group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups"
)


class Coscheduling(Backend):
    """One PodGroup for the whole gang; pods find it by a label."""

    name = "coscheduling"
    scheduler_names = frozenset({"scheduler-plugins-scheduler"})
    kinds = (POD_GROUPS,)

    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterable[Wanted]:
        """What should be there; it is owned by the gang, kept as it is said here, and removed when it is not."""
        minimum = sum(group.min_replicas for group in gang.spec.pod_groups)
        spec = {"minMember": minimum, "scheduleTimeoutSeconds": 60}
        yield Wanted(resource=POD_GROUPS, body={"metadata": {"name": gang.metadata.name}, "spec": spec})

    def marks(self, gang: PodGang, clique: str) -> Marks:
        """What the gang's pods carry."""
        return Marks(labels={"scheduling.x-k8s.io/pod-group": gang.metadata.name})
