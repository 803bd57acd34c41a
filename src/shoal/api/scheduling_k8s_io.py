"""scheduling.k8s.io: priorities, and gangs as Kubernetes itself says them, in each version that says them differently.

1.35 has Workloads of named groups (v1alpha1), which pods refer to. Since 1.36 a Workload holds templates, and PodGroups
made from them are objects of their own (v1alpha2, v1alpha3). A server has one of these versions, if any.
"""

from __future__ import annotations

from typing import Final

from shoal.api.meta import Document, Object, Resource

GROUP: Final = "scheduling.k8s.io"

MOST_POD_GROUPS: Final = 8
"""How many groups, or templates of groups, a Workload may have."""


class PriorityClass(Object, frozen=True, kw_only=True):
    """A name for a priority."""

    value: int = 0
    global_default: bool = False
    """Whether it is the class of those that name none."""


PRIORITY_CLASSES: Final = Resource(
    type=PriorityClass,
    group=GROUP,
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    namespaced=False,
)


def _workloads(version: str) -> Resource[Document]:
    return Resource(type=Document, group=GROUP, version=version, kind="Workload", plural="workloads")


def _pod_groups(version: str) -> Resource[Document]:
    return Resource(type=Document, group=GROUP, version=version, kind="PodGroup", plural="podgroups")


WORKLOADS_V1ALPHA1: Final = _workloads("v1alpha1")

WORKLOADS_V1ALPHA2: Final = _workloads("v1alpha2")
POD_GROUPS_V1ALPHA2: Final = _pod_groups("v1alpha2")

WORKLOADS_V1ALPHA3: Final = _workloads("v1alpha3")
POD_GROUPS_V1ALPHA3: Final = _pod_groups("v1alpha3")
